"""Parts: modules that are fitted to examples, and the two ways to do so.

A part is *solved* where a solution of its own exists (closed form, L-BFGS on an evidence, expectation
maximisation) and *trained* where stochastic gradients on a loss are the way. A part may offer both. Everything
that fitting learns stands in the module's state, so that saving and loading it gives the same part back.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn


class Part(nn.Module):
    """A module some of whose buffers take their size from data."""

    _fitted: tuple[str, ...] = ()

    def register_fitted(self, *names: str) -> None:
        """Declares buffers that are empty until the part is fitted or loaded."""
        for name in names:
            self.register_buffer(name, torch.empty(0, dtype=torch.float64))
        self._fitted = (*self._fitted, *names)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in self._fitted:
            value = state_dict.get(prefix + name)
            if value is not None:
                setattr(self, name, torch.empty_like(value, device=getattr(self, name).device))
        super()._load_from_state_dict(state_dict, prefix, *rest)


class Solved(Part, ABC):
    """A part with a solution of its own."""

    @abstractmethod
    def solve(self, *examples: Tensor) -> None:
        """Fits the part to examples, each (n, ...)."""


class Trained(Part, ABC):
    """A part that is fitted by stochastic gradients."""

    @abstractmethod
    def loss(self, *examples: Tensor) -> Tensor:
        """Mean loss over the examples, each (n, ...) -> ()."""

    @abstractmethod
    def finish(self) -> None:
        """Puts the part into the form in which it is used and saved, once training is over."""

    @property
    def judged_by_held_out(self) -> bool:
        """Whether held-out rows may end the training and choose the weights. Parts whose loss is an evidence of all rows replace it."""
        return True
