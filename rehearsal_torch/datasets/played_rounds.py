"""What an agent did to a world, round by round.

A wrapper around a rehearsal environment that keeps, of the first T rounds, what was altered, whether the outcome was desired,
and the seconds that the agent took. What the agent does between two rounds, such as learning from the first, counts towards
the second. True probabilities are asked for afterwards, all rounds at once: the world knows them in closed form, and it is
quicker so.

Source: Qin et al. (2023), Sec. 6 (success rounds, true success probability).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch

from rehearsal_torch.datasets.rehearsal_environment import RehearsalEnvironment
from rehearsal_torch.datasets.rehearsal_world import RehearsalWorld
from rehearsal_torch.spaces.alteration import Alteration

gymnasium: Any = import_module("gymnasium")


@dataclass(frozen=True)
class PlayedRound:
    """A round that was played.

    Attributes:
        round: Which.
        alteration: What was altered.
        success: Whether the outcome was desired.
        seconds: What the agent took for it, of the processor's time.
    """

    round: int
    alteration: Alteration
    success: bool
    seconds: float


@dataclass(frozen=True)
class Truth:
    """What a world says of a round.

    Attributes:
        probability: Of a desired outcome after what was altered.
        oracle: The largest one possible, over the candidate sets and doing nothing.
    """

    probability: float
    oracle: float


class RecordedEnvironment(gymnasium.Wrapper):
    """An environment whose first rounds are recorded.

    Args:
        environment: What is played; its steps need not be scored.
        rounds: T, how many rounds are kept.

    Attributes:
        played: The rounds so far, T at most.
    """

    def __init__(self, environment: RehearsalEnvironment, rounds: int) -> None:
        super().__init__(environment)
        self.rounds = rounds
        self.played: list[PlayedRound] = []
        self._spent, self._left = 0.0, time.process_time()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """See `RehearsalEnvironment.reset`."""
        self._spent += time.process_time() - self._left
        found = self.env.reset(seed=seed, options=options)
        self._left = time.process_time()
        return found

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """See `RehearsalEnvironment.step`."""
        self._spent += time.process_time() - self._left
        found = self.env.step(action)
        if len(self.played) < self.rounds:
            alteration = self.env.code.decode(torch.as_tensor(action, dtype=torch.float64))
            self.played.append(PlayedRound(found[4]["round"], alteration, found[1] > 0, self._spent))
        self._spent, self._left = 0.0, time.process_time()
        return found


def truths(world: RehearsalWorld, played: Sequence[PlayedRound]) -> list[Truth]:
    """The true probabilities of rounds, one `Truth` a round."""
    if not played:
        return []
    contexts = world.given([world.situation(each.round) for each in played])
    nothing = world.probability(contexts, (), contexts.new_empty(len(played), 0))
    oracle = torch.stack([nothing, *(world.optimal(contexts, names)[1] for names in world.task.candidates)]).amax(0)
    reached = torch.empty(len(played), dtype=torch.float64)
    for names in dict.fromkeys(each.alteration.names for each in played):
        places = [place for place, each in enumerate(played) if each.alteration.names == names]
        values = torch.stack([played[place].alteration.values for place in places])
        reached[places] = world.probability(contexts[places], names, values)
    return [Truth(float(one), float(best)) for one, best in zip(reached, oracle, strict=True)]
