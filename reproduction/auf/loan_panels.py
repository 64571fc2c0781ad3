"""Three panels for one borrower: outcomes without action, estimated probabilities, outcomes of decisions.

The middle panel shows the true P(Y in S | x, do(a)), the nested estimate, which adjusts for the sector's
stability, and the single estimate of P(Y in S | x, A = a), which does not. The right panel shows the outcomes
at the rates where either estimate is largest.

Source: Du et al. (2026), Fig. 3.
"""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from rehearsal_torch.reporting.figure_style import BLACK, BLUE, GREEN, VERMILION, panels

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Selection:
    """The estimate of one estimator, and the rate that it selects.

    Attributes:
        curve: (n,), the estimated probability at each rate.
        rate: The rate with the largest estimate.
        outcomes: (m, 2), repayment and return at that rate.
        probability: The true probability of a desired outcome at that rate.
    """

    curve: Array
    rate: float
    outcomes: Array
    probability: float


@dataclass(frozen=True)
class Loan:
    """The data of the three panels.

    Attributes:
        rates: (n,), interest rates.
        truth: (n,), the true probability of a desired outcome at each rate.
        unaltered: (m, 2), repayment and return with no action.
        no_action: The true probability of a desired outcome with no action.
        single: The estimator without adjustment.
        nested: The estimator with adjustment.
    """

    rates: Array
    truth: Array
    unaltered: Array
    no_action: float
    single: Selection
    nested: Selection


def draw(loan: Loan) -> Figure:
    """Three panels; to be called within `drawing`.

    Args:
        loan: The data of the panels.
    """
    figure, [[left, middle, right]] = panels(1, 3, width=4.4, height=4.0)
    left.plot(*loan.unaltered.T, ".", color=BLACK, markersize=2, alpha=0.35)
    left.set_title(f"No action: {loan.no_action:.3f} desired")
    middle.plot(loan.rates, loan.truth, "-", color=BLACK, label="truth")
    for one, colour, dash, name in (
        (loan.nested, BLUE, "--", "nested estimate"),
        (loan.single, VERMILION, "-.", "single estimate"),
    ):
        middle.plot(loan.rates, one.curve, dash, color=colour, label=name)
        middle.axvline(one.rate, color=colour, linewidth=0.8)
        right.plot(*one.outcomes.T, ".", color=colour, markersize=2, alpha=0.35)
    middle.set(
        xlabel="Interest rate",
        ylabel="Probability of a desired outcome",
        ylim=(0, 1.02),
        title="Which rate is best?",
    )
    middle.legend(loc="lower left")
    right.set_title(f"Nested: {loan.nested.probability:.3f} desired, single: {loan.single.probability:.3f}")
    for axes in (left, right):
        _region(axes)
    return figure


def _region(axes: Axes) -> None:
    """The desired corner: repayment from .6 and return from .3 on."""
    axes.set(xlabel="Repayment", ylabel="Return", xlim=(0.2, 1.05), ylim=(-0.25, 1.3))
    axes.add_patch(Rectangle((0.6, 0.3), 1, 2, facecolor=GREEN, alpha=0.15, edgecolor=GREEN))
