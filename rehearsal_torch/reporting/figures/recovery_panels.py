"""Figure of noise recovery in a causal system: recovered against true noise, node by node.

For a world that knows the noise u behind its rows, the recovered noise is compared with the identifiable part
of it, f_c(u), standardised and up to sign: on the rows that the model was fitted to, and on held-out ones.

Source: Ren et al. (2025), Thm. 4.1.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from rehearsal_torch.evaluation.rehearsal_rows import number
from rehearsal_torch.reporting.style import BLACK, BLUE, VERMILION, legend_below, panel_list
from rehearsal_torch.reporting.trial_report import PARTS

Rows = Sequence[Mapping[str, str]]
POINT = "noise"
_STYLES = {"fitted": (BLUE, "o"), "held out": (VERMILION, "^")}


def figures(rows: Rows) -> dict[str, Figure]:
    """Recovered against true noise, one panel per node; empty if a run has no points. To be called within
    `drawing`.
    """
    points = [row for row in rows if row.get("quantity") == POINT]
    nodes = list(dict.fromkeys(row["node"] for row in points))
    if not nodes:
        return {}
    figure, every = panel_list(len(nodes), 3, width=3.6, height=3.4)
    for axes, node in zip(every, nodes, strict=True):
        for part, (colour, marker) in _STYLES.items():
            pairs = [
                (number(row["true"]), number(row["value"]))
                for row in points
                if row["node"] == node and row["part"] == part
            ]
            true, recovered = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            axes.plot(true, recovered, marker, color=colour, markersize=3, label=PARTS[part])
        axes.axline((0, 0), slope=1, color=BLACK, linewidth=0.8, label="recovered exactly")
        axes.set(xlabel="True noise (standardised)", ylabel="Noise recovered by the model", title=node)
    legend_below(figure)
    return {"recovered": figure}
