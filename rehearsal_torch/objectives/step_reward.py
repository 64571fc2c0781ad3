"""Rewards of one step of an episode, as functions of named states and doses.

A `Reward` R(s, a) is a function of states and of the doses of the action in their own units, with a Lipschitz
constant in the coordinates of a surrogate. The return of an episode is the sum of R(s_t, a_t) over its T
states. The published reward is minus the SOFA column.

Source: Tsirtsis and Gomez-Rodriguez (2023), Eq. 7 and Sec. 5.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from rehearsal_torch.data.records import positions

PUBLISHED: Mapping[str, float] = {"SOFA": -1.0}


@dataclass(frozen=True)
class Doses:
    """The doses of every action."""

    names: tuple[str, ...]  # The p doses
    # (..., A, p), in their units, broadcast against states; NaN after which nothing was done: costs nothing.
    values: Tensor

    def column(self, name: str) -> Tensor:
        """One dose under every action, (..., A); an unknown name raises a ValueError."""
        if name not in self.names:
            raise ValueError(f"expected one of the doses {list(self.names)}; got {name!r}")
        return self.values[..., self.names.index(name)]


class Reward(ABC):
    """R(s, a) over named states and doses in their units."""

    @property
    @abstractmethod
    def acts(self) -> bool:
        """Whether R depends on the action."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The state variables on which R is known to depend in advance; empty by default."""
        return ()

    @property
    def reads_doses(self) -> tuple[str, ...]:
        """The doses on which R is known to depend in advance; empty by default."""
        return ()

    @property
    def greatest(self) -> float:
        """The largest reward that a step can have; infinite if unknown."""
        return math.inf

    def tolerant(self, names: Sequence[str], state_scale: Tensor) -> Self:  # noqa: ARG002
        """R of replayed states, not decided by rounding, given their units, (D,); by default R itself."""
        return self

    def related(self) -> "Mapping[str, Reward]":
        """Rewards that are reported beside R for the same actions, by name; empty by default."""
        return {}

    def guarded(self) -> "Mapping[str, Reward]":
        """Those of `related` that may not fall where a change is recommended; none by default."""
        return {}

    @abstractmethod
    def __call__(self, states: Tensor, names: Sequence[str], doses: Doses | None = None) -> Tensor:
        """R of states (..., D) and of each action's doses, (..., A), or (..., 1) if no action counts."""

    @abstractmethod
    def lipschitz(self, names: Sequence[str], state_scale: Tensor) -> float:
        """C with |R(s, a) - R(s', a)| <= C |x - x'| in coordinates x whose unit is `state_scale` (D,)."""


class BoundedReward(Reward):
    """A reward of which an upper bound over boxes of states is known."""

    @abstractmethod
    def highest(
        self, lower: Tensor, upper: Tensor, names: Sequence[str], doses: Doses | None = None
    ) -> Tensor:
        """At least R(s, a) for every lower <= s <= upper, (..., D), (..., D) -> (..., A) or (..., 1)."""


class LinearReward(BoundedReward):
    """A weighted sum of state variables, R(s) = sum_i w_i s_i.

    Args:
        weights: Variable to finite weight, in 1 / its unit; None for the paper's reward, minus SOFA.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        if weights is None:
            weights = PUBLISHED
        if not isinstance(weights, Mapping) or not weights:
            raise ValueError(
                f"weights: expected at least one weighted variable, such as {{SOFA: -1}}; got {weights!r}"
            )
        invalid = {
            name: weight
            for name, weight in weights.items()
            if isinstance(weight, bool | str) or weight is None or not math.isfinite(weight)
        }
        if invalid:
            raise ValueError(f"weights: expected a finite number for each variable; got {invalid}")
        self.weights = {str(name): float(weight) for name, weight in weights.items()}

    @property
    def reads(self) -> tuple[str, ...]:
        """The weighted variables."""
        return tuple(self.weights)

    @property
    def acts(self) -> bool:
        """False: R depends on states only."""
        return False

    def __call__(self, states: Tensor, names: Sequence[str], doses: Doses | None = None) -> Tensor:  # noqa: ARG002
        """R, (..., D) -> (..., 1)."""
        columns = positions(names, tuple(self.weights))
        return (states[..., columns] * states.new_tensor(list(self.weights.values()))).sum(-1, keepdim=True)

    def highest(
        self,
        lower: Tensor,
        upper: Tensor,
        names: Sequence[str],
        doses: Doses | None = None,  # noqa: ARG002
    ) -> Tensor:
        """R at the better end of each variable, (..., D), (..., D) -> (..., 1)."""
        weights = lower.new_tensor(list(self.weights.values()))
        columns = positions(names, tuple(self.weights))
        best = torch.where(weights > 0, upper[..., columns], lower[..., columns])
        return (best * weights).sum(-1, keepdim=True)

    def lipschitz(self, names: Sequence[str], state_scale: Tensor) -> float:
        """The norm of the gradient."""
        return float(torch.linalg.vector_norm(self.gradient(names, state_scale)))

    def gradient(self, names: Sequence[str], state_scale: Tensor) -> Tensor:
        """dR/dx in coordinates x whose unit is `state_scale` (D,) of the variables' units, (D,)."""
        columns = positions(names, tuple(self.weights))
        gradient = torch.zeros(len(names), dtype=torch.float64, device=state_scale.device)
        gradient[columns] = torch.tensor(
            list(self.weights.values()), dtype=torch.float64, device=state_scale.device
        ) * state_scale[columns].to(torch.float64)
        return gradient
