"""Rewards of one step of an episode, as functions of named states and doses.

A `Reward` R(s, a) is a function of states in the variables' own units (SOFA points, for instance) and of the
doses of the action, with a Lipschitz constant in the coordinates of a surrogate. The outcome of an episode is
the sum of R(s_t, a_t) over its T states. The published reward is minus the SOFA column.

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
    # (..., A, p), in the doses' units; leading dimensions are broadcast against those of states. NaN at a
    # state after which nothing was done: it costs nothing, and scores no points.
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

    def tolerant(self, names: Sequence[str], state_scale: Tensor) -> Self:  # noqa: ARG002
        """R of states that a model replays, so that rounding does not decide it; `state_scale`, (D,), is the
        unit of the coordinates and may be infinite. R itself by default.
        """
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
        weights: Variable to weight, in 1 / the variable's unit, finite; None for the paper's reward, minus
            SOFA.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        if weights is None:
            weights = PUBLISHED
        if not isinstance(weights, Mapping) or not weights:
            raise ValueError(
                f"weights: expected at least one weighted variable, such as {{SOFA: -1}}; got {weights!r}"
            )
        wrong = {
            name: weight
            for name, weight in weights.items()
            if isinstance(weight, bool | str) or weight is None or not math.isfinite(weight)
        }
        if wrong:
            raise ValueError(f"weights: expected a finite number for each variable; got {wrong}")
        self.weights = {str(name): float(weight) for name, weight in weights.items()}

    @property
    def reads(self) -> tuple[str, ...]:
        """The weighted variables."""
        return tuple(self.weights)

    @property
    def acts(self) -> bool:
        """False: R depends on states only."""
        return False

    def __call__(
        self,
        states: Tensor,
        names: Sequence[str],
        doses: Doses | None = None,  # noqa: ARG002
    ) -> Tensor:
        """R, (..., D) -> (..., 1)."""
        place = positions(names, tuple(self.weights))
        return (states[..., place] * states.new_tensor(list(self.weights.values()))).sum(-1, keepdim=True)

    def highest(
        self,
        lower: Tensor,
        upper: Tensor,
        names: Sequence[str],
        doses: Doses | None = None,  # noqa: ARG002
    ) -> Tensor:
        """R at the better end of each variable, (..., D), (..., D) -> (..., 1)."""
        weights = lower.new_tensor(list(self.weights.values()))
        place = positions(names, tuple(self.weights))
        return (torch.where(weights > 0, upper[..., place], lower[..., place]) * weights).sum(
            -1, keepdim=True
        )

    def lipschitz(self, names: Sequence[str], state_scale: Tensor) -> float:
        """The norm of the gradient."""
        return float(torch.linalg.vector_norm(self.gradient(names, state_scale)))

    def gradient(self, names: Sequence[str], state_scale: Tensor) -> Tensor:
        """dR/dx in coordinates x whose unit is `state_scale` (D,) of the variables' units, (D,)."""
        place = positions(names, tuple(self.weights))
        gradient = torch.zeros(len(names), dtype=torch.float64, device=state_scale.device)
        gradient[place] = torch.tensor(
            list(self.weights.values()), dtype=torch.float64, device=state_scale.device
        ) * state_scale[place].to(torch.float64)
        return gradient
