"""Rewards as known functions of the nodes of a causal system.

The reward is often a node, y = x_d, or a known function of several nodes, such as a sum of costs or the
distance to a target. It is not learnt: the nodes are modelled, and the function is applied to predictions.

Source: Ren et al. (2025), Eq. 3, Sec. 7.4 (calibration), 11.7 (sum of losses); Astudillo and Frazier (2021).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rehearsal_torch.files.bounded_yaml import is_tensor
from rehearsal_torch.spaces.box import as_tensor

if TYPE_CHECKING:
    from torch import Tensor

Values = TypeVar("Values", "Tensor", np.ndarray)


class KnownReward(ABC):
    """A function of some nodes, to be maximised."""

    labels: tuple[str, ...] = ()  # Two rewards, as they are written; none of a single one

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The m nodes that it reads, in order."""

    @abstractmethod
    def __call__(self, values: Values) -> Values:
        """(..., m) -> (...), in the reward's unit; differentiable."""

    def both(self, values: Tensor) -> Tensor:
        """(..., m) -> (..., 1); of two rewards (..., 2)."""
        return self(values).unsqueeze(-1)

    @abstractmethod
    def to_plain(self) -> Any:
        """Plain data for a configuration, as a task holds it (`data.problem_file.trials_schema`)."""


@dataclass(frozen=True)
class WeightedSum(KnownReward):
    """sum_i w_i x_i, in reward per unit of the node. A ValueError unless all w_i are finite, not zero."""

    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _numbers(self.weights))
        if not self.weights or not all(weight and math.isfinite(weight) for weight in self.weights.values()):
            expected = "expected a finite weight other than zero for at least one node"
            raise ValueError(f"{expected}; got {dict(self.weights)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes with a weight."""
        return tuple(self.weights)

    def __call__(self, values: Values) -> Values:
        """(..., m) -> (...)."""
        return values @ _like(values, self.weights)

    def __str__(self) -> str:
        """As a sum is written: yield - 0.2*waste."""
        terms = [
            f"{'-' if weight < 0 else '+'} {'' if abs(weight) == 1 else f'{abs(weight):g}*'}{name}"
            for name, weight in self.weights.items()
        ]
        first = terms[0].removeprefix("+ ").replace("- ", "-", 1)
        return " ".join([first, *terms[1:]])

    def to_plain(self) -> dict[str, Any]:
        """``weights``."""
        return {"weights": dict(self.weights)}


@dataclass(frozen=True)
class TargetError(KnownReward):
    """-mean_i (x_i - target_i)^2, or the negative sum unless `mean`: the negative squared distance from
    targets in the nodes' units. A ValueError unless all are finite.
    """

    targets: Mapping[str, float]
    mean: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", _numbers(self.targets))
        if not self.targets or not all(map(math.isfinite, self.targets.values())):
            raise ValueError(f"expected a finite target for at least one node; got {dict(self.targets)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes with a target."""
        return tuple(self.targets)

    def __call__(self, values: Values) -> Values:
        """(..., m) -> (...)."""
        squares = (values - _like(values, self.targets)) ** 2
        return -(squares.mean(-1) if self.mean else squares.sum(-1))

    def to_plain(self) -> dict[str, Any]:
        """``targets`` and ``mean``."""
        return {"targets": dict(self.targets), "mean": self.mean}


@dataclass(frozen=True)
class TwoRewards(KnownReward):
    """Two weighted sums, between which no weight decides: the best settings are a front. As a single number,
    for what needs one, it is their sum. A ValueError unless there are two different ones.
    """

    sums: tuple[WeightedSum, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(map(str, self.sums)))
        if len(self.sums) != 2 or self.sums[0] == self.sums[1]:
            raise ValueError(f"expected two different rewards; got {len(self.sums)}: {list(self.labels)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes of both."""
        return tuple(dict.fromkeys(name for part in self.sums for name in part.names))

    def both(self, values: Tensor) -> Tensor:
        """(..., m) -> (..., 2)."""
        rows = [[part.weights.get(name, 0.0) for name in self.names] for part in self.sums]
        return values @ values.new_tensor(rows).mT

    def __call__(self, values: Values) -> Values:
        """(..., m) -> (...)."""
        return values @ _like(values, {n: sum(p.weights.get(n, 0.0) for p in self.sums) for n in self.names})

    def to_plain(self) -> Any:
        """The ``weights`` of each."""
        return [part.to_plain() for part in self.sums]


@dataclass(frozen=True)
class FunctionReward(KnownReward):
    """A function (..., m) -> (...) of the m `nodes`, in torch; a model with one cannot be saved."""

    nodes: tuple[str, ...]
    function: Callable[[Tensor], Tensor]

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes."""
        return self.nodes

    def __call__(self, values: Any) -> Any:
        """(..., m) -> (...); of arrays by way of tensors."""
        if is_tensor(values):
            return self.function(values)
        return self.function(as_tensor(values)).numpy()

    def to_plain(self) -> dict[str, Any]:
        """Refuses to write a function, which is not plain data."""
        fault = "a reward that is a Python function cannot be written to a file"
        raise ValueError(f"{fault}: use weights or targets, or keep the model in Python")


def _like(values: Any, numbers: Mapping[str, float]) -> Any:
    row = list(numbers.values())
    return values.new_tensor(row) if is_tensor(values) else np.array(row)


def _numbers(values: Mapping[str, float]) -> dict[str, float]:
    return {str(name): float(number) for name, number in values.items()}
