"""The first rounds of an agent in a world, and their true probabilities.

`RecordedEnvironment` keeps, of the first T rounds, the alteration, whether the outcome was desired, and the
processor time that the agent took. What the agent does between two rounds, such as learning from the first,
counts towards the second. True probabilities are computed afterwards for all rounds in one batch (`truths`):
the world knows them in closed form, and this is faster.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch

from rehearsal_torch.adapters.gymnasium import RehearsalEnvironment
from rehearsal_torch.problems.cases.rehearsal_world import RehearsalWorld
from rehearsal_torch.spaces.box import Alteration

gymnasium: Any = import_module("gymnasium")


@dataclass(frozen=True)
class PlayedRound:
    """A recorded round.

    Attributes:
        round: Index of the round.
        alteration: The alteration.
        success: Whether the outcome was desired.
        seconds: Processor time that the agent took.
    """

    round: int
    alteration: Alteration
    success: bool
    seconds: float


@dataclass(frozen=True)
class Truth:
    """The true probabilities of a round.

    Attributes:
        probability: Probability of a desired outcome after the alteration.
        oracle: The largest possible one, over the candidate sets and no action.
    """

    probability: float
    oracle: float


class RecordedEnvironment(gymnasium.Wrapper):
    """An environment whose first rounds are recorded.

    Args:
        environment: The environment; its steps need not be scored.
        rounds: T, the number of rounds to record.

    Attributes:
        played: The rounds so far, at most T.
    """

    def __init__(self, environment: RehearsalEnvironment, rounds: int) -> None:
        super().__init__(environment)
        self.rounds = rounds
        self.played: list[PlayedRound] = []
        self._seconds, self._since = 0.0, time.process_time()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """See `RehearsalEnvironment.reset`."""
        self._seconds += time.process_time() - self._since
        found = self.env.reset(seed=seed, options=options)
        self._since = time.process_time()
        return found

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """See `RehearsalEnvironment.step`."""
        self._seconds += time.process_time() - self._since
        found = self.env.step(action)
        if len(self.played) < self.rounds:
            alteration = self.env.code.decode(torch.as_tensor(action, dtype=torch.float64))
            self.played.append(PlayedRound(found[4]["round"], alteration, found[1] > 0, self._seconds))
        self._seconds, self._since = 0.0, time.process_time()
        return found


def truths(world: RehearsalWorld, played: Sequence[PlayedRound]) -> list[Truth]:
    """The true probabilities of rounds, one `Truth` per round."""
    if not played:
        return []
    contexts = world.given([world.case(each.round) for each in played])
    no_action = world.probability(contexts, (), contexts.new_empty(len(played), 0))
    oracle = torch.stack(
        [no_action, *(world.optimal(contexts, names)[1] for names in world.task.candidates)]
    ).amax(0)
    reached = torch.empty(len(played), dtype=torch.float64)
    for names in dict.fromkeys(each.alteration.names for each in played):
        places = [place for place, each in enumerate(played) if each.alteration.names == names]
        values = torch.stack([played[place].alteration.values for place in places])
        reached[places] = world.probability(contexts[places], names, values)
    return [Truth(float(one), float(best)) for one, best in zip(reached, oracle, strict=True)]
