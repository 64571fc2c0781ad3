"""A world that changes over time: two stores, one of which follows the other's price until it stops.

    observations ~ the world of round 0;
    case t, what follows a decision in it, and its oracle: the world of round t.

A correct decision may become wrong without any sign of it in passive observations. The index of a case is its
round. Two stores:

    price     = .3 season + e_1                                       may be set within [-4, 4]
    rival     = .3 season + f_t price + e_2                           the second store's price
    advert    = .2 season + e_3                                       may be set within [-2, 2]
    customers = .5 season - .6 price + 1.2 rival + .3 advert + e_4    desired in [.8, 1.6]

At first f = 1: the rival follows a price increase, which gains .6 customers per unit. From round `change` on
f falls to 0: a price increase loses .6. The noises e_1 and e_2 are jointly normal such that price and rival
have the same joint distribution *for every f*: the prices remain correlated as before, and only interventions
reveal the difference.

Methods are given three candidate graphs: price <-> rival (true throughout, with changing parameters of its
altered part), price -> rival (true at first) and rival -> price (in effect after the change: the same
observations, and setting the price has no effect on the rival).

Source: Qin et al. (2023), Sec. 2 (time-dependent models, the two stores of Fig. 2d); the figures are ours.
"""

from collections.abc import Mapping
from copy import copy
from functools import lru_cache
from typing import Any, Self

from torch import Tensor

from rehearsal_torch.data.decision import Decision, DecisionContext, RehearsalCase
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.cases.linear_world import LinearEquations, LinearWorld
from rehearsal_torch.problems.cases.rehearsal_world import task_of
from rehearsal_torch.problems.problem import RehearsalProblem, Verdict, World
from rehearsal_torch.problems.world_size import SampleSize, setting

PARENTS = {
    "price": ("season",),
    "rival": ("season",),
    "advert": ("season",),
    "customers": ("season", "price", "rival", "advert"),
}
CLIQUE = ("price", "rival")
VARIANCES = {"season": 0.25, "price": 0.04, "advert": 0.04, "customers": 0.0225}
LEFT = 0.01  # The variance of the rival given the price.


def two_stores_graphs() -> tuple[RehearsalGraph, RehearsalGraph, RehearsalGraph]:
    """price <-> rival, price -> rival, rival -> price."""
    clique = RehearsalGraph.of(PARENTS, [CLIQUE])
    follows = RehearsalGraph.of({**PARENTS, "rival": ("season", "price")})
    leads = RehearsalGraph.of({**PARENTS, "price": ("season", "rival")})
    return clique, follows, leads


class FollowedStore(LinearWorld):
    """The stores with a constant f, `follows`, in [0, 1]."""

    def __init__(
        self, follows: float = 1.0, size: SampleSize = SampleSize(), seed: int = 0, validation: float = 0.0
    ) -> None:
        if not 0 <= follows <= 1:
            raise ValueError(f"expected follows in [0, 1]; got {follows}")
        self.follows, self.hypotheses = follows, two_stores_graphs()
        weights = {
            "price": {"season": 0.3},
            # The rival's direct effect of the season compensates for the missing effect through the price.
            "rival": {"season": 0.3 + 0.3 * (1.0 - follows), "price": follows},
            "advert": {"season": 0.2},
            "customers": {"season": 0.5, "price": -0.6, "rival": 1.2, "advert": 0.3},
        }
        variances = VARIANCES | {"rival": LEFT + (1 - follows) ** 2 * VARIANCES["price"]}
        shared = {CLIQUE: (1 - follows) * VARIANCES["price"]}
        bounds = {"price": (-4.0, 4.0), "advert": (-2.0, 2.0)}
        task = task_of(self.hypotheses[0], ("season",), bounds, {"customers": (0.8, 1.6)})
        system = LinearEquations.of(weights, variances, shared, ("season", *PARENTS))
        source = f"after Qin et al. (2023), Fig. 2d: the second store follows by {follows:g}"
        super().__init__(task, system, source, size, seed, validation)


class TwoStores(World, RehearsalProblem):
    """The stores, round by round; all rounds have the same task.

    Args:
        change: The first round in which the second store follows less; None for never.
        size: Number of observations before the first round, and of rounds; by default 10 and 100.
        seed: Seed of observations and contexts.
        validation: Share of the N rows that is held out from `observations`.
    """

    def __init__(
        self,
        change: int | None = 50,
        size: SampleSize = SampleSize(rows=10, contexts=100),
        seed: int = 0,
        validation: float = 0.0,
    ) -> None:
        if change is not None and change < 0:
            raise ValueError(f"expected change >= 0; got {change}")
        self.change, self.validation = change, validation
        self.hypotheses = two_stores_graphs()
        self.size, self.seed = setting("size", size, SampleSize), seed
        self.task = self.at(0).task

    def follows(self, index: int) -> float:
        """f at a round."""
        return 1.0 if self.change is None or index < self.change else 0.0

    def at(self, index: int) -> FollowedStore:
        """The stores at a round; the same object where nothing has changed."""
        return self._cached_store(self.follows(index))

    @lru_cache(maxsize=64)  # noqa: B019  a few worlds, as long-lived as this one
    def _cached_store(self, follows: float) -> FollowedStore:
        return FollowedStore(follows, self.size, self.seed, self.validation)

    def reseeded(self, seed: int) -> Self:
        """The same world, which changes in the same rounds, with another seed."""
        world = copy(self)
        world.seed = seed
        return world

    def desired(self, outcomes: Tensor) -> Tensor:
        """Whether outcomes (..., |Y|) are desired, (...) bool."""
        return self.at(0).desired(outcomes)

    def verdict(self, answer: Table) -> Verdict:
        """Whether the outcomes of all rows are desired."""
        return Verdict(success=bool(self.desired(answer.columns(self.task.outcomes)).all()))

    def observations(self) -> Table:
        """Those of the first round's world."""
        return self.at(0).observations()

    def held_out(self) -> Table:
        """Held-out rows of the first round's world."""
        return self.at(0).held_out()

    def count(self) -> int:
        """The number of rounds."""
        return self.size.contexts

    def case(self, index: int) -> RehearsalCase:
        """The context of a round."""
        if not 0 <= index < self.size.contexts:
            raise IndexError(f"expected a round in 0 ... {self.size.contexts - 1}; got {index}")
        return self.at(index).case(index)

    def respond(self, case: DecisionContext, decision: Decision) -> Table:
        """The row that follows a decision in its round."""
        return self._world_of(case).respond(case, decision)

    def optimum(self, case: DecisionContext) -> float:
        """The oracle of the round."""
        return self._world_of(case).optimum(case)

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:
        """The scores of `RehearsalWorld.score`, in the case's round."""
        return self._world_of(case).score(case, decision)

    def card(self) -> Mapping[str, Any]:
        """The card of the first round's world, with this world's name."""
        return {**self.at(0).card(), "world": type(self).__name__, "rounds": self.size.contexts}

    def _world_of(self, case: DecisionContext) -> FollowedStore:
        if not isinstance(case, RehearsalCase):
            raise TypeError(f"expected a RehearsalCase; got a {type(case).__name__}")
        return self.at(int(case.identity))
