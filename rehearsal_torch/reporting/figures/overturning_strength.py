"""Figure: what would overturn the recommendations, as a function of the strength of a hidden common cause.

Left, the recommendation with the median tipping strength: the interval of the probability of a desired
outcome that a hidden cause of strength Gamma allows, from the interval of the estimate at Gamma = 1; the
probability with no action; the tipping strength, where the lower end meets it; and the strength of the
strongest observed covariate. Right, the share of all recommendations that stand against a hidden cause of
each strength. Where no strength of the axis changes that share, its line lies on an edge of the panel or runs
flat, and a sentence in the panel says why. Strengths are on a logarithmic axis.

Source: `estimators.marginal_sensitivity`; the form of the figure is ours.
"""

import math
from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rehearsal_torch.data.sensitivity import Sensitivity, factor
from rehearsal_torch.estimators.marginal_sensitivity import interval_bounds
from rehearsal_torch.evaluation.overturning import sensitivity_of, stands, typical, yardstick
from rehearsal_torch.evaluation.recorded_run import Decided, claim
from rehearsal_torch.evaluation.rehearsal_rows import interval_of, number
from rehearsal_torch.reporting.style import BLACK, COLOURS, logarithmic, panels

POINTS, LEAST, MOST = 200, 2.0, 100.0
# Characters of a line of the sentence in a panel.
BROAD = 36
# Where a legend begins, below the axis and its label of two lines, in heights of the panel.
BELOW = -0.27


def draw(groups: Mapping[str, Sequence[Decided]]) -> Figure:
    """Two panels per method, one below the other; to be called within `drawing`.

    Args:
        groups: Method to its decisions, each with a recorded sensitivity.
    """
    figure, grid = panels(len(groups), 2, width=5.2, height=4.6)
    for index, ((left, right), (name, decided)) in enumerate(zip(grid, groups.items(), strict=True)):
        sensitivities = [
            sensitivity for sensitivity in map(sensitivity_of, decided) if sensitivity is not None
        ]
        strengths = np.geomspace(1.0, _furthest(sensitivities), POINTS)
        colour = COLOURS[index % len(COLOURS)]
        middle = typical(sensitivities)
        _interval(left, decided[middle], sensitivities[middle], strengths, colour)
        left.set_title(f"{name}: case {decided[middle].get('identity', '')}")
        right.step(
            strengths,
            [stands(sensitivities, sensitivity) for sensitivity in strengths],
            where="post",
            color=colour,
            label="still better than no action",
        )
        _yardstick(right, yardstick(sensitivities), strengths[-1])
        right.set(ylabel="Share of the recommendations", ylim=(-0.02, 1.02))
        right.set_title(
            f"Of {len(sensitivities)} recommendation{'s'[: len(sensitivities) > 1]}, the share that stands"
        )
        _note(right, _constant(sensitivities, strengths[-1]), stands(sensitivities, strengths[-1]))
        for axes in (left, right):
            axes.set(
                xlabel="How many times as likely, or as unlikely,\na hidden common cause makes the action",
                xlim=(1.0, strengths[-1]),
            )
            logarithmic(axes.xaxis)
        for axes in (left, right):
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, BELOW), ncols=1)
    return figure


def _interval(
    axes: Axes, decision: Decided, sensitivity: Sensitivity, strengths: np.ndarray, colour: str
) -> None:
    """The interval of one decision against the strength, with its marks."""
    point = number(claim(decision))
    lower, upper = (point if math.isnan(number(end)) else number(end) for end in interval_of(decision))
    unchanged = number(claim(decision, of="unchanged"))
    gains = [number(claim(decision, end, "gain")) for end in ("lower", "upper")]
    if not any(map(math.isnan, (unchanged, *gains))):
        # The comparison is with the present values: what both have in common is not in doubt.
        lower, upper = (unchanged + gain for gain in gains)
    ends = torch.tensor([lower, upper], dtype=torch.float64).clamp(0.0, 1.0)
    low, high = interval_bounds(ends[0], ends[1], torch.from_numpy(strengths))
    axes.fill_between(strengths, low, high, color=colour, alpha=0.2, linewidth=0, label="interval")
    axes.plot(strengths, low, color=colour)
    axes.plot(strengths, high, color=colour)
    if math.isnan(unchanged):
        axes.axhline(
            number(claim(decision, of="baseline")),
            color=BLACK,
            linestyle="--",
            linewidth=1.2,
            label="no action",
        )
    else:
        # A hidden cause biases what is said of the present values, too.
        kept = torch.tensor(unchanged, dtype=torch.float64).clamp(0.0, 1.0)
        most = interval_bounds(kept, kept, torch.from_numpy(strengths))[1]
        axes.plot(
            strengths, most, color=BLACK, linestyle="--", linewidth=1.2, label="present values, at most"
        )
    if sensitivity.tipping <= strengths[-1]:
        axes.axvline(sensitivity.tipping, color=colour, linestyle=":", label=_overturned(sensitivity.tipping))
    known = None if sensitivity.yardstick is None else (sensitivity.covariate, sensitivity.yardstick)
    _yardstick(axes, known, strengths[-1])
    axes.set(ylabel="Probability of a desired outcome", ylim=(-0.02, 1.02))


def _overturned(tipping: float) -> str:
    """The legend of the strength that overturns a recommendation."""
    return "doubtful without a hidden cause" if tipping == 1 else f"overturned at {factor(tipping)}"


def _note(axes: Axes, sentence: str, share: float) -> None:
    """A sentence in the panel, clear of a flat line at a share."""
    if sentence:
        height = 0.25 if 0.3 < share < 0.7 else 0.5
        behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        axes.text(0.5, height, fill(sentence, BROAD), ha="center", va="center", transform=axes.transAxes).set(
            bbox=behind, zorder=3
        )


def _constant(sensitivities: Sequence[Sensitivity], furthest: float) -> str:
    """Why the share that stands is the same at all strengths shown; empty where it is not."""
    later = [sensitivity.tipping for sensitivity in sensitivities if sensitivity.tipping > 1]
    if any(sensitivity <= furthest for sensitivity in later):
        return ""
    if not later or math.isinf(min(later)):
        others = "no hidden common cause can overturn {}"
    else:
        least = f"{'at least ' if len(later) > 1 else ''}{factor(min(later))}"
        others = f"overturning {{}} takes a strength of {least}, which is beyond this axis"
    if len(later) == len(sensitivities):
        sentence = others.format("any of them" if len(sensitivities) > 1 else "it")
        return f"{sentence[:1].upper()}{sentence[1:]}."
    compared = {sensitivity.against for sensitivity in sensitivities if sensitivity.tipping == 1}
    against = compared.pop() if len(compared) == 1 else "no action or the present values"
    doubtful = len(sensitivities) - len(later)
    who = (
        f"{doubtful} of {len(sensitivities)}" if later else "all of them" if len(sensitivities) > 1 else "it"
    )
    rest = f"; {others.format('the others' if len(later) > 1 else 'the other')}" if later else ""
    return f"Even without a hidden common cause, {who} may be no better than {against}{rest}."


def _yardstick(axes: Axes, known: tuple[str, float] | None, furthest: float) -> None:
    """The strength of the strongest covariate, if it is within the axis."""
    if known is not None and known[1] <= furthest:
        axes.axvline(
            known[1],
            color=BLACK,
            linestyle="-.",
            linewidth=1.2,
            label=f"as strong as {known[0]} ({factor(known[1])})",
        )


def _furthest(sensitivities: Sequence[Sensitivity]) -> float:
    """The right end of the axis: a little beyond the largest finite strength, between 2 and 100."""
    known = yardstick(sensitivities)
    strengths = [sensitivity.tipping for sensitivity in sensitivities] + ([] if known is None else [known[1]])
    finite = [sensitivity for sensitivity in strengths if math.isfinite(sensitivity)]
    return min(max([LEAST, *(1.2 * sensitivity for sensitivity in finite)]), MOST)
