"""Rehearsal worlds as Gymnasium environments, with one decision per episode.

    reset   returns the context of the next round
    step    applies an alteration; the reward is 1 if the outcome is desired, else 0

The world determines what happens in round t; an agent that is run for as many episodes as the world has
rounds meets the same rounds as a rehearsal method. After the last round the first one follows again.
`reset(seed=s)` starts at the first round of the same world with seed s: equal seeds give equal contexts and
noise, different seeds different ones.

An agent's action is a point of the cube [-1, 1]^(m + k), for m candidate sets and k variables that occur in
some of them (`AlterationCode`): the largest of the first m numbers selects the candidate set, and the others
are the values, with -1 at the lower and 1 at the upper bound; values of variables outside the set are
ignored. With a single candidate set there is nothing to select, and m = 0.

Needs Gymnasium (`pip install "rehearsal-torch[rl]"`), as nothing else in the package does. Importing this
module registers ``rehearsal_torch/NAME-v0`` for RideHailing and Bermuda, for Sepsis and Machines
(`adapters.episode_environment`), and for the causal worlds (`adapters.trial_environment`): their modules are
imported when an environment is made.

Source: Qin et al. (2023), Sec. 6 (reinforcement learning on the same task; reward: whether the outcome falls
into S; success rounds, true success probability); Towers et al. (2024) for the interface. The encoding of an
alteration as a point is ours.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.problems.rehearsal.bermuda import Bermuda
from rehearsal_torch.problems.rehearsal.changing_world import ChangingWorld
from rehearsal_torch.problems.rehearsal.linear_worlds import RideHailing
from rehearsal_torch.problems.rehearsal.world import RehearsalWorld
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Alteration


class AlterationCode:
    """The encoding of a task's alterations as points of a cube.

    Args:
        task: Roles and bounds of the variables.

    Attributes:
        choices: m, the number of candidate sets; 0 if there is only one.
        names: The k variables that some candidate set alters.
        size: m + k.
    """

    def __init__(self, task: RehearsalTask) -> None:
        self.candidates = task.candidates
        self.names = tuple(name for name in task.box.names if any(name in names for names in task.candidates))
        self.box = task.box.only(self.names)
        self.choices = len(self.candidates) if len(self.candidates) > 1 else 0
        self.size = self.choices + len(self.names)

    def decode(self, point: Sequence[float] | Tensor) -> Alteration:
        """The alteration of a point (m + k,); values outside [-1, 1] are clamped, and a variable with levels
        takes the nearest.

        Raises:
            ValueError: if the point has another size, or a number is not finite.
        """
        numbers = torch.as_tensor(point, dtype=torch.float64).detach().reshape(-1)
        if len(numbers) != self.size or not bool(numbers.isfinite().all()):
            raise ValueError(
                f"expected {self.size} finite numbers, {self.choices} for the set and one each for "
                f"{list(self.names)}; got {numbers.tolist()}"
            )
        names = self.candidates[int(numbers[: self.choices].argmax())] if self.choices else self.candidates[0]
        values = self.box.lower + (numbers[self.choices :].clamp(-1.0, 1.0) + 1) / 2 * self.box.width
        values = self.box.project(values) if self.box.levels else values
        return Alteration(names, values[[self.names.index(name) for name in names]])

    def encode(self, alteration: Alteration) -> Tensor:
        """A point (m + k,) that decodes to an alteration; variables outside its candidate set are at the
        centre.

        Raises:
            ValueError: if the altered variables are not a candidate set.
        """
        if tuple(alteration.names) not in self.candidates:
            raise ValueError(
                f"expected an alteration of one of {[list(names) for names in self.candidates]}; got "
                f"{list(alteration.names)}"
            )
        point = torch.zeros(self.size, dtype=torch.float64)
        if self.choices:
            point[: self.choices] = -1.0
            point[self.candidates.index(tuple(alteration.names))] = 1.0
        for name, value in zip(alteration.names, alteration.values, strict=True):
            place = self.names.index(name)
            width = self.box.width[place].clamp_min(1e-300)
            point[self.choices + place] = 2 * (value - self.box.lower[place]) / width - 1
        return point


# Imported by name, so that type checks pass where it is not installed.
gymnasium: Any = import_module("gymnasium")


class RehearsalEnvironment(gymnasium.Env):
    """A rehearsal world as an environment with one decision per episode.

    Args:
        scored: Whether the ``info`` of each step holds the true ``probability`` of success, that of
            ``no_action`` and that of the ``oracle``.
    """

    metadata: Mapping[str, Any] = {"render_modes": []}

    def __init__(self, world: RehearsalWorld | ChangingWorld, scored: bool = True) -> None:
        self.world, self.scored, self.code = world, scored, AlterationCode(world.task)
        self._initial = world
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(world.task.context),), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.code.size,), np.float32)
        self.render_mode = None
        self._next, self._round = 0, -1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Returns the context of the next round.

        Args:
            seed: If given, the seed of the world from here on, starting at its first round; None continues
                with the next round.
            options: ``{"round": t}`` continues with round t.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._next = 0
            # For its own seed, reuse the given world with what it has computed already.
            self.world = self._initial if seed == self._initial.seed else self._initial.reseeded(seed)
        self._round = int((options or {}).get("round", self._next)) % self.world.count()
        self._next = self._round + 1
        return self._observation(), {"round": self._round}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Applies an action and returns the outcome; the episode ends.

        Raises:
            RuntimeError: before the first `reset`, or at a second step of an episode.
        """
        if self._round < 0:
            raise RuntimeError("an episode has one step: call reset() before the next step")
        case = self.world.case(self._round)
        alteration = self.code.decode(torch.as_tensor(action, dtype=torch.float64))
        decision = Decision(alteration, float("nan"))
        row = self.world.respond(case, decision)
        info: dict[str, Any] = {
            "round": self._round,
            "altered": list(decision.alteration.names) if decision.alteration else [],
        }
        if self.scored:
            score = self.world.score(case, decision)
            info |= {name: score[name] for name in ("probability", "no_action", "oracle")}
        observation = self._observation()
        reward = float(self.world.desired(row.columns(self.world.task.outcomes))[0])
        self._round = -1
        return observation, reward, True, False, info

    def _observation(self) -> np.ndarray:
        given = self.world.case(self._round).given
        return np.array([float(given[name]) for name in self.world.task.context], dtype=np.float32)


def ride_hailing(rounds: int = 10_000, seed: int = 0, released: bool = False) -> RehearsalEnvironment:
    """The ride-hailing world."""
    return RehearsalEnvironment(RideHailing(released, size=SampleSize(rows=10, contexts=rounds), seed=seed))


def bermuda(rounds: int = 10_000, seed: int = 0, preset: str = "qwz23") -> RehearsalEnvironment:
    """The Bermuda coral reef world."""
    return RehearsalEnvironment(Bermuda(preset, size=SampleSize(rows=10, contexts=rounds), seed=seed))


# The causal worlds, and the modules in which they are.
TRIALS: Mapping[str, str] = {
    "Ackley": "benchmark_functions",
    "Alpine2": "benchmark_functions",
    "Branin": "benchmark_functions",
    "Chemostat": "chemostat",
    "Dropwave": "benchmark_functions",
    "Epidemic": "epidemics",
    "Hartmann": "benchmark_functions",
    "Levy": "benchmark_functions",
    "PooledTesting": "epidemics",
    "Rosenbrock": "benchmark_functions",
}

for _name, _factory in (("RideHailing", ride_hailing), ("Bermuda", bermuda)):
    gymnasium.register(id=f"rehearsal_torch/{_name}-v0", entry_point=_factory)
for _name in ("Sepsis", "Machines"):
    gymnasium.register(
        id=f"rehearsal_torch/{_name}-v0",
        entry_point=f"rehearsal_torch.adapters.episode_environment:{_name.lower()}",
    )
for _name in TRIALS:
    gymnasium.register(
        id=f"rehearsal_torch/{_name}-v0",
        entry_point="rehearsal_torch.adapters.trial_environment:trials",
        kwargs={"world": _name},
    )
