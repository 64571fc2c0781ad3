"""Causal worlds as Gymnasium environments: an episode is a campaign of experiments.

    reset   returns the nodes of the best experiment of the start design
    step    runs the next experiment; returns its nodes, and its reward as the reward

An action is a point of the cube [-1, 1]^k, with -1 at the lower and 1 at the upper bound of each of the k
actions; an action with levels takes the nearest. A campaign ends after the rounds of the world. The noise of
round t is that of the world: every agent meets the same one as the methods of this package. `reset(seed=s)`
takes the world with seed s from there on; without a seed the same campaign starts again.

Source: Ren et al. (2025), Sec. 3 (the protocol); Towers et al. (2024) for the interface.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import torch

from rehearsal_torch.adapters.gymnasium import TRIALS
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.spaces.box import Alteration

# Imported by name, so that type checks pass where it is not installed.
gymnasium: Any = import_module("gymnasium")


class TrialEnvironment(gymnasium.Env):
    """A causal world as an environment.

    Args:
        make: Returns the world of a seed.
        seed: The seed of the first world.
        scored: Whether the ``info`` of each step holds the true ``expected`` reward of the action, and its
            ``regret``; it may take a second for each step.

    Attributes:
        nodes: The names of the numbers of an observation.
    """

    metadata: Mapping[str, Any] = {"render_modes": []}

    def __init__(self, make: Callable[[int], CausalWorld], seed: int = 0, scored: bool = False) -> None:
        self.make, self.scored, self.world = make, scored, make(seed)
        self.nodes, self._box = self.world.task.nodes, self.world.task.box
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(self.nodes),), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (len(self._box.names),), np.float32)
        self.render_mode = None
        self._round = -1

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts a campaign, and returns the nodes of the best experiment of the start design.

        Args:
            seed: If given, the seed of the world from here on.
            options: None are known.
        """
        super().reset(seed=seed)
        if seed is not None and seed != self.world.seed:
            self.world = self.make(seed)
        self._round = 0
        start = self.world.observations()
        rewards = self.world.task.reward_of(start)
        best = int(rewards.argmax())
        values: np.ndarray = start.columns(self.nodes)[best].numpy()
        return values, {"round": 0, "reward": float(rewards[best]), "settings": self._settings(start, best)}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Runs the next experiment of the campaign.

        Raises:
            RuntimeError: before the first `reset`, or after the last round.
            ValueError: if the action is not k finite numbers, or lies outside the limits of the task.
        """
        if not 0 <= self._round < self.world.count():
            raise RuntimeError(
                f"a campaign has {self.world.count()} rounds: call reset() before the next one"
            )
        settings = self.decode(action)
        decision = Decision(Alteration(self._box.names, settings), float("nan"))
        case = self.world.case(self._round)
        row = self.world.respond(case, decision)
        info: dict[str, Any] = {"round": self._round, "settings": self._settings(row, 0)}
        if self.scored:
            expected = float(self.world.expected(settings.unsqueeze(0)))
            info |= {"expected": expected, "regret": self.world.optimal_value - expected}
        self._round += 1
        values: np.ndarray = row.columns(self.nodes)[0].numpy()
        reward = float(self.world.task.reward_of(row).mean())
        return values, reward, self._round == self.world.count(), False, info

    def decode(self, action: Any) -> torch.Tensor:
        """The settings of a point of the cube, (k,), in the actions' units; numbers outside [-1, 1] are
        clamped.

        Raises:
            ValueError: if there are not k finite numbers.
        """
        numbers = torch.as_tensor(np.asarray(action, dtype=np.float64)).reshape(-1)
        names = self._box.names
        if len(numbers) != len(names) or not bool(numbers.isfinite().all()):
            raise ValueError(
                f"expected {len(names)} finite numbers, one for each of {list(names)}; got {numbers.tolist()}"
            )
        return self._box.project(self._box.lower + (numbers.clamp(-1, 1) + 1) / 2 * self._box.width)

    def _settings(self, table: Any, row: int) -> dict[str, float]:
        names = self.world.task.actions
        return dict(zip(names, table.columns(names)[row].tolist(), strict=True))


def trials(
    world: str, rounds: int = 100, seed: int = 0, scored: bool = False, **settings: Any
) -> TrialEnvironment:
    """The environment of a world by name.

    Args:
        world: A name of `adapters.gymnasium.TRIALS`.
        rounds: The experiments of a campaign.
        seed: The seed of the first world.
        settings: Further arguments of the world.

    Raises:
        ValueError: if there is no such world.
    """
    if world not in TRIALS:
        raise ValueError(f"world: expected one of {', '.join(TRIALS)}; got {world!r}")
    made = getattr(import_module(f"rehearsal_torch.problems.causal.{TRIALS[world]}"), world)
    size = settings.pop("size", Rounds(rounds))
    return TrialEnvironment(lambda number: made(**settings, size=size, seed=number), seed, scored)
