"""Rewards: what a state is worth, with a known Lipschitz constant.

The outcome of an episode is the sum of R(s_t, a_t) over its T states. Rewards are read in the variables' own units
(SOFA points, say); their Lipschitz constant is asked for in a surrogate's coordinates.

Source: Tsirtsis and Gomez-Rodriguez (2023), Def. 1 and Sec. 5.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from rehearsal_torch.data.table import positions

PUBLISHED: Mapping[str, float] = {"SOFA": -1.0}


class Reward(nn.Module, ABC):
    """R(s, a) over named states in their units."""

    @property
    @abstractmethod
    def acts(self) -> bool:
        """Whether R depends on the action."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The state variables that R is known to read before any state is seen; none unless a subclass says so."""
        return ()

    @abstractmethod
    def forward(self, states: Tensor, names: Sequence[str]) -> Tensor:
        """(..., D) -> (..., A), or (..., 1) where the action plays no part."""

    @abstractmethod
    def lipschitz(self, names: Sequence[str], slope: Tensor) -> float:
        """C with |R(s, a) - R(s', a)| <= C |x - x'| in coordinates of which one step is worth `slope` (D,) units; may be infinite."""


class LinearReward(Reward):
    """R(s) = sum of weight times variable.

    Args:
        weights: Variable to weight, in 1 / the variable's unit; None is the paper's, minus SOFA.

    Raises:
        ValueError: if there is no weight, or one is no finite number.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        super().__init__()
        if weights is None:
            weights = PUBLISHED
        if not isinstance(weights, Mapping) or not weights:
            raise ValueError(f"weights: expected at least one weighted variable, such as {{SOFA: -1}}; got {weights!r}")
        wrong = {name: weight for name, weight in weights.items() if isinstance(weight, bool | str) or weight is None or not math.isfinite(weight)}
        if wrong:
            raise ValueError(f"weights: expected a finite number for each variable; got {wrong}")
        self.weights = {str(name): float(weight) for name, weight in weights.items()}

    @property
    def reads(self) -> tuple[str, ...]:
        """The weighted variables."""
        return tuple(self.weights)

    @property
    def acts(self) -> bool:
        """Never."""
        return False

    def forward(self, states: Tensor, names: Sequence[str]) -> Tensor:
        """(..., D) -> (..., 1)."""
        place = positions(names, tuple(self.weights))
        return (states[..., place] * states.new_tensor(list(self.weights.values()))).sum(-1, keepdim=True)

    def lipschitz(self, names: Sequence[str], slope: Tensor) -> float:
        """|weights * slope|."""
        return float(torch.linalg.vector_norm(self.gradient(names, slope)))

    def gradient(self, names: Sequence[str], slope: Tensor) -> Tensor:
        """dR/dx in coordinates of slope (D,), -> (D,)."""
        place = positions(names, tuple(self.weights))
        gradient = torch.zeros(len(names), dtype=torch.float64, device=slope.device)
        gradient[place] = torch.tensor(list(self.weights.values()), dtype=torch.float64, device=slope.device) * slope[place].to(torch.float64)
        return gradient
