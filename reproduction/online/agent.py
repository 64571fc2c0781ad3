"""Agents of reinforcement learning: one action per round, with reward 1 if the outcome is desired.

    maximise  sum_t 1[Y_t in S]    with a_t chosen from x_t and (x_s, a_s, 1[Y_s in S]), s < t

Agents are given neither a graph nor the initial observations; they show what structural knowledge adds.

Source: Qin et al. (2023), Sec. 6 and Tab. 1.
"""

from abc import ABC, abstractmethod
from typing import Any, final


class Agent(ABC):
    """An agent for environments whose episodes have a single step."""

    @abstractmethod
    def play(self, environment: Any, rounds: int, seed: int) -> None:
        """Plays rounds and learns from each of them.

        Args:
            environment: A Gymnasium environment that wraps a `RehearsalEnvironment`.
            rounds: Minimum number of rounds.
            seed: Seed of all random choices of the agent.
        """


@final
class UniformAgent(Agent):
    """A baseline that does not learn: every action is uniform on the cube."""

    def play(self, environment: Any, rounds: int, seed: int) -> None:
        """See `Agent.play`."""
        environment.action_space.seed(seed)
        for _ in range(rounds):
            environment.reset()
            environment.step(environment.action_space.sample())
