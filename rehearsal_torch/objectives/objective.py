"""Objectives: what an action is worth, here and now.

Given a surrogate and a situation, an objective maps candidate actions to values. Searches know objectives alone.
"""

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Objective(nn.Module, ABC):
    """A function of k action coordinates, to be made large."""

    @abstractmethod
    def forward(self, actions: Tensor) -> Tensor:
        """(..., k) -> (...)."""

    @abstractmethod
    def starts(self, count: int) -> Tensor:
        """At most `count` candidates worth looking at first, (<= count, k)."""
