"""Figure: what a method claims for each case, beside its estimate for no action.

One column per case: a filled point with the interval of the estimate where an alteration is recommended, an
open circle for no action. A case without a filled point has no recommendation; where it was refused, its
circle is crossed.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from rehearsal_torch.reporting.style import BLACK, BLUE, VERMILION

# Names of cases are written below the axis up to this number of cases.
NAMED = 30


def draw(axes: Axes, frame: pd.DataFrame, of: str) -> None:
    """Draws into given axes; to be called within `drawing`.

    Args:
        axes: Where to draw.
        frame: One row per case (`reporting.decision_frame`).
        of: What the estimates are of.
    """
    places = np.arange(len(frame))
    point, low, high, before = (
        frame[name].to_numpy(float) for name in ("estimate", "lower", "upper", "no_action")
    )
    acted = (frame["status"] == "recommended").to_numpy()
    refused = (frame["status"] == "refused").to_numpy()
    bounded = acted & ~np.isnan(low + high)
    if bounded.any():
        levels = frame["level"][bounded].unique()
        label = f"{levels[0]:.0%} interval" if len(levels) == 1 else "interval"
        axes.vlines(
            places[bounded], low[bounded], high[bounded], color=BLUE, alpha=0.45, linewidth=3, label=label
        )
    axes.plot(places[acted], point[acted], "o", color=BLUE, markersize=5, label="after the alteration")
    known = ~np.isnan(before)
    axes.plot(places[known], before[known], "o", color=BLACK, fillstyle="none", label="no action")
    if refused.any():
        axes.plot(places[refused], before[refused], "x", color=VERMILION, label="refused")
    axes.set(xlabel="Case", ylabel=f"Claimed {of}")
    if of.startswith("probability"):
        axes.set_ylim(-0.02, 1.02)
    if len(frame) <= NAMED:
        axes.set_xticks(places, [_plain(name) for name in frame["case"]])
    axes.legend()


def _plain(text: str) -> str:
    """A name that is shown as it is: a pair of dollar signs would be read as a formula."""
    return text.replace("$", r"\$")
