"""Gymnasium environments of the worlds of this package.

Needs Gymnasium (`pip install "rehearsal-torch[rl]"`), as nothing else in the package does. Importing this
module registers ``rehearsal_torch/NAME-v0`` for RideHailing and Bermuda, for Sepsis and Machines, and for the
causal worlds (`TRIALS`), whose modules are imported when an environment is made.

Worlds of cases (RideHailing, Bermuda) have one decision per episode. An observation is the context of the
next round, an action an alteration as a point of a cube (`AlterationCode`), and the reward 1 if the outcome
is desired, else 0. The world determines what happens in round t; an agent that is run for as many episodes as
the world has rounds meets the same rounds as a rehearsal method. After the last round the first one follows
again. `reset(seed=s)` starts at the first round of the same world with seed s: equal seeds give equal
contexts and noise, different seeds different ones.

An episode of the worlds of trials is a campaign of experiments. An observation is the nodes of the last one,
at first of the best one of the start design, and the reward is its reward. An action is a point of the cube
[-1, 1]^k, with -1 at the lower and 1 at the upper bound of each of the k actions; an action with levels takes
the nearest. A campaign ends after the rounds of the world. The noise of round t is that of the world: every
agent meets the same one as the methods of this package. `reset(seed=s)` takes the world with seed s from
there on; without a seed the same campaign starts again.

An episode of the worlds of episodes is a simulated unit, a step of it one time step:

    Sepsis     actions: level 0 to 4 of vasopressor and of fluids; reward: minus the SOFA score of the step,
               of the organs alone (without the points for the vasopressor itself) or in full
    Machines   actions: service 0 to 2 and load 0 or 1; reward: minus risk points and costs of the week

A unit keeps its own noise, so that an agent that repeats the recorded levels meets the recorded course but
for the exact doses, and the sum of its rewards is the true return of its actions (`cohort.true_scores`,
`machines.true_returns`). The last step changes no state; after it the last state is returned again. An
observation is what the table shows of a step before the action: states and static features in their units.
`reset(seed=s)` takes the units of the world with seed s from there on, from the first; `reset()` continues
with the next unit, and after the last with the first.

Source: Qin et al. (2023), Sec. 6 (reinforcement learning on the same task; reward: whether the outcome falls
into S; success rounds, true success probability); Ren et al. (2025), Sec. 3 (the protocol of trials);
Tsirtsis and Gomez-Rodriguez (2023), Sec. 3 and 5 (state, action and reward of a step); Towers et al. (2024)
for the interface.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.cases.bermuda import Bermuda
from rehearsal_torch.problems.cases.changing_world import TwoStores
from rehearsal_torch.problems.cases.linear_examples import RideHailing
from rehearsal_torch.problems.cases.rehearsal_world import RehearsalWorld
from rehearsal_torch.problems.sequences import machine_maintenance as machine_dynamics
from rehearsal_torch.problems.sequences import sepsis_cohort as simulator
from rehearsal_torch.problems.sequences.four_hour_table import STATES
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.problems.world_size import Rounds, SampleSize
from rehearsal_torch.spaces.box import Alteration, Box


class AlterationCode:
    """Encoding of a task's alterations as points of the cube [-1, 1]^(m + k): the largest of the first m
    numbers selects the candidate set, and the others are the values, with -1 at the lower and 1 at the upper
    bound; values of variables outside the set are ignored.

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
        """The alteration of a point (m + k,), clamped, at the nearest levels; ValueError if invalid."""
        meaning = f"{self.choices} for the set and one each for {list(self.names)}"
        numbers = _finite(point, self.size, meaning)
        names = self.candidates[int(numbers[: self.choices].argmax())] if self.choices else self.candidates[0]
        values = _in_box(self.box, numbers[self.choices :])
        values = self.box.project(values) if self.box.levels else values
        return Alteration(names, values[[self.names.index(name) for name in names]])

    def encode(self, alteration: Alteration) -> Tensor:
        """A point (m + k,) of an alteration, else ValueError; variables outside its set are at the centre."""
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
            column = self.names.index(name)
            width = self.box.width[column].clamp_min(1e-300)
            point[self.choices + column] = 2 * (value - self.box.lower[column]) / width - 1
        return point


def _finite(point: Any, size: int, meaning: str) -> Tensor:
    """A point as finite numbers, (size,)."""
    numbers = torch.as_tensor(point, dtype=torch.float64).detach().reshape(-1)
    if len(numbers) != size or not bool(numbers.isfinite().all()):
        raise ValueError(f"expected {size} finite numbers, {meaning}; got {numbers.tolist()}")
    return numbers


def _in_box(box: Box, numbers: Tensor) -> Tensor:
    """Numbers in [-1, 1], or clamped to it, as values between the bounds of a box."""
    return box.lower + (numbers.clamp(-1.0, 1.0) + 1) / 2 * box.width


# Imported by name, so that type checks pass where it is not installed.
gymnasium: Any = import_module("gymnasium")
Step = tuple[np.ndarray, float, bool, bool, dict[str, Any]]


class _WorldEnvironment(gymnasium.Env):
    metadata: Mapping[str, Any] = {"render_modes": []}
    render_mode = None


class RehearsalEnvironment(_WorldEnvironment):
    """A rehearsal world as an environment with one decision per episode.

    Args:
        scored: Whether ``info`` holds the true ``probability`` of success, ``no_action`` and ``oracle``.
    """

    def __init__(self, world: RehearsalWorld | TwoStores, scored: bool = True) -> None:
        self.world, self.scored, self.code = world, scored, AlterationCode(world.task)
        self._initial = world
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(world.task.context),), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.code.size,), np.float32)
        self._next, self._round = 0, -1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """The context of the next round, or of round t with ``{"round": t}``; a seed restarts its world."""
        super().reset(seed=seed)
        if seed is not None:
            self._next = 0
            # For its own seed, reuse the given world with what it has computed already.
            self.world = self._initial if seed == self._initial.seed else self._initial.reseeded(seed)
        self._round = int((options or {}).get("round", self._next)) % self.world.count()
        self._next = self._round + 1
        return self._observation(), {"round": self._round}

    def step(self, action: np.ndarray) -> Step:
        """Applies an action and returns the outcome; the episode ends. RuntimeError before `reset`."""
        if self._round < 0:
            raise RuntimeError("an episode has one step: call reset() before the next step")
        case = self.world.case(self._round)
        alteration = self.code.decode(torch.as_tensor(action, dtype=torch.float64))
        decision = Decision(alteration, float("nan"))
        row = self.world.respond(case, decision)
        info: dict[str, Any] = {"round": self._round, "altered": list(alteration.names)}
        if self.scored:
            score = self.world.score(case, decision)
            info |= {name: score[name] for name in ("probability", "no_action", "oracle")}
        observation = self._observation()
        reward = float(self.world.desired(row.columns(self.world.task.outcomes))[0])
        self._round = -1
        return observation, reward, True, False, info

    def _observation(self) -> np.ndarray:
        context = self.world.case(self._round).given
        return np.array([float(context[name]) for name in self.world.task.context], dtype=np.float32)


def ride_hailing(rounds: int = 10_000, seed: int = 0, released: bool = False) -> RehearsalEnvironment:
    """The ride-hailing world."""
    return RehearsalEnvironment(RideHailing(released, size=SampleSize(rows=10, contexts=rounds), seed=seed))


def bermuda(rounds: int = 10_000, seed: int = 0, preset: str = "qwz23") -> RehearsalEnvironment:
    """The Bermuda coral reef world."""
    return RehearsalEnvironment(Bermuda(preset, size=SampleSize(rows=10, contexts=rounds), seed=seed))


class TrialEnvironment(_WorldEnvironment):
    """A causal world as an environment, made by a function of a seed.

    Args:
        scored: Whether ``info`` holds the true ``expected`` reward and ``regret``, in up to a second.
    """

    def __init__(self, make: Callable[[int], CausalWorld], seed: int = 0, scored: bool = False) -> None:
        self.make, self.scored, self.world = make, scored, make(seed)
        self.nodes, self._box = self.world.task.nodes, self.world.task.box
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(self.nodes),), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (len(self._box.names),), np.float32)
        self._round = -1

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts a campaign, of the world of a `seed`, and returns the nodes of its best first experiment."""
        super().reset(seed=seed)
        if seed is not None and seed != self.world.seed:
            self.world = self.make(seed)
        self._round = 0
        start = self.world.observations()
        rewards = self.world.task.reward_of(start)
        best = int(rewards.argmax())
        values: np.ndarray = start.columns(self.nodes)[best].numpy()
        return values, {"round": 0, "reward": float(rewards[best]), "settings": self._settings(start, best)}

    def step(self, action: np.ndarray) -> Step:
        """Runs the next experiment; RuntimeError without a round left, ValueError for an invalid action."""
        if not 0 <= self._round < self.world.count():
            rounds = self.world.count()
            raise RuntimeError(f"a campaign has {rounds} rounds: call reset() before the next one")
        settings = self.decode(action)
        decision = Decision(Alteration(self._box.names, settings), float("nan"))
        row = self.world.respond(self.world.case(self._round), decision)
        info: dict[str, Any] = {"round": self._round, "settings": self._settings(row, 0)}
        if self.scored:
            expected = float(self.world.expected(settings.unsqueeze(0)))
            info |= {"expected": expected, "regret": self.world.optimal_value - expected}
        self._round += 1
        values: np.ndarray = row.columns(self.nodes)[0].numpy()
        reward = float(self.world.task.reward_of(row).mean())
        return values, reward, self._round == self.world.count(), False, info

    def decode(self, action: Any) -> Tensor:
        """The settings of a point of the cube, (k,), in the actions' units; numbers are clamped to it."""
        names = self._box.names
        numbers = _finite(np.asarray(action, dtype=np.float64), len(names), f"one for each of {list(names)}")
        return self._box.project(_in_box(self._box, numbers))

    def _settings(self, table: Table, row: int) -> dict[str, float]:
        names = self.world.task.actions
        return dict(zip(names, table.columns(names)[row].tolist(), strict=True))


# The causal worlds, and the modules in which they are.
TRIALS: Mapping[str, str] = {
    **dict.fromkeys(("Ackley", "Alpine2", "Dropwave", "Rosenbrock"), "benchmark_functions"),
    "Chemostat": "chemostat",
    **dict.fromkeys(("Epidemic", "PooledTesting"), "epidemics"),
}


def trials(
    world: str, rounds: int = 100, seed: int = 0, scored: bool = False, **settings: Any
) -> TrialEnvironment:
    """The environment of a world of `TRIALS`, by name, with the rounds and further arguments of the world."""
    if world not in TRIALS:
        raise ValueError(f"world: expected one of {', '.join(TRIALS)}; got {world!r}")
    kind = getattr(import_module(f"rehearsal_torch.problems.trials.{TRIALS[world]}"), world)
    size = settings.pop("size", Rounds(rounds))
    return TrialEnvironment(lambda number: kind(**settings, size=size, seed=number), seed, scored)


class SepsisUnits:
    """The patients of a simulated cohort, whose doses may be changed; the reward is "organs" or "score"."""

    features = ("gender", "re_admission", "age", "mechvent", *STATES)
    actions = ("max_dose_vaso", "input_4hourly")
    levels = (len(simulator.VASOPRESSOR), len(simulator.FLUID))

    def __init__(self, cohort: simulator.Cohort, reward: str) -> None:
        if reward not in ("organs", "score"):
            raise ValueError(f"reward: expected one of organs, score; got {reward!r}")
        self.world = self.cohort = cohort
        self.of = reward

    def shown(self, unit: int, time: int, latent: Tensor) -> Tensor:
        """The observation of a step, (features,): static features, ventilation and vital signs."""
        fixed = (self.cohort.static[unit], self.cohort.ventilated[unit, time].reshape(1))
        return torch.cat((*fixed, simulator.emit(latent)))

    def doses(self, chosen: Tensor) -> Tensor:
        """The doses of levels, (2,)."""
        return torch.stack((simulator.VASOPRESSOR[chosen[0]], simulator.FLUID[chosen[1]]))

    def reward(self, latent: Tensor, chosen: Tensor) -> float:
        """Minus the SOFA score of a step with the levels (actions,) long, in full or of the organs."""
        vasopressor = self.doses(chosen)[0] if self.of == "score" else torch.zeros((), dtype=torch.float64)
        return -float(simulator.sofa(simulator.emit(latent), vasopressor))

    def moved(self, unit: int, time: int, latent: Tensor, chosen: Tensor) -> Tensor:
        """The latent state of the next step, (d,), with the patient's own noise."""
        noise, ventilated = self.cohort.noise[unit, time], self.cohort.ventilated[unit, time]
        return simulator.move(latent, self.cohort.level[unit], self.doses(chosen), ventilated, noise)

    def recorded(self, unit: int, time: int) -> Tensor:
        """The doses in the record (mcg/kg/min, and mL in four hours), (actions,)."""
        return self.cohort.doses[unit, time]


class MachineUnits:
    """The machines of a simulated fleet, with the attributes of `SepsisUnits`."""

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


class EpisodeEnvironment(_WorldEnvironment):
    """Simulated units as an environment, made by a function of a seed; the present `unit` and `time` step."""

    def __init__(self, make: Callable[[int], SepsisUnits | MachineUnits], seed: int = 0) -> None:
        self.make, self.units, self._seed = make, make(seed), seed
        shape = (len(self.units.features),)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float64)
        self.action_space = gymnasium.spaces.MultiDiscrete(np.array(self.units.levels))
        self.unit, self.time, self._next, self._over = 0, 0, 0, True
        self._latent = self.units.world.latent[0, 0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """The first state of the next unit, or of unit i with ``{"unit": i}``; a seed restarts its units."""
        super().reset(seed=seed)
        if seed is not None:
            self._next = 0
            if seed != self._seed:
                self.units, self._seed = self.make(seed), seed
        self.unit = int((options or {}).get("unit", self._next)) % len(self.units.world.horizon)
        self._next, self.time, self._over = self.unit + 1, 0, False
        self._latent = self.units.world.latent[self.unit, 0]
        return self._observation(), self._info()

    def step(self, action: np.ndarray) -> Step:
        """Sets the levels of a step. RuntimeError if the episode is over; ValueError if not one each."""
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
        """Unit, step, and the recorded actions of the step."""
        recorded = zip(self.units.actions, self.units.recorded(self.unit, self.time).tolist(), strict=True)
        return {"unit": self.unit, "time": self.time, "recorded": dict(recorded)}


def sepsis(
    patients: int = 500, seed: int = 0, confounding: float = 0.0, min_length: int = 10, reward: str = "organs"
) -> EpisodeEnvironment:
    """The simulated sepsis patients; for measuring agents, never for evidence about treatments."""
    simulated = partial(simulator.simulate, patients, min_length=min_length, confounding=confounding)
    return EpisodeEnvironment(lambda number: SepsisUnits(simulated(number), reward), seed)


def machines(machines: int = 500, seed: int = 0, min_length: int = 10) -> EpisodeEnvironment:
    """The simulated machines in maintenance."""
    simulated = partial(machine_dynamics.simulate, machines, min_length=min_length)
    return EpisodeEnvironment(lambda number: MachineUnits(simulated(number)), seed)


_FACTORIES = {"RideHailing": ride_hailing, "Bermuda": bermuda, "Sepsis": sepsis, "Machines": machines}
for _name, _factory in _FACTORIES.items():
    gymnasium.register(id=f"rehearsal_torch/{_name}-v0", entry_point=_factory)
for _name in TRIALS:
    gymnasium.register(id=f"rehearsal_torch/{_name}-v0", entry_point=trials, kwargs={"world": _name})
