"""Simulated machines in maintenance: episodes outside medicine, with known counterfactual outcomes.

A machine has a latent state x = (wear in %, temperature in degrees Celsius, vibration in mm/s), an age in
years and a model A, B or C. In each week it is serviced (0 none, 1 minor, 2 major) and runs at full or
reduced load (0 or 1). The state of the next week is a location-scale function of the noise eps ~ N(0, I),
bijective in it:

    wear'        = (1 - r(service)) wear + g (1 - .6 load) (1 + .04 (vibration - 2)) + .8 eps_1
    temperature' = 44 + 5 [model C] + .12 wear - 7 load + .5 (temperature - 44) + 1.5 eps_2
    vibration'   = .6 vibration + .4 (1.2 + .045 wear) - .3 [service > 0] + (.15 + .002 wear) eps_3

with r = 0, .25, .8 the share of the wear that a service removes and g = 3 + .12 (age - 8) + .8 [model B] the
wear of a week at full load. What is recorded is rounded to three decimals, and not below 0. Operators service
worn machines and reduce the load of hot ones, so that actions are confounded by the state, which the table
shows in full. The reward of a week is minus the points of its risk of failure (`POINTS`), minus what the
actions cost (`COSTS`). Everything here is made up; no machine was measured.

The table goes through the same task, checks and episode builder as a user's (`EpisodeTable`): ``prepare
machines`` writes table and task as files, which read back to the same observations. In contrast to a user's
table, the true outcomes of a recommended and of the best sequence are known.

Source: Tsirtsis and Gomez-Rodriguez (2023), Sec. 2 (the question); the machines are ours.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, DecisionContext, action_name
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.problem import SIMULATED, World
from rehearsal_torch.problems.sequences.unit_splits import best_changed, episode_of, what_followed
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable
from rehearsal_torch.seeding import numpy_generator

LONGEST = 16
STATES = ("wear", "temperature", "vibration")
ACTIONS = ("service", "load")
SERVICES, LOADS, MODELS = ("none", "minor", "major"), ("full", "reduced"), ("A", "B", "C")
REMOVED = torch.tensor([0.0, 0.25, 0.8], dtype=torch.float64)
POINTS: Mapping[str, Mapping[str, float]] = {
    "wear": {"> 50": 1, "> 70": 3, "> 85": 6},
    "temperature": {"> 58": 1, "> 66": 2},
    "vibration": {"> 3.5": 1, "> 4.5": 3},
}
COSTS: Mapping[str, tuple[float, ...]] = {"service": (0.0, 1.0, 4.0), "load": (0.0, 1.0)}

TASK: Mapping[str, Any] = {
    "unit": "machine",
    "time": "week",
    "varying": {
        "wear": {"unit": "%", "range": [0, None]},
        "temperature": {"unit": "degrees Celsius"},
        "vibration": {"unit": "mm/s", "range": [0, None]},
    },
    "static": {"age": {"unit": "years", "range": [0, 60]}, "model": {"values": list(MODELS)}},
    "actions": {
        "service": {"levels": list(SERVICES), "cost": list(COSTS["service"])},
        "load": {"levels": list(LOADS), "cost": list(COSTS["load"])},
    },
    "reward": {
        "score": {f"{name} too high": {name: dict(rules)} for name, rules in POINTS.items()},
        "name": "risk and cost",
    },
    "words": {"unit": "machine", "units": "machines", "step": "week"},
}


def recorded(latent: Tensor) -> Tensor:
    """The recorded states, (..., 3) -> (..., 3): rounded, not below 0."""
    return latent.clamp_min(0).round(decimals=3)


def points(states: Tensor) -> Tensor:
    """The risk points of recorded states, (..., 3) -> (...)."""
    total = torch.zeros_like(states[..., 0])
    for column, rules in enumerate(POINTS.values()):
        values = states[..., column]
        limits = [(float(rule.removeprefix("> ")), score) for rule, score in rules.items()]
        scores = [torch.where(values > limit, score, 0.0).to(total) for limit, score in limits]
        total = total + torch.stack(scores).amax(0)
    return total


def costs(actions: Tensor) -> Tensor:
    """The costs of actions, (..., 2) long -> (...)."""
    tables = [torch.tensor(COSTS[name], dtype=torch.float64) for name in ACTIONS]
    return tables[0][actions[..., 0]] + tables[1][actions[..., 1]]


def move(latent: Tensor, static: Tensor, actions: Tensor, noise: Tensor) -> Tensor:
    """x' of the next week, (..., 3), from x, age and model 0 to 2, service and load (long), and eps."""
    wear, temperature, vibration = latent.clamp_min(0).unbind(-1)
    age, model = static.unbind(-1)
    load, serviced = actions[..., 1].to(latent), (actions[..., 0] > 0).to(latent)
    growth = 3 + 0.12 * (age - 8) + 0.8 * (model == 1).to(latent)
    location = torch.stack(
        (
            (1 - REMOVED[actions[..., 0]]) * wear + growth * (1 - 0.6 * load) * (1 + 0.04 * (vibration - 2)),
            44 + 5 * (model == 2).to(latent) + 0.12 * wear - 7 * load + 0.5 * (temperature - 44),
            0.6 * vibration + 0.4 * (1.2 + 0.045 * wear) - 0.3 * serviced,
        ),
        -1,
    )
    scale = torch.stack((torch.full_like(wear, 0.8), torch.full_like(wear, 1.5), 0.15 + 0.002 * wear), -1)
    return location + scale * noise


@dataclass(frozen=True)
class Fleet:
    """n simulated machines; weeks past a machine's horizon are simulated but not shown.

    Attributes:
        latent: x, (n, 16, 3).
        static: Age in years and number of the model, (n, 2).
        noise: eps of each week, (n, 15, 3).
        actions: Service and load, (n, 16, 2) long.
        horizon: Number of weeks shown, (n,) long.
    """

    latent: Tensor
    static: Tensor
    noise: Tensor
    actions: Tensor
    horizon: Tensor

    def frame(self) -> pd.DataFrame:
        """The table: one row for each machine and week, levels and models by name."""
        machine, week = (torch.arange(LONGEST) < self.horizon[:, None]).nonzero(as_tuple=True)
        states = recorded(self.latent[machine, week])
        columns: dict[str, Any] = {"machine": machine.numpy() + 1, "week": week.numpy() + 1}
        columns |= {name: states[:, column].numpy() for column, name in enumerate(STATES)}
        columns |= {"age": self.static[machine, 0].numpy()}
        columns |= {"model": np.array(MODELS)[self.static[machine, 1].to(torch.long).numpy()]}
        actions = self.actions[machine, week].numpy()
        columns |= {"service": np.array(SERVICES)[actions[:, 0]], "load": np.array(LOADS)[actions[:, 1]]}
        return pd.DataFrame(columns)


def simulate(machines: int = 600, seed: int = 0, min_length: int = 10) -> Fleet:
    """Draws a fleet, whose machine i is the same in any size; horizons are uniform up to 16."""
    if machines < 1 or not 2 <= min_length <= LONGEST:
        expected = f"expected machines >= 1 and 2 <= min_length <= {LONGEST}"
        raise ValueError(f"{expected}; got {machines}, {min_length}")
    streams = [numpy_generator(seed, machine) for machine in range(machines)]
    normal = torch.from_numpy(np.stack([stream.standard_normal((LONGEST, 3)) for stream in streams]))
    uniform = torch.from_numpy(np.stack([stream.random((LONGEST + 1, 4)) for stream in streams]))
    chance = uniform[:, 0]
    static = torch.stack(((1 + 15 * chance[:, 0]).round(decimals=1), (3 * chance[:, 1]).floor()), -1)
    wear = 15 + 55 * chance[:, 2]
    temperature = 48 + 0.24 * wear + 10 * (static[:, 1] == 2) + 2 * normal[:, 0, 1]
    vibration = 1.2 + 0.045 * wear + 0.3 * normal[:, 0, 2]
    states, actions = [torch.stack((wear, temperature, vibration), -1)], []
    for week in range(LONGEST):
        actions.append(_policy(recorded(states[-1]), uniform[:, 1 + week]))
        if week < LONGEST - 1:
            states.append(move(states[-1], static, actions[-1], normal[:, 1 + week]))
    horizon = min_length + ((LONGEST + 1 - min_length) * chance[:, 3]).long()
    return Fleet(torch.stack(states, 1), static, normal[:, 1:], torch.stack(actions, 1), horizon)


def _policy(states: Tensor, chance: Tensor) -> Tensor:
    """The operators' service and load of states (n, 3), from uniform numbers (n, 4): (n, 2) long."""
    wear, temperature, _ = states.unbind(-1)
    serviced = chance[:, 0] < 0.05 + 0.5 * torch.sigmoid((wear - 62) / 8)
    major = chance[:, 1] < 0.15 + 0.55 * torch.sigmoid((wear - 70) / 6)
    reduced = chance[:, 2] < 0.08 + 0.5 * torch.sigmoid((temperature - 62) / 3)
    return torch.stack((torch.where(serviced, 1 + major.long(), 0), reduced.long()), -1)


def true_trajectory(fleet: Fleet, machine: int, actions: Tensor) -> Tensor:
    """Latent states (n, T, 3) under sequences of actions, (n, T, 2) long, with the machine's noise."""
    states = [fleet.latent[machine, :1].expand(len(actions), -1)]
    static = fleet.static[machine].expand(len(actions), -1)
    for week in range(actions.shape[1] - 1):
        noise = fleet.noise[machine, week].expand(len(actions), -1)
        states.append(move(states[-1], static, actions[:, week], noise))
    return torch.stack(states, 1)


def true_returns(fleet: Fleet, machine: int, actions: Tensor) -> Tensor:
    """The returns of sequences of actions, (n, T, 2) long -> (n,)."""
    states = recorded(true_trajectory(fleet, machine, actions))
    return -(points(states) + costs(actions)).sum(-1)


MOST_SEQUENCES = 500_000  # The largest number of sequences that are enumerated for an optimum.


class Machines(EpisodeTable, World):
    """Simulated machines, split by machine; ValueError if an argument is out of range, or no case is left.
    `EpisodeTable` describes the arguments not listed here.

    Args:
        machines: Number of machines.
        seed: Seed of the fleet and the splits.
        min_length: Shortest horizon, in weeks, at most 16.
        horizon: If given, cases are the first `horizon` weeks of those machines that have as many.
        changes: k of `optimum`.
    """

    def __init__(
        self,
        machines: int = 600,
        seed: int = 0,
        min_length: int = 10,
        horizon: int | None = None,
        split: str = "test",
        keep_last: int = 1,
        changes: int = 3,
    ) -> None:
        if changes < 0:
            raise ValueError(f"changes: expected at least 0; got {changes}")
        self.seed, self.changes = seed, changes
        self.fleet = simulate(machines, seed, min_length)
        super().__init__(self.fleet.frame(), TASK, seed, min_length, None, horizon, split, keep_last)
        self._optima: dict[str, float] = {}

    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:
        """The true return as operated, as recommended and at best (if known), and the relative gain."""
        episode = episode_of(case)
        observed, altered = self.actions(episode, decision)
        before, after = true_returns(self.fleet, _number(episode), torch.stack((observed, altered))).tolist()
        share = (after - before) / abs(before) if before else 0.0
        scores = {"true_observed": before, "true_value": after, "true_improvement": share}
        best = self.optimum(case)
        return scores if math.isnan(best) else scores | {"true_optimum": best}

    def respond(self, case: DecisionContext, decision: Decision) -> Table:
        """The true transitions under the decision, the changed actions marked as altered."""
        episode = episode_of(case)
        observed, altered = self.actions(episode, decision)
        states = recorded(true_trajectory(self.fleet, _number(episode), altered.unsqueeze(0))[0])
        columns = dict(zip(STATES, states.T, strict=True))
        actions = dict(zip(ACTIONS, altered.T, strict=True))
        return what_followed(episode, columns, actions, altered != observed)

    def optimum(self, case: DecisionContext) -> float:
        """The largest true return of at most `changes` changes; NaN for over `MOST_SEQUENCES` sequences."""
        episode = episode_of(case)
        if episode.identity not in self._optima:
            self._optima[episode.identity] = self._enumerate(episode)
        return self._optima[episode.identity]

    def actions(self, episode: Episode, decision: Decision) -> tuple[Tensor, Tensor]:
        """The actions as recorded and recommended, (T, 2) long each: a changed step takes the levels of the
        decision's `doses` if it has any, else those of its action number, service * 3 + load.
        """
        observed = self.fleet.actions[_number(episode), : episode.horizon]
        altered = observed.clone()
        for step, action in decision.actions().items():
            if not 0 <= step < episode.horizon:
                horizon = f"{episode.horizon} weeks"
                raise ValueError(f"{episode.identity}: action[{step}] is not one of its {horizon}")
            levels = decision.doses.get(action_name(step)) or divmod(action, self.roles.count)
            service, load = (round(float(level)) for level in levels)
            if not 0 <= service < len(SERVICES) or not 0 <= load < len(LOADS):
                expected = f"levels 0 to {len(SERVICES) - 1} and 0 to {len(LOADS) - 1}"
                got = f"action[{step}] is service {service} and load {load}"
                raise ValueError(f"{episode.identity}: {got}; expected {expected}")
            altered[step] = torch.tensor([service, load])
        return observed, altered

    def card(self) -> Mapping[str, Any]:
        """The card of a table, with the source and the caution of a simulation."""
        return {**super().card(), "source": f"simulated machines, seed {self.seed}", "caution": SIMULATED}

    def _enumerate(self, episode: Episode) -> float:
        machine = _number(episode)
        observed = self.fleet.actions[machine, : episode.horizon]
        options = torch.cartesian_prod(torch.arange(len(SERVICES)), torch.arange(len(LOADS)))
        # Without `keep_last`, the last action is open too: it has a cost.
        steps = range(max(episode.horizon - self.keep_last, 0))
        changes = min(self.changes, len(steps))
        if math.comb(len(steps), changes) * len(options) ** changes > MOST_SEQUENCES:
            return math.nan
        value = partial(true_returns, self.fleet, machine)
        return best_changed(value, observed, [options] * len(steps), changes)


def _number(episode: Episode) -> int:
    """The index of the machine in the fleet."""
    return int(episode.identity) - 1
