"""Why the centre of the desired region is not the best aim: a mean at the centroid of a triangle has a lower
probability of success than another mean.

For an equilateral triangle of side 1, and normal outcomes with standard deviations s_x along the base and s_y
across it,

    P(Y in S | mean) = integral over heights of phi(h) [Phi((w(h) - m) / s_x) - Phi((-w(h) - m) / s_x)] dh,

where w(h) is half the width at height h. The paper prints .577 at the centroid and .709 for the best mean,
but neither the triangle nor the distribution; with the same covariance for all means, s_x = .4154 and
s_y = .0400 of a side give both.

Source: Du et al. (2026), Fig. 5; the configuration is recovered from its two figures.
"""

import math

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Polygon
from scipy.special import ndtr

from rehearsal_torch.reporting.figure_style import BLUE, GREEN, VERMILION, panels

# Standard deviations along the base and across it, in sides.
STD_X, STD_Y = 0.4153874, 0.0399829
# Heights of the base and of the apex above the centroid, in sides.
BASE, TOP = -1 / (2 * math.sqrt(3)), 1 / math.sqrt(3)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def success(height: float) -> float:
    """Probability that the outcome lies in the triangle, by quadrature, for a mean on the axis of symmetry.

    Args:
        height: Height of the mean above the centroid, in sides.
    """
    at = (TOP - BASE) / 2 * _NODES + (TOP + BASE) / 2
    half = (TOP - at) / math.sqrt(3)
    density = np.exp(-(((at - height) / STD_Y) ** 2) / 2) / (STD_Y * math.sqrt(2 * math.pi))
    return float((TOP - BASE) / 2 * (_WEIGHTS * density * (ndtr(half / STD_X) - ndtr(-half / STD_X))).sum())


def best() -> float:
    """Height of the best mean above the centroid, to a thousandth of a side."""
    heights = np.linspace(  # Heights of the base and of the apex above the centroid, in sides.
        BASE, TOP, 867
    )
    return float(heights[int(np.argmax([success(float(height)) for height in heights]))])


def draw() -> Figure:
    """The triangle, both means, and ellipses of one standard deviation; to be called within `drawing`."""
    figure, [[axes]] = panels(width=5.0, height=4.2)
    axes.add_patch(
        Polygon([(-0.5, BASE), (0.5, BASE), (0.0, TOP)], facecolor=GREEN, alpha=0.15, edgecolor=GREEN)
    )
    for height, colour, name in ((0.0, VERMILION, "mean at the centroid"), (best(), BLUE, "best mean")):
        axes.add_patch(Ellipse((0, height), 2 * STD_X, 2 * STD_Y, facecolor="none", edgecolor=colour))
        axes.plot([0], [height], "o", color=colour, label=f"{name}: {success(height):.3f}")
    axes.set(
        xlim=(-0.75, 0.75),
        ylim=(-0.42, 0.95),
        xlabel="First outcome (sides)",
        ylabel="Second outcome (sides)",
        aspect="equal",
    )
    axes.legend(loc="upper center")
    return figure
