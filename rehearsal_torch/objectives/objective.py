"""Objectives: what an action is worth, here and now.

Given a surrogate and a situation, an objective maps candidate actions to values. Searches know objectives alone.
"""

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.surrogates.surrogate import Surrogate


class Objective(nn.Module, ABC):
    """A function of k action coordinates, to be made large."""

    @classmethod
    def check(cls, surrogate: Surrogate, **settings: Any) -> None:
        """Refuses settings that do not go with a surrogate, before it is fitted; by default none are refused.

        Args:
            surrogate: Fitted or not.
            settings: What the objective will be made with, besides surrogate and situation.

        Raises:
            ValueError: naming the setting, what was expected, and what was given.
        """

    @abstractmethod
    def forward(self, actions: Tensor) -> Tensor:
        """(..., k) -> (...)."""

    @abstractmethod
    def starts(self, count: int) -> Tensor:
        """At most `count` candidates worth looking at first, (<= count, k)."""

    def trajectory(self, decision: Decision) -> dict[str, Any]:  # noqa: ARG002
        """What a decision means step by step, as plain data; empty where there are no steps."""
        return {}
