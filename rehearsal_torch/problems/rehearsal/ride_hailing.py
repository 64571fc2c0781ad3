"""Ride-hailing: a route recommended by an app, and the traffic on it.

    recommend  = weather - users + e_1                          may be set within [-2, 2]
    congestion = -weather + 2 users + 3 recommend + e_2
                 (bi-directional: e_1 and e_2 share noise)
    time       = -weather + 4 congestion + e_3
    discount   = -weather - .5 users + .3 congestion + e_4      may be set within [-2, 2]
    rating     = .5 + (.2 weather - 3 congestion - time + .2 discount) / 60 + e_5

Weather and the number of users are observed, uniform on [-1, 1]; the desired region is a rating in [.8, 1].
Every e has the standard deviation .08. Recommendation and congestion form a clique: they share an additional
noise of variance .008. In observations the regression coefficient of congestion on recommendation is 3.56;
setting the recommendation moves congestion by 3.

Methods are given three candidate graphs: recommend -> congestion, congestion -> recommend, and the clique.

`released` puts the common noise where the released code has it: it is added to both columns after everything
else was computed, and to the one that is not altered, so that it does not propagate.

Source: Qin et al. (2023), Sec. 6, App. E.1 and released code.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.table import Table, positions
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.rehearsal.linear_world import LinearEquations, LinearWorld
from rehearsal_torch.problems.rehearsal.world import task_of
from rehearsal_torch.problems.world_size import SampleSize

CONTEXT = ("weather", "users")
CLIQUE = ("recommend", "congestion")
WEIGHTS = {
    "weather": {},
    "users": {},
    "recommend": {"weather": 1.0, "users": -1.0},
    "congestion": {"weather": -1.0, "users": 2.0, "recommend": 3.0},
    "time": {"weather": -1.0, "congestion": 4.0},
    "discount": {"weather": -1.0, "users": -0.5, "congestion": 0.3},
    "rating": {"weather": 0.2 / 60, "congestion": -3 / 60, "time": -1 / 60, "discount": 0.2 / 60},
}
OWN, SHARED = 0.08**2, 0.008


def ride_hailing_graphs() -> tuple[RehearsalGraph, RehearsalGraph, RehearsalGraph]:
    """recommend -> congestion; congestion -> recommend; and the clique, which is the true graph."""
    rest = {child: tuple(parents) for child, parents in WEIGHTS.items() if child not in CLIQUE}
    above = CONTEXT
    first = RehearsalGraph.of({**rest, "recommend": above, "congestion": (*above, "recommend")})
    second = RehearsalGraph.of({**rest, "recommend": (*above, "congestion"), "congestion": above})
    return first, second, RehearsalGraph.of({**rest, "recommend": above, "congestion": above}, [CLIQUE])


class RideHailing(LinearWorld):
    """The ride-hailing world.

    Args:
        released: Puts the clique's common noise where the released code has it.
        candidates: Sets of variables that may be set jointly; None for each of the two by itself.
        size: Number of observations and cases; the paper begins with 10 observations.

    Attributes:
        hypotheses: The three candidate graphs.
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
        task = task_of(self.hypotheses[-1], CONTEXT, bounds, {"rating": (0.8, 1.0)}, candidates or ())
        structural = 0.0 if released else SHARED
        system = LinearEquations.of(
            WEIGHTS,
            dict.fromkeys(CONTEXT, 1.0)
            | {name: OWN + structural * (name in CLIQUE) for name in WEIGHTS if name not in CONTEXT},
            {CLIQUE: structural},
            intercepts={"rating": 0.5},
            uniform=dict.fromkeys(CONTEXT, (-1.0, 1.0)),
        )
        where = "added afterwards, as in the released code" if released else "is structural"
        source = f"Qin et al. (2023), App. E.1; the clique's noise {where}"
        super().__init__(task, system, source, size, seed, validation)

    def draw(self, count: int, stream: np.random.Generator) -> Table:
        """See `LinearWorld.draw`."""
        return self._blurred(super().draw(count, stream), stream.standard_normal(count))

    def rehearse(self, context: Tensor, names: Sequence[str], values: Tensor, count: int) -> Table:
        """See `LinearWorld.rehearse`."""
        return self._blurred(
            super().rehearse(context, names, values, count), self.stream(4).standard_normal(count)
        )

    def _blurred(self, table: Table, normals: np.ndarray) -> Table:
        if not self.released:
            return table
        common = torch.from_numpy(normals * SHARED**0.5)
        values = table.values.clone()
        for column in positions(table.names, CLIQUE):
            values[:, column] += torch.where(table.altered[:, column], torch.zeros_like(common), common)
        return Table(table.names, values, table.altered)
