"""Why the centre of the desired region is no goal: a mean at the centroid of a triangle succeeds less often
than another.

An equilateral triangle of side 1, outcomes normal about a mean with deviations s_x along the base and s_y
across it:

    P(Y in S | mean) = integral over heights of phi(h) [Phi((w(h) - m) / s_x) - Phi((-w(h) - m) / s_x)] dh,

w(h) half the width at height h. The paper prints .577 at the centroid and .709 at best, but neither triangle
nor law; with one normal law for all means, s_x = .4154 and s_y = .0400 of a side give both.

Source: Du et al. (2026), Fig. 5; the configuration is recovered from its two figures.
"""

import math

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Polygon
from scipy.special import ndtr

from rehearsal_torch.reporting.style import BLUE, GREEN, VERMILION, panels

ALONG, ACROSS = 0.4153874, 0.0399829
BASE, TOP = -1 / (2 * math.sqrt(3)), 1 / math.sqrt(3)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def success(height: float) -> float:
    """The probability of the triangle around the origin, for a mean on its axis, by quadrature.

    Args:
        height: The mean's distance from the centroid, upwards, in sides.
    """
    at = (TOP - BASE) / 2 * _NODES + (TOP + BASE) / 2
    half = (TOP - at) / math.sqrt(3)
    density = np.exp(-(((at - height) / ACROSS) ** 2) / 2) / (ACROSS * math.sqrt(2 * math.pi))
    return float((TOP - BASE) / 2 * (_WEIGHTS * density * (ndtr(half / ALONG) - ndtr(-half / ALONG))).sum())


def best() -> float:
    """The height of the best mean, to a thousandth of a side."""
    heights = np.linspace(BASE, TOP, 867)
    return float(heights[int(np.argmax([success(float(height)) for height in heights]))])


def draw() -> Figure:
    """The triangle, both means, and the ellipses of one deviation; to be called within `drawing`."""
    figure, [[axes]] = panels(width=5.0, height=4.2)
    axes.add_patch(
        Polygon([(-0.5, BASE), (0.5, BASE), (0.0, TOP)], facecolor=GREEN, alpha=0.15, edgecolor=GREEN)
    )
    for height, colour, name in ((0.0, VERMILION, "mean at the centroid"), (best(), BLUE, "best mean")):
        axes.add_patch(Ellipse((0, height), 2 * ALONG, 2 * ACROSS, facecolor="none", edgecolor=colour))
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
