"""Worlds of linear equations with normal noise: Lin-Syn1, ride-hailing, and prices (Market and Manage).

Lin-Syn1: the desired region is Y1 and Y2 in [0, 2]. Read as a variance, 0.1 gives the no-action and the best
probability of the paper's table; as a standard deviation the best would be 1. A1 is correlated with X1 so
closely that for most contexts few other actions were observed. With `confounding` = Gamma > 1 a hidden common
cause h = +-1 of strength Gamma raises A2 and adds .4 h to Y1 (`problems.cases.hidden_cause`; ours).

Ride-hailing: a route recommended by an app, and the traffic on it. Weather and the number of users are
observed, uniform on [-1, 1]; every other noise has the standard deviation .08. Recommendation and congestion
form a clique: they share an additional noise of variance .008. In observations the regression coefficient of
congestion on recommendation is 3.56; setting the recommendation moves congestion by 3. Methods are given
three candidate graphs: recommend -> congestion, congestion -> recommend, and the clique. `released` puts the
common noise where the released code has it: it is added to both columns, but to none that is set, after
everything else was computed, so that it does not propagate. Recommendation and discount may be set; a rating
in [.8, 1] is desired.

A company's prices: the cost factor and the economic index are observed, raw cost and own price may be set.
The two prices are joined by a bi-directional edge. The released codes list the variables in two orders but
give variances by position, so that the same figures apply to different variables:

    order       raw cost   own price   competitors' price   covariance .016 between
    icml        .03        .06         .06                  raw cost and own price
    neurips24   .06        .06         .03                  competitors' and own price

In the first, the covariance is where the graph has no bi-directional edge: slight confounding that no method
is given. In Market profit >= -.3, customers >= -.3, and a sum of at least .05 are desired; with drift, three
coefficients vary as sines of the round. In Manage profit and customers should lie within 1 of (1.2, 1.5).
Since methods take convex polytopes, they are given a polygon inscribed in that circle; they are scored on the
circle itself. Its centre would need an own price of 6.33, beyond the box.

Source: Du et al. (2026), App. E.1 (Lin-Syn1); Qin et al. (2023), Sec. 6, App. E.1 and released code
(ride-hailing); Du et al. (2024), Sec. 5 and released code (Market, neurips24); Qin et al. (2025b), Sec. 5 and
released code (Manage, icml).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.records import positions
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.cases.equation_world import std
from rehearsal_torch.problems.cases.gaussian_region_probability import Disc
from rehearsal_torch.problems.cases.hidden_cause import HiddenCause
from rehearsal_torch.problems.cases.linear_world import Drift, LinearEquations, LinearWorld
from rehearsal_torch.problems.cases.rehearsal_world import task_of
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.polytope import Polytope

BEFORE_RIDES = ("weather", "users")
CLIQUE = ("recommend", "congestion")
RIDES = {
    "weather": {},
    "users": {},
    "recommend": {"weather": 1.0, "users": -1.0},
    "congestion": {"weather": -1.0, "users": 2.0, "recommend": 3.0},
    "time": {"weather": -1.0, "congestion": 4.0},
    "discount": {"weather": -1.0, "users": -0.5, "congestion": 0.3},
    "rating": {"weather": 0.2 / 60, "congestion": -3 / 60, "time": -1 / 60, "discount": 0.2 / 60},
}
RIDES_OWN, RIDES_SHARED = 0.08**2, 0.008


def ride_hailing_graphs() -> tuple[RehearsalGraph, RehearsalGraph, RehearsalGraph]:
    """recommend -> congestion; congestion -> recommend; and the clique, which is the true graph."""
    rest = {child: tuple(parents) for child, parents in RIDES.items() if child not in CLIQUE}
    shared = rest | dict.fromkeys(CLIQUE, BEFORE_RIDES)
    first = RehearsalGraph.of(shared | {"congestion": (*BEFORE_RIDES, "recommend")})
    second = RehearsalGraph.of(shared | {"recommend": (*BEFORE_RIDES, "congestion")})
    return first, second, RehearsalGraph.of(shared, [CLIQUE])


class RideHailing(LinearWorld):
    """The ride-hailing world.

    Args:
        released: Puts the clique's common noise where the released code has it.
        candidates: Sets of variables that may be set jointly; None for each of the two by itself.
        size: Number of observations and cases; the paper begins with 10 observations.
    """

    def __init__(
        self,
        released: bool = False,
        candidates: Sequence[Sequence[str]] | None = None,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
    ) -> None:
        self.released = released
        self.hypotheses = ride_hailing_graphs()
        bounds = {"recommend": (-2.0, 2.0), "discount": (-2.0, 2.0)}
        task = task_of(self.hypotheses[-1], BEFORE_RIDES, bounds, {"rating": (0.8, 1.0)}, candidates or ())
        structural = 0.0 if released else RIDES_SHARED
        system = LinearEquations.of(
            RIDES,
            dict.fromkeys(BEFORE_RIDES, 1.0)
            | {name: RIDES_OWN + structural * (name in CLIQUE) for name in RIDES if name not in BEFORE_RIDES},
            {CLIQUE: structural},
            intercepts={"rating": 0.5},
            uniform=dict.fromkeys(BEFORE_RIDES, (-1.0, 1.0)),
        )
        placement = "added afterwards, as in the released code" if released else "is structural"
        source = f"Qin et al. (2023), App. E.1; the clique's noise {placement}"
        super().__init__(task, system, source, size, seed, validation)

    def draw(self, count: int, stream: np.random.Generator) -> Table:
        """Observed rows."""
        return self._add_common_noise(super().draw(count, stream), stream.standard_normal(count))

    def rehearse(self, context: Tensor, names: Sequence[str], values: Tensor, count: int) -> Table:
        """Rows after an alteration."""
        rows = super().rehearse(context, names, values, count)
        return self._add_common_noise(rows, self.stream(4).standard_normal(count))

    def _add_common_noise(self, table: Table, normals: np.ndarray) -> Table:
        if not self.released:
            return table
        common = torch.from_numpy(normals * RIDES_SHARED**0.5)
        values = table.values.clone()
        for column in positions(table.names, CLIQUE):
            values[:, column] += torch.where(table.altered[:, column], torch.zeros_like(common), common)
        return Table(table.names, values, table.altered)


LIN_SYN1 = {
    "X1": {},
    "X2": {},
    "U2": {"X2": 10.0},
    "A1": {"X1": 10.0},
    "U1": {"A1": 0.5, "U2": 1.3},
    "A2": {"A1": 2.0, "U2": 0.4},
    "Y1": {"A1": -1.0, "A2": 0.9},
    "Y2": {"A1": 1.6, "A2": -0.9},
}


class LinSyn1(LinearWorld):
    """Lin-Syn1.

    Args:
        reading: How N(0, 0.1) is read: "variance" or "std".
        candidates: Sets of variables that may be set jointly; None for {A1, A2}.
        confounding: Gamma, the strength of a hidden common cause of A2 and Y1; 1 is none.
    """

    def __init__(
        self,
        reading: str = "variance",
        candidates: Sequence[Sequence[str]] | None = None,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
        confounding: float = 1.0,
    ) -> None:
        bounds = {"A1": (-3.0, 3.0), "A2": (-3.0, 3.0)}
        region = {"Y1": (0.0, 2.0), "Y2": (0.0, 2.0)}
        task = task_of(LIN_SYN1, ("X1", "X2"), bounds, region, candidates or (("A1", "A2"),))
        system = LinearEquations.of(LIN_SYN1, dict.fromkeys(LIN_SYN1, std(0.1, reading) ** 2))
        meaning = "variance" if reading == "variance" else "standard deviation"
        source = f"Du et al. (2026), App. E.1, Lin-Syn1, with 0.1 read as a {meaning}"
        hidden = HiddenCause.of_strength("A2", {"Y1": 0.4}, confounding)
        super().__init__(task, system, source, size, seed, validation, hidden=hidden)


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

MARKET = RehearsalGraph.of(WEIGHTS, [("competitor_pricing", "self_pricing")])


def _market_equations(
    order: str, outcomes: tuple[float, float], drift: tuple[Drift, ...] = ()
) -> LinearEquations:
    if order not in ORDERS:
        raise ValueError(f"unknown order {order!r}: choose one of {', '.join(ORDERS)}")
    variables = ORDERS[order]
    variances = dict(zip((*variables, "total_profit", "custom_number"), (*VARIANCES, *outcomes), strict=True))
    shared = {(variables[3], variables[4]): SHARED}
    return LinearEquations.of(WEIGHTS, variances, shared, MARKET.names, drift=drift)


WANTED = Disc(("total_profit", "custom_number"), (1.2, 1.5), 1.0)


class Manage(LinearWorld):
    """The world in which profit and customers should lie in a circle.

    Args:
        order: Which released code's order of the variances: "icml" or "neurips24".
        faces: Of the polygon that methods are given.
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
        task = task_of(MARKET, CONTEXT, bounds, WANTED.polygon(faces), candidates or (tuple(bounds),))
        region = f"within {WANTED.radius} of {WANTED.centre}"
        source = f"Qin et al. (2025b), Manage, variances in the order of the {order} code; desired: {region}"
        super().__init__(task, _market_equations(order, (0.04, 0.12)), source, size, seed, validation, WANTED)


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
        size: Number of observations and cases; with drift, of rounds 1 ... N and of round N + 1.
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
        normals = np.array([[-1.0, 0.0], [0.0, -1.0], [-1.0, -1.0]])
        offsets = np.array([0.3, 0.3, -0.05])
        region = Polytope(("total_profit", "custom_number"), normals, offsets)
        task = task_of(MARKET, CONTEXT, bounds, region, sets)
        drift_text = f"{'with' if drift else 'without'} drift"
        source = f"Du et al. (2024), Market, variances in the order of the {order} code, {drift_text}"
        system = _market_equations(order, (0.01, 0.04), DRIFT if drift else ())
        super().__init__(task, system, source, size, seed, validation)
