"""Worlds that change: at round t another law holds than at round t - 1.

    observations ~ the world of round 0;     situation t, what follows a decision in it, and its oracle: the world of round t.

A decision that was right may become wrong without a sign of it in what is merely observed. Rounds come in order; the index of
a situation is its round.

Source: Qin et al. (2023), Sec. 2 (time-dependent models, Fig. 2d).
"""

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import Any, Self

from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.situation import Foresight, Situation
from rehearsal_torch.data.table import Table
from rehearsal_torch.datasets.problem import World
from rehearsal_torch.datasets.rehearsal_problem import RehearsalProblem
from rehearsal_torch.datasets.rehearsal_world import RehearsalWorld


class ChangingWorld(World, RehearsalProblem):
    """A world for every round; all have the same task.

    Args:
        contexts: How many rounds there are.

    Attributes:
        seed: Decides observations and contexts; `at` makes its worlds with it.

    Raises:
        ValueError: if there is none.
    """

    seed: int = 0

    def __init__(self, contexts: int) -> None:
        if contexts < 1:
            raise ValueError(f"expected at least 1 round; got contexts={contexts}")
        self.contexts = contexts
        self.task = self.at(0).task

    @abstractmethod
    def at(self, index: int) -> RehearsalWorld:
        """The world of a round, 0 ... contexts - 1; the same object where nothing has changed."""

    def reseeded(self, seed: int) -> Self:
        """The same world with another seed, hence with other observations, contexts and noise; it changes in the same rounds."""
        made = copy(self)
        made.seed = seed
        return made

    def desired(self, outcomes: Tensor) -> Tensor:
        """Whether outcomes (..., |Y|) are desired, (...) bool."""
        return self.at(0).desired(outcomes)

    def observations(self) -> Table:
        """Rows of the first round's world."""
        return self.at(0).observations()

    def held_out(self) -> Table:
        """Other rows of the first round's world."""
        return self.at(0).held_out()

    def count(self) -> int:
        """How many rounds."""
        return self.contexts

    def situation(self, index: int) -> Foresight:
        """The context of a round."""
        if not 0 <= index < self.contexts:
            raise IndexError(f"expected a round in 0 ... {self.contexts - 1}; got {index}")
        return self.at(index).situation(index)

    def respond(self, situation: Situation, decision: Decision) -> Table:
        """The row that follows a decision in its round."""
        return self._of(situation).respond(situation, decision)

    def optimum(self, situation: Situation) -> float:
        """The oracle of the round."""
        return self._of(situation).optimum(situation)

    def score(self, situation: Situation, decision: Decision) -> Mapping[str, float]:
        """The scores of `RehearsalWorld.score`, in the round."""
        return self._of(situation).score(situation, decision)

    def card(self) -> Mapping[str, Any]:
        """The card of the first round's world, under this world's name."""
        return {**self.at(0).card(), "world": type(self).__name__, "rounds": self.contexts}

    def _of(self, situation: Situation) -> RehearsalWorld:
        if not isinstance(situation, Foresight):
            raise TypeError(f"expected a Foresight; got a {type(situation).__name__}")
        return self.at(int(situation.identity))
