"""Agents that learn by trying: one decision a round, a reward of 1 where the outcome is desired.

    maximise  sum_t 1[Y_t in S]    with a_t chosen from x_t and (x_s, a_s, 1[Y_s in S]), s < t

Neither a graph nor the observations made beforehand are told to them; that is what structure is compared
with.

Source: Qin et al. (2023), Sec. 6 and Tab. 1.
"""

from abc import ABC, abstractmethod
from typing import Any, final


class Agent(ABC):
    """What plays an environment of one step an episode."""

    @abstractmethod
    def play(self, environment: Any, rounds: int, seed: int) -> None:
        """Plays at least so many rounds, and learns from them as it goes.

        Args:
            environment: A Gymnasium environment around a `RehearsalEnvironment`.
            rounds: How many.
            seed: Decides everything that the agent leaves to chance.
        """


@final
class UniformAgent(Agent):
    """Learns nothing: every action is uniform on the cube. What chance reaches."""

    def play(self, environment: Any, rounds: int, seed: int) -> None:
        """See `Agent.play`."""
        environment.action_space.seed(seed)
        for _ in range(rounds):
            environment.reset()
            environment.step(environment.action_space.sample())
