"""Searches: finding a good action.

Given an objective, a search answers with a decision; it knows nothing of surrogates or data sets.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.objective import Objective

Sought = TypeVar("Sought", bound=Objective, contravariant=True)


class Search(ABC, Generic[Sought]):
    """A way to make an objective large."""

    @abstractmethod
    def __call__(self, objective: Sought) -> Decision:
        """The best action found, and how."""
