"""Facility-Location: anchor states of A* that were observed in other episodes, chosen one at a time, each
farthest from those already chosen.

Since every state's distance to the nearest chosen one is stored, b choices among n states cost O(n b)
distances.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 4 and App. F, Eq. 18.
"""

from typing import final

import torch
from torch import Tensor

from rehearsal_torch.data.table import Table
from rehearsal_torch.search.sequences.astar import Anchors
from rehearsal_torch.search.sequences.decision_process import CounterfactualProcess
from rehearsal_torch.seeding import stream
from rehearsal_torch.surrogates.transition import TransitionModel


@final
class FacilityLocation(Anchors):
    """Farthest-point sampling of states observed in other episodes; every time step uses the same set.

    Args:
        pool: Observed states, (n, D) in the coordinates of the trajectories; or a table of transitions in
            clinical units, which a transition model scales.
        size: b, number of states selected (all, if there are fewer).
        seed: Determines the first state.

    Raises:
        ValueError: if `size` is below 1 or the pool is empty.
    """

    def __init__(self, pool: Tensor | Table, size: int = 500, seed: int = 0) -> None:
        if size < 1 or not len(pool):
            raise ValueError(
                f"expected a size of at least 1 and a pool of states; got size={size} and {len(pool)} states"
            )
        self.pool, self.size, self.seed = pool, size, seed
        self._chosen: tuple[object, Tensor] | None = None

    def __call__(self, process: CounterfactualProcess, lipschitz: Tensor) -> list[Tensor]:  # noqa: ARG002
        """The same tensor (b, D) for each of the T time steps."""
        surrogate = process.objective.surrogate
        if self._chosen is None or self._chosen[0] is not surrogate:
            if isinstance(self.pool, Tensor):
                pool = self.pool
            elif isinstance(surrogate, TransitionModel):
                pool = surrogate.examples(self.pool)[0][:, : len(surrogate.names)]
            else:
                raise ValueError(
                    f"expected a tensor of states for a {type(surrogate).__name__}; got a table, which only "
                    "a TransitionModel can scale"
                )
            first = int(torch.randint(len(pool), (), generator=stream(self.seed, "facility location")))
            self._chosen = (
                surrogate,
                pool[farthest_points(pool.to(process.trajectory.states), self.size, first)].to(
                    process.trajectory.states
                ),
            )
        return [self._chosen[1]] * process.horizon


def farthest_points(points: Tensor, count: int, first: int = 0) -> Tensor:
    """Indices (<= count,) of points (n, D), each farthest from those before it; the covering radius is at
    most twice the optimal one.
    """
    chosen = [first]
    nearest = (points - points[first]).square().sum(-1)
    for _ in range(min(count, len(points)) - 1):
        farthest = int(nearest.argmax())
        if nearest[farthest] == 0:
            break
        chosen.append(farthest)
        nearest = torch.minimum(nearest, (points - points[farthest]).square().sum(-1))
    return torch.tensor(chosen, device=points.device)
