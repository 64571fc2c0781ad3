"""A company's prices: the worlds Market and Manage, which share their structural equations.

    competitors' raw cost = 10 cost factor,   raw cost = 10 economic index,
    competitors' price = .5 raw cost + 1.3 competitors' raw cost,
    own price = 2 raw cost + .4 competitors' raw cost,
    profit = -raw cost + .9 own price,        customers = 1.6 raw cost - .9 own price,

each with normal noise; the cost factor and the economic index are observed, raw cost and own price may be
set. The two prices are joined by a bi-directional edge. The released codes list the variables in two orders
but give variances by position, so that the same figures apply to different variables:

    order       raw cost   own price   competitors' price   covariance .016 between
    icml        .03        .06         .06                  raw cost and own price
    neurips24   .06        .06         .03                  competitors' and own price

In the first, the covariance is where the graph has no bi-directional edge: slight confounding that no method
is given.

Market: raw cost and own price may be set within [-3, 3], each by itself or both. Desired are profit >= -.3,
customers >= -.3, and a sum of at least .05. With drift, three coefficients vary as sines of the round.

Manage: raw cost and own price may be set within [-6, 6], both jointly by default; profit and customers should
lie within 1 of (1.2, 1.5). Since methods take convex polytopes, they are given a polygon inscribed in that
circle; they are scored on the circle itself. Its centre would need an own price of 6.33, beyond the box.

Source: Du et al. (2024), Sec. 5 and released code (Market, neurips24); Qin et al. (2025b), Sec. 5 and
released code (Manage, icml).
"""

from collections.abc import Sequence

import torch

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.rehearsal.gaussian_region import Disc
from rehearsal_torch.problems.rehearsal.linear_world import Drift, LinearEquations, LinearWorld
from rehearsal_torch.problems.rehearsal.world import task_of
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.polytope import Polytope

WEIGHTS = {
    "cost_factor": {},
    "economic_index": {},
    "competitor_raw_cost": {"cost_factor": 10.0},
    "raw_cost": {"economic_index": 10.0},
    "competitor_pricing": {"raw_cost": 0.5, "competitor_raw_cost": 1.3},
    "self_pricing": {"raw_cost": 2.0, "competitor_raw_cost": 0.4},
    "total_profit": {"raw_cost": -1.0, "self_pricing": 0.9},
    "custom_number": {"raw_cost": 1.6, "self_pricing": -0.9},
}
CONTEXT = ("cost_factor", "economic_index")
# The order of the variables that the variances are given for.
ORDERS = {
    "icml": (*CONTEXT, "competitor_raw_cost", "raw_cost", "self_pricing", "competitor_pricing"),
    "neurips24": (*CONTEXT, "competitor_raw_cost", "competitor_pricing", "self_pricing", "raw_cost"),
}
VARIANCES = (0.04, 0.04, 0.06, 0.03, 0.06, 0.06)
SHARED = 0.016  # The covariance of positions 3 and 4, counted from 0.


def market_graph() -> RehearsalGraph:
    """The influence graph; both prices form a clique."""
    return RehearsalGraph.of(WEIGHTS, [("competitor_pricing", "self_pricing")])


def market_equations(
    order: str, outcomes: tuple[float, float], drift: tuple[Drift, ...] = ()
) -> LinearEquations:
    """The structural equations.

    Raises:
        ValueError: for another order.
    """
    if order not in ORDERS:
        raise ValueError(f"unknown order {order!r}: choose one of {', '.join(ORDERS)}")
    listed = ORDERS[order]
    variances = dict(zip((*listed, "total_profit", "custom_number"), (*VARIANCES, *outcomes), strict=True))
    shared = {(listed[3], listed[4]): SHARED}
    return LinearEquations.of(WEIGHTS, variances, shared, market_graph().names, drift=drift)


WANTED = Disc(("total_profit", "custom_number"), (1.2, 1.5), 1.0)


class Manage(LinearWorld):
    """The world in which profit and customers should lie in a circle.

    Args:
        order: Which released code's order of the variances: "icml" or "neurips24".
        faces: Number of faces of the polygon that methods are given.
        candidates: Sets of variables that may be set jointly; None for both.
    """

    def __init__(
        self,
        order: str = "icml",
        faces: int = 16,
        candidates: Sequence[Sequence[str]] | None = None,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
    ) -> None:
        bounds = {"raw_cost": (-6.0, 6.0), "self_pricing": (-6.0, 6.0)}
        task = task_of(market_graph(), CONTEXT, bounds, WANTED.polygon(faces), candidates or (tuple(bounds),))
        source = (
            f"Qin et al. (2025b), Manage, variances in the order of the {order} code; desired: within "
            f"{WANTED.radius} of {WANTED.centre}"
        )
        super().__init__(task, market_equations(order, (0.04, 0.12)), source, size, seed, validation, WANTED)


DRIFT = (
    Drift("self_pricing", "custom_number", -0.05, 80.0, 10.0),
    Drift("raw_cost", "self_pricing", 0.5, 12.0),
    Drift("raw_cost", "custom_number", 0.1, 80.0, 10.0),
)


class Market(LinearWorld):
    """The world in which profit and customers must not fall, with or without drift.

    Args:
        order: Which released code's order of the variances: "neurips24" or "icml".
        drift: Whether coefficients vary from round to round.
        candidates: Sets of variables that may be set jointly; None for each by itself and both.
        size: Number of observations and cases; with drift, observations are of rounds 1 ... N, cases of round
            N + 1.
    """

    def __init__(
        self,
        order: str = "neurips24",
        drift: bool = False,
        candidates: Sequence[Sequence[str]] | None = None,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
    ) -> None:
        bounds = {"raw_cost": (-3.0, 3.0), "self_pricing": (-3.0, 3.0)}
        sets = candidates or (("raw_cost",), ("self_pricing",), tuple(bounds))
        normals = torch.tensor([[-1.0, 0.0], [0.0, -1.0], [-1.0, -1.0]], dtype=torch.float64)
        offsets = torch.tensor([0.3, 0.3, -0.05], dtype=torch.float64)
        region = Polytope(("total_profit", "custom_number"), normals, offsets)
        task = task_of(market_graph(), CONTEXT, bounds, region, sets)
        source = (
            f"Du et al. (2024), Market, variances in the order of the {order} code, "
            f"{'with' if drift else 'without'} drift"
        )
        system = market_equations(order, (0.01, 0.04), DRIFT if drift else ())
        super().__init__(task, system, source, size, seed, validation)
