"""Causal models whose laws are written down, for objectives and searches."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.estimators.function_draws import first_pairs
from rehearsal_torch.mechanisms.mechanism import NodeMechanism
from rehearsal_torch.surrogates.network.causal_surrogate import (
    CausalModel,
    CausalNetwork,
    PlausibleNetworks,
    standard_draws,
)

Curve = Callable[[Tensor], Tensor]


class WrittenLaw(NodeMechanism):
    """x = mean(w) + scale u, known up to deviation(w)."""

    def __init__(self, mean: Curve, std: Curve, scale: float = 0.1) -> None:
        self.mean, self.std, self.scale = mean, std, scale

    def scaled(self, inputs: Tensor) -> Tensor:
        return inputs

    def forward(self, parents: Tensor, noise: Tensor) -> Tensor:
        return self.mean(parents).unsqueeze(-1) + self.scale * noise

    def belief(self, parents: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward(parents, noise), self.std(parents).unsqueeze(-1)

    def abduct(self, parents: Tensor, values: Tensor) -> Tensor:
        return (values - self.mean(parents).unsqueeze(-1)) / self.scale


@dataclass(frozen=True)
class Deviating:
    """A law with a deviation, in its standard deviations, for each member, (E,), in mirrored pairs."""

    law: NodeMechanism
    deviations: Tensor

    def __call__(self, inputs: Tensor, noise: Tensor) -> Tensor:
        mean, std = self.law.belief(self.law.scaled(inputs), noise.unsqueeze(-1))
        deviations = self.deviations.reshape(-1, *[1] * (inputs.ndim - 2))
        return mean.squeeze(-1) + deviations * std.squeeze(-1)

    def few(self, count: int) -> "Deviating":
        return Deviating(self.law, first_pairs(self.deviations, count))

    def tabulated(self) -> "Deviating":
        return self

    def conditioned(self, *_: object) -> "Deviating":
        raise TypeError("a written law cannot be conditioned")


class WrittenModel(CausalModel):
    """Written laws, normal noise, given visited actions."""

    def __init__(
        self, task: CausalTask, laws: Mapping[str, NodeMechanism], visited: Sequence[Sequence[float]] = ()
    ) -> None:
        super().__init__(task)
        self.laws = tuple(laws[node] for node in self.task.nodes)
        self.tried = torch.tensor(visited, dtype=torch.float64).reshape(-1, len(self.task.settings))

    def parts(self, table: object) -> Iterator:
        return iter(())

    def network(self) -> CausalNetwork:
        return CausalNetwork(self.task, self.laws)

    def plausible(self, members: int, seed: int = 0) -> PlausibleNetworks:
        deviations = standard_draws(members, len(self.laws), seed).unbind(-1)
        mechanisms: Any = tuple(map(Deviating, self.laws, deviations))
        return PlausibleNetworks(self.task, mechanisms, members)

    def draws(self, count: int, seed: int = 0) -> Tensor:
        return draw_sobol_normal_samples(len(self.laws), count, seed=seed, dtype=torch.float64)

    def visited(self) -> Tensor:
        return self.tried


def plain(
    parents: Mapping[str, Sequence[str]], actions: Mapping[str, object], reward: object, limits: object = None
) -> CausalTask:
    return CausalTask.of(
        {"graph": {"parents": parents}, "actions": actions, "reward": reward, "limits": limits}
    )


def one_case(task: CausalTask, identity: str = "0") -> RehearsalCase:
    return RehearsalCase(identity, {}, task.box.bounds(), levels=task.box.levels)


def linear_chain(
    visited: Sequence[Sequence[float]] = ((0.2, 0.4), (0.6, 0.1)), limits: object = None
) -> WrittenModel:
    """X = 2 a + .1 u, s = .3 (1 + a); Y = 1.5 X - b + .1 u, s = .2 (1 + b): the reward is Y."""
    task = plain({"X": ["a"], "Y": ["X", "b"]}, {"a": [0, 1], "b": [0, 2]}, "Y", limits)
    return WrittenModel(
        task,
        {
            "X": WrittenLaw(lambda w: 2 * w[..., 0], lambda w: 0.3 * (1 + w[..., 0])),
            "Y": WrittenLaw(
                lambda w: 1.5 * column(task, "Y", w, "X") - column(task, "Y", w, "b"),
                lambda w: 0.2 * (1 + column(task, "Y", w, "b")),
            ),
        },
        visited,
    )


def column(task: CausalTask, node: str, inputs: Tensor, name: str) -> Tensor:
    return inputs[..., task.inputs(node).index(name)]


HILLY: dict[str, object] = {"a": [-1, 3], "b": [0, 10]}


def hills(
    limits: object = None,
    visited: Sequence[Sequence[float]] = ((0.5, 0.5),),
    actions: Mapping[str, object] = HILLY,
) -> WrittenModel:
    """One node with three hills over two actions, and more ignorance far from the middle."""
    task = plain({"Y": ["a", "b"]}, actions, "Y", limits)
    centres = torch.tensor([[0.0, 2.0], [2.5, 8.5], [1.5, 4.0]], dtype=torch.float64)
    sizes = torch.tensor([0.2, 0.02, 0.08], dtype=torch.float64)

    def mean(w: Tensor) -> Tensor:
        unit = torch.stack([(w[..., 0] + 1) / 4, w[..., 1] / 10], -1)
        middle = torch.stack([(centres[:, 0] + 1) / 4, centres[:, 1] / 10], -1)
        return (
            torch.tensor([1.0, 1.6, 1.2], dtype=torch.float64)
            * (-(unit.unsqueeze(-2) - middle).square().sum(-1) / sizes).exp()
        ).sum(-1)

    return WrittenModel(
        task, {"Y": WrittenLaw(mean, lambda w: 0.05 + 0.02 * (w[..., 0] - 1).square())}, visited
    )
