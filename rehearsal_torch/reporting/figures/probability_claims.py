"""Figure: claimed against true probabilities of a desired outcome (calibration).

One point per decision; the horizontal bar is the claimed interval. Points below the diagonal are
over-confident. An interval contains the truth where its bar meets the diagonal. If a certificate bounds the
posterior mean and the truth, the thin bar is the interval of the truth, the thick one that of the mean.

Source: calibration of probability forecasts, Dawid (1982).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from rehearsal_torch.evaluation.rehearsal_rows import Row
from rehearsal_torch.reporting.style import diagonal, panel_list, point_style


def draw(groups: Mapping[str, Sequence[Row]]) -> Figure:
    """One panel per label; to be called within `drawing`.

    Args:
        groups: Label to rows; those without an estimate or a truth are left out.
    """
    figure, every = panel_list(len(groups), 3, width=4.4, height=4.0)
    for index, (axes, (name, rows)) in enumerate(zip(every, groups.items(), strict=True)):
        keys = ("estimate", "auf", "lower", "upper")
        claimed, true, lower, upper = (np.array([row[key] for row in rows], dtype=float) for key in keys)
        wide = np.array(
            [[row.get(key, np.nan) for key in ("truth_lower", "truth_upper", "auf")] for row in rows],
            dtype=float,
        ).reshape(-1, 3)
        wide = wide[~np.isnan(wide).any(1)]
        known, bounded = ~np.isnan(claimed + true), ~np.isnan(lower + upper + true + claimed)
        style = point_style(index)
        colour = style["color"]
        # An interval need not contain the estimate: the bar is drawn as it is, not around the point.
        thickness = 2.4 if len(wide) else 1.2
        axes.hlines(
            true[bounded], lower[bounded], upper[bounded], color=colour, alpha=0.35, linewidth=thickness
        )
        if len(wide):
            axes.hlines(wide[:, 2], wide[:, 0], wide[:, 1], color=colour, alpha=0.35, linewidth=0.8)
        axes.plot(claimed[known], true[known], **style, markersize=4, alpha=0.8)
        held = (lower[bounded] <= true[bounded]) & (true[bounded] <= upper[bounded])
        title = (
            f"{name}\nestimated {claimed[known].mean():.3f}, true {true[known].mean():.3f}"
            if known.any()
            else f"{name}\nno estimates"
        )
        axes.set(
            xlabel="Estimated probability", ylabel="True probability", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02)
        )
        within = (wide[:, 0] <= wide[:, 2]) & (wide[:, 2] <= wide[:, 1])
        if bounded.any() and len(wide):
            title += (
                f"\ntruth inside the interval of the posterior mean {100 * held.mean():.0f}%,"
                f"\nof the truth {100 * within.mean():.0f}%"
            )
        elif bounded.any():
            title += f"\ninterval holds for {100 * held.mean():.0f}%"
        axes.set_title(title)
        diagonal(axes, "estimate = truth")
    return figure
