"""Nodes whose equation and noise are known, for tests of what a model recovers."""

from dataclasses import dataclass

import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.table import Table

DOUBLE = torch.float64


def two_modes(count, stream, sigma=0.2):
    """Half N(-1/2, sigma^2), half N(1/2, sigma^2 / 2): Ren et al. (2025), Eq. 6."""
    first = torch.rand(count, generator=stream, dtype=DOUBLE) < 0.5
    normal = torch.randn(count, generator=stream, dtype=DOUBLE)
    return torch.where(first, -0.5 + sigma * normal, 0.5 + sigma * 0.5**0.5 * normal)


@dataclass(frozen=True)
class Node:
    """One node X with one action a, x = f_a(a) + f_b(a) f_c(u)."""

    task: CausalTask
    table: Table
    recoverable: torch.Tensor


TASK = CausalTask.of({"graph": {"parents": {"X": ["a"]}}, "actions": {"a": [0.0, 1.0]}, "reward": "X"})
SCALES = {
    "additive": lambda a: torch.full_like(a, 0.5),
    "location-scale": lambda a: 0.1 + 0.9 * a.square(),
    "decomposable": lambda a: (10 * a).cos() + 1.2,
}
MEANS = {"additive": lambda u: u, "location-scale": lambda u: u, "decomposable": lambda u: u**4}


def node(kind, count, seed, noise=two_modes):
    stream = torch.Generator().manual_seed(seed)
    action = torch.rand(count, generator=stream, dtype=DOUBLE)
    told = MEANS[kind](noise(count, stream))
    values = torch.stack([action, (6 * action).sin() + SCALES[kind](action) * told], -1)
    return Node(TASK, Table(("a", "X"), values, torch.tensor([True, False]).expand(count, 2).clone()), told)


CHAIN = CausalTask.of(
    {
        "graph": {"parents": {"R": [], "X": ["a", "b", "R"], "Y": ["X", "b"], "Z": ["Y"]}},
        "actions": {"a": [0.0, 2.0], "b": [-1.0, 1.0]},
        "reward": {"weights": {"Y": 1.0, "X": 0.5}},
    }
)


def chain(count, seed, fixed=None, noise=None):
    """R = 3 + u;  X = sin(2 a) + b R / 3 + .3 u;  Y = X^2 / 2 - b + .2 u;  Z, which the reward does not read,
    is left out by the task."""
    stream = torch.Generator().manual_seed(seed)
    a, b = (
        2 * torch.rand(count, generator=stream, dtype=DOUBLE),
        2 * torch.rand(count, generator=stream, dtype=DOUBLE) - 1,
    )
    u = torch.randn(count, 3, generator=stream, dtype=DOUBLE) if noise is None else noise
    return equations(a, b, u, fixed or {})


def equations(a, b, u, fixed):
    known = {"a": a, "b": b}
    for name, law, own in (
        ("R", lambda k, e: 3 + e, u[:, 0]),
        ("X", lambda k, e: (2 * k["a"]).sin() + k["b"] * k["R"] / 3 + 0.3 * e, u[:, 1]),
        ("Y", lambda k, e: k["X"].square() / 2 - k["b"] + 0.2 * e, u[:, 2]),
        ("Z", lambda k, e: k["Y"], u[:, 2]),
    ):
        known[name] = torch.full_like(a, fixed[name]) if name in fixed else law(known, own)
    names = ("a", "b", "R", "X", "Y", "Z")
    altered = torch.tensor([name in ("a", "b", *fixed) for name in names]).expand(len(a), len(names)).clone()
    return Table(names, torch.stack([known[name] for name in names], -1), altered)
