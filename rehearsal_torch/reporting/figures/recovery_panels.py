"""Figure and table of noise recovery in a causal system: recovered against true noise, node by node.

For a world that knows the noise u behind its rows, the recovered noise is compared with the identifiable part
of it, f_c(u), standardised and up to sign: on the rows that the model was fitted to, and on held-out ones.

Source: Ren et al. (2025), Thm. 4.1.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from rehearsal_torch.evaluation.rehearsal_rows import number
from rehearsal_torch.reporting.style import BLACK, BLUE, VERMILION, legend_below, panel_list
from rehearsal_torch.reporting.text_table import text_table

Rows = Sequence[Mapping[str, str]]
POINT = "noise"
MEASURES = (
    ("correlation", "correlation"),
    ("mean", "mean"),
    ("std", "std"),
    ("dependence", "dependence on\nthe inputs (HSIC)"),
    ("distance", "Wasserstein distance\nto the true noise"),
)
_PARTS = (
    ("fitted", BLUE, "o", "trials that the model was fitted to"),
    ("held out", VERMILION, "^", "held-out trials"),
)


def table(rows: Rows) -> list[str]:
    """The measures as a table for a terminal; empty if a run has none.

    Args:
        rows: Rows of ``truth.csv``: node, part (fitted or held out), quantity, value, true.
    """
    measured = {
        (row["node"], row["part"], row["quantity"]): number(row["value"])
        for row in rows
        if row.get("quantity") in dict(MEASURES)
    }
    if not measured:
        return []
    heads = ("node", "rows", *(label for _, label in MEASURES))
    lines = [
        (
            node,
            part,
            *(
                f"{measured[node, part, name]:.3f}" if (node, part, name) in measured else "-"
                for name, _ in MEASURES
            ),
        )
        for node, part in dict.fromkeys((node, part) for node, part, _ in measured)
    ]
    return [text_table(heads, lines, "Recovered noise compared with the true noise", texts=(0, 1))]


def in_short(rows: Rows) -> list[str]:
    """How well the noise of each node was recovered, in a line for each kind of trials; empty if a run has no
    measures.
    """
    correlations: dict[str, list[str]] = {}
    for row in rows:
        if row.get("quantity") == "correlation":
            correlations.setdefault(row["part"], []).append(f"{row['node']} {number(row['value']):.3f}")
    names = {part: label for part, _, _, label in _PARTS}
    return [
        f"correlation of recovered and true noise, {names.get(part, part)}: {', '.join(nodes)}"
        for part, nodes in correlations.items()
    ]


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
        for part, colour, marker, label in _PARTS:
            pairs = [
                (number(row["true"]), number(row["value"]))
                for row in points
                if row["node"] == node and row["part"] == part
            ]
            true, recovered = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            axes.plot(true, recovered, marker, color=colour, markersize=3, label=label)
        axes.axline((0, 0), slope=1, color=BLACK, linewidth=0.8, label="recovered exactly")
        axes.set(xlabel="True noise (standardised)", ylabel="Noise recovered by the model", title=node)
    legend_below(figure)
    return {"recovered": figure}
