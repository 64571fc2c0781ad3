"""A company's prices: the equations that Manage and Market share.

    competitors' raw cost = 10 cost factor,   raw cost = 10 economic index,
    competitors' price = .5 raw cost + 1.3 competitors' raw cost,   own price = 2 raw cost + .4 competitors' raw cost,
    profit = -raw cost + .9 own price,        customers = 1.6 raw cost - .9 own price,

each with normal noise; the cost factor and the economic index are seen, raw cost and own price may be set. Both prices move
together (a bi-directional edge). The released codes list the variables in two orders but give variances by position, so that
the same figures fall on different variables:

    order       raw cost   own price   competitors' price   covariance .016 between
    icml        .03        .06         .06                  raw cost and own price
    neurips24   .06        .06         .03                  competitors' and own price

In the first, the covariance stands where the graph has no bi-directional edge: a little confounding that no method is told of.

Source: Du et al. (2024), Sec. 5 and released code (neurips24); Qin et al. (2025b), Sec. 5 and released code (icml).
"""

import torch

from rehearsal_torch.datasets.linear_law import Drift, LinearLaw
from rehearsal_torch.graphs.rehearsal import RehearsalGraph

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
ORDERS = {
    "icml": ("cost_factor", "economic_index", "competitor_raw_cost", "raw_cost", "self_pricing", "competitor_pricing"),
    "neurips24": ("cost_factor", "economic_index", "competitor_raw_cost", "competitor_pricing", "self_pricing", "raw_cost"),
}
VARIANCES = (0.04, 0.04, 0.06, 0.03, 0.06, 0.06)
SHARED = 0.016  # The covariance of positions 3 and 4, counted from 0.


def market_graph() -> RehearsalGraph:
    """Who influences whom; both prices form a clique."""
    return RehearsalGraph.of(WEIGHTS, [("competitor_pricing", "self_pricing")])


def market_law(order: str, outcomes: tuple[float, float], drift: tuple[Drift, ...] = ()) -> LinearLaw:
    """The equations.

    Args:
        order: "icml" or "neurips24".
        outcomes: Variances of profit and customers.
        drift: How coefficients move.

    Raises:
        ValueError: for another order.
    """
    if order not in ORDERS:
        raise ValueError(f"unknown order {order!r}: choose one of {', '.join(ORDERS)}")
    names, listed = market_graph().names, ORDERS[order]
    variances = dict(zip((*listed, "total_profit", "custom_number"), (*VARIANCES, *outcomes), strict=True))
    covariance = torch.diag(torch.tensor([variances[name] for name in names], dtype=torch.float64))
    one, other = names.index(listed[3]), names.index(listed[4])
    covariance[one, other] = covariance[other, one] = SHARED
    return LinearLaw(names, WEIGHTS, covariance, drift=drift)
