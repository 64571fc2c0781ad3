"""Worlds of episodes as Gymnasium environments: one simulated unit after the other, step by step.

    reset   returns the first state of the next unit
    step    sets the doses (or levels) of one time step; returns the next state and the reward of the step

A unit keeps its own noise, so that an agent that repeats the recorded levels meets the recorded course but
for the exact doses, and the sum of its rewards is the true return of its actions
(`problems.episodes.cohort.true_scores`, `problems.episodes.machines.true_returns`). The last step
changes no state; after it the last state is returned again. An observation is what the table shows of a step
before the action: states and static features in their units.

    Sepsis     actions: level 0 to 4 of vasopressor and of fluids; reward: minus the SOFA score of the step,
               of the organs alone (without the points for the vasopressor itself) or in full
    Machines   actions: service 0 to 2 and load 0 or 1; reward: minus risk points and costs of the week

`reset(seed=s)` takes the units of the world with seed s from there on, from the first; `reset()` continues
with the next unit, and after the last with the first.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 3 and 5 (state, action and reward of a step); Towers et al.
(2024) for the interface.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.problems.episodes import cohort as simulator
from rehearsal_torch.problems.episodes import machines as machine_dynamics
from rehearsal_torch.problems.episodes.stays import STATES

# Imported by name, so that type checks pass where it is not installed.
gymnasium: Any = import_module("gymnasium")

REWARDS = ("organs", "score")


class SimulatedUnits(ABC):
    """Simulated units whose actions may be changed.

    Attributes:
        features: The names of the numbers of an observation.
        actions: The names of what is set at a step.
        levels: How many levels each of these has.
        world: The units as they were simulated.
    """

    features: tuple[str, ...]
    actions: tuple[str, ...]
    levels: tuple[int, ...]
    world: simulator.Cohort | machine_dynamics.Fleet

    @abstractmethod
    def shown(self, unit: int, time: int, latent: Tensor) -> Tensor:
        """The observation of a step, (features,)."""

    @abstractmethod
    def reward(self, latent: Tensor, chosen: Tensor) -> float:
        """The reward of a step at which levels (actions,) long are set."""

    @abstractmethod
    def moved(self, unit: int, time: int, latent: Tensor, chosen: Tensor) -> Tensor:
        """The latent state of the next step, (d,)."""

    @abstractmethod
    def recorded(self, unit: int, time: int) -> Tensor:
        """The doses (mcg/kg/min, and mL in four hours) or levels in the record, (actions,)."""


class SepsisUnits(SimulatedUnits):
    """The patients of a simulated cohort.

    Args:
        reward: "organs" or "score".
    """

    features = ("gender", "re_admission", "age", "mechvent", *STATES)
    actions = ("max_dose_vaso", "input_4hourly")
    levels = (len(simulator.VASOPRESSOR), len(simulator.FLUID))

    def __init__(self, cohort: simulator.Cohort, reward: str) -> None:
        if reward not in REWARDS:
            raise ValueError(f"reward: expected one of {', '.join(REWARDS)}; got {reward!r}")
        self.world = self.cohort = cohort
        self.of = reward

    def shown(self, unit: int, time: int, latent: Tensor) -> Tensor:
        """Static features, ventilation and vital signs."""
        known = (self.cohort.static[unit], self.cohort.ventilated[unit, time].reshape(1))
        return torch.cat((*known, simulator.emit(latent)))

    def doses(self, chosen: Tensor) -> Tensor:
        """The doses of levels, (2,)."""
        return torch.stack((simulator.VASOPRESSOR[chosen[0]], simulator.FLUID[chosen[1]]))

    def reward(self, latent: Tensor, chosen: Tensor) -> float:
        """Minus the SOFA score, with or without the points for the vasopressor."""
        vasopressor = self.doses(chosen)[0] if self.of == "score" else torch.zeros((), dtype=torch.float64)
        return -float(simulator.sofa(simulator.emit(latent), vasopressor))

    def moved(self, unit: int, time: int, latent: Tensor, chosen: Tensor) -> Tensor:
        """The next state with the patient's own noise."""
        noise, ventilated = self.cohort.noise[unit, time], self.cohort.ventilated[unit, time]
        return simulator.move(latent, self.cohort.level[unit], self.doses(chosen), ventilated, noise)

    def recorded(self, unit: int, time: int) -> Tensor:
        """The doses that were given."""
        return self.cohort.doses[unit, time]


class MachineUnits(SimulatedUnits):
    """The machines of a simulated fleet."""

    features = ("age", "model", *machine_dynamics.STATES)
    actions = machine_dynamics.ACTIONS
    levels = (len(machine_dynamics.SERVICES), len(machine_dynamics.LOADS))

    def __init__(self, fleet: machine_dynamics.Fleet) -> None:
        self.world = self.fleet = fleet

    def shown(self, unit: int, time: int, latent: Tensor) -> Tensor:  # noqa: ARG002
        """Static features and what is measured."""
        return torch.cat((self.fleet.static[unit], machine_dynamics.recorded(latent)))

    def reward(self, latent: Tensor, chosen: Tensor) -> float:
        """Minus risk points and costs of the week."""
        state = machine_dynamics.recorded(latent)
        return -float(machine_dynamics.points(state) + machine_dynamics.costs(chosen))

    def moved(self, unit: int, time: int, latent: Tensor, chosen: Tensor) -> Tensor:
        """The next state with the machine's own noise."""
        return machine_dynamics.move(latent, self.fleet.static[unit], chosen, self.fleet.noise[unit, time])

    def recorded(self, unit: int, time: int) -> Tensor:
        """The levels that were set."""
        return self.fleet.actions[unit, time].double()


class EpisodeEnvironment(gymnasium.Env):
    """Simulated units as an environment.

    Args:
        make: Returns the units of a seed.
        seed: The seed of the first units.

    Attributes:
        unit: The present one.
        time: The present step, from 0.
    """

    metadata: Mapping[str, Any] = {"render_modes": []}

    def __init__(self, make: Callable[[int], SimulatedUnits], seed: int = 0) -> None:
        self.make, self.units, self._seed = make, make(seed), seed
        self.observation_space = gymnasium.spaces.Box(
            -np.inf, np.inf, (len(self.units.features),), np.float64
        )
        self.action_space = gymnasium.spaces.MultiDiscrete(np.array(self.units.levels))
        self.render_mode = None
        self.unit, self.time, self._next, self._over = 0, 0, 0, True
        self._latent = self.units.world.latent[0, 0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Returns the first state of the next unit.

        Args:
            seed: If given, the seed of the units from here on, starting at the first.
            options: ``{"unit": i}`` continues with unit i.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._next = 0
            if seed != self._seed:
                self.units, self._seed = self.make(seed), seed
        count = len(self.units.world.horizon)
        self.unit = int((options or {}).get("unit", self._next)) % count
        self._next, self.time, self._over = self.unit + 1, 0, False
        self._latent = self.units.world.latent[self.unit, 0]
        return self._observation(), self._info()

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Sets the levels of the present step.

        Raises:
            RuntimeError: before the first `reset`, or after the last step of a unit.
            ValueError: if the action is not one level each.
        """
        if self._over:
            raise RuntimeError("the episode is over: call reset() before the next step")
        chosen = torch.as_tensor(np.asarray(action)).reshape(-1).long()
        if not self.action_space.contains(np.asarray(chosen.numpy())):
            levels = zip(self.units.actions, self.units.levels, strict=True)
            names = [f"{name} 0 to {count - 1}" for name, count in levels]
            raise ValueError(f"expected the levels of {', '.join(names)}; got {np.asarray(action).tolist()}")
        reward, info = self.units.reward(self._latent, chosen), self._info()
        self._over = self.time + 1 == int(self.units.world.horizon[self.unit])
        if not self._over:
            self._latent = self.units.moved(self.unit, self.time, self._latent, chosen)
            self.time += 1
        return self._observation(), reward, self._over, False, info

    def _observation(self) -> np.ndarray:
        values: np.ndarray = self.units.shown(self.unit, self.time, self._latent).numpy().astype(np.float64)
        return values

    def _info(self) -> dict[str, Any]:
        """Unit and step, and what the record has there, by action."""
        recorded = zip(self.units.actions, self.units.recorded(self.unit, self.time).tolist(), strict=True)
        return {"unit": self.unit, "time": self.time, "recorded": dict(recorded)}


def sepsis(
    patients: int = 500, seed: int = 0, confounding: float = 0.0, min_length: int = 10, reward: str = "organs"
) -> EpisodeEnvironment:
    """The simulated sepsis patients; for measuring agents, never for evidence about treatments."""
    return EpisodeEnvironment(
        lambda number: SepsisUnits(simulator.simulate(patients, number, min_length, confounding), reward),
        seed,
    )


def machines(machines: int = 500, seed: int = 0, min_length: int = 10) -> EpisodeEnvironment:
    """The simulated machines in maintenance."""
    return EpisodeEnvironment(
        lambda number: MachineUnits(machine_dynamics.simulate(machines, number, min_length)), seed
    )
