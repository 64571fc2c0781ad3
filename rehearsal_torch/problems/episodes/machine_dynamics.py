"""The dynamics of machines in maintenance, with known counterfactuals.

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
shows in full.

The reward of a week is minus the points of its risk of failure, minus what the actions cost:

    points       wear (%)         > 50: 1    > 70: 3    > 85: 6
                 temperature      > 58: 1    > 66: 2
                 vibration        > 3.5: 1   > 4.5: 3
    costs        service          minor 1, major 4
                 load             reduced 1

Everything here is made up; no machine was measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

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
        best = torch.zeros_like(total)
        for rule, score in rules.items():
            limit = float(rule.removeprefix("> "))
            best = torch.maximum(best, torch.where(states[..., column] > limit, score, 0.0).to(best))
        total = total + best
    return total


def costs(actions: Tensor) -> Tensor:
    """The costs of actions, (..., 2) long -> (...)."""
    return sum(
        (
            torch.tensor(COSTS[name], dtype=torch.float64)[actions[..., column]]
            for column, name in enumerate(ACTIONS)
        ),
        torch.zeros(actions.shape[:-1], dtype=torch.float64),
    )


def move(latent: Tensor, static: Tensor, actions: Tensor, noise: Tensor) -> Tensor:
    """The state x' of the next week, (..., 3), from x and eps, (..., 3), age and number of the model (0 to
    2), (..., 2), and service and load, (..., 2) long.
    """
    wear, heat, shake = latent.clamp_min(0).unbind(-1)
    age, model = static.unbind(-1)
    load = actions[..., 1].to(latent)
    serviced = (actions[..., 0] > 0).to(latent)
    pace = 3 + 0.12 * (age - 8) + 0.8 * (model == 1).to(latent)
    location = torch.stack(
        (
            (1 - REMOVED[actions[..., 0]]) * wear + pace * (1 - 0.6 * load) * (1 + 0.04 * (shake - 2)),
            44 + 5 * (model == 2).to(latent) + 0.12 * wear - 7 * load + 0.5 * (heat - 44),
            0.6 * shake + 0.4 * (1.2 + 0.045 * wear) - 0.3 * serviced,
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
        chosen = self.actions[machine, week].numpy()
        columns |= {"service": np.array(SERVICES)[chosen[:, 0]], "load": np.array(LOADS)[chosen[:, 1]]}
        return pd.DataFrame(columns)


def simulate(machines: int = 600, seed: int = 0, min_length: int = 10) -> Fleet:
    """Draws a fleet; machine i is the same in a fleet of any size. Horizons are uniform from `min_length`, 2
    ... 16, to 16.

    Raises:
        ValueError: if an argument is out of range.
    """
    if machines < 1 or not 2 <= min_length <= LONGEST:
        raise ValueError(
            f"expected machines >= 1 and 2 <= min_length <= {LONGEST}; got {machines}, {min_length}"
        )
    streams = [numpy_generator(seed, machine) for machine in range(machines)]
    normal = torch.from_numpy(np.stack([stream.standard_normal((LONGEST, 3)) for stream in streams]))
    uniform = torch.from_numpy(np.stack([stream.random((LONGEST + 1, 4)) for stream in streams]))
    chance = uniform[:, 0]
    static = torch.stack(((1 + 15 * chance[:, 0]).round(decimals=1), (3 * chance[:, 1]).floor()), -1)
    wear = 15 + 55 * chance[:, 2]
    heat = 48 + 0.24 * wear + 10 * (static[:, 1] == 2) + 2 * normal[:, 0, 1]
    shake = 1.2 + 0.045 * wear + 0.3 * normal[:, 0, 2]
    states, actions = [torch.stack((wear, heat, shake), -1)], []
    for week in range(LONGEST):
        actions.append(_chosen(recorded(states[-1]), uniform[:, 1 + week]))
        if week < LONGEST - 1:
            states.append(move(states[-1], static, actions[-1], normal[:, 1 + week]))
    horizon = min_length + ((LONGEST + 1 - min_length) * chance[:, 3]).long()
    return Fleet(torch.stack(states, 1), static, normal[:, 1:], torch.stack(actions, 1), horizon)


def _chosen(states: Tensor, chance: Tensor) -> Tensor:
    """What the operators do, (n, 3), uniform (n, 4) -> (n, 2) long."""
    wear, heat, _ = states.unbind(-1)
    serviced = chance[:, 0] < 0.05 + 0.5 * torch.sigmoid((wear - 62) / 8)
    major = chance[:, 1] < 0.15 + 0.55 * torch.sigmoid((wear - 70) / 6)
    reduced = chance[:, 2] < 0.08 + 0.5 * torch.sigmoid((heat - 62) / 3)
    return torch.stack((torch.where(serviced, 1 + major.long(), 0), reduced.long()), -1)


def true_trajectory(fleet: Fleet, machine: int, actions: Tensor) -> Tensor:
    """Latent states (n, T, 3) under whole sequences of actions, (n, T, 2) long, with the machine's own noise;
    the first state stays.
    """
    states = [fleet.latent[machine, :1].expand(len(actions), -1)]
    static = fleet.static[machine].expand(len(actions), -1)
    for week in range(actions.shape[1] - 1):
        states.append(
            move(states[-1], static, actions[:, week], fleet.noise[machine, week].expand(len(actions), -1))
        )
    return torch.stack(states, 1)


def true_returns(fleet: Fleet, machine: int, actions: Tensor) -> Tensor:
    """The returns of sequences of actions, (n, T, 2) long -> (n,)."""
    states = recorded(true_trajectory(fleet, machine, actions))
    return -(points(states) + costs(actions)).sum(-1)
