"""Searches: finding a good action.

Given an objective, a search answers with a decision; it knows nothing of surrogates or data sets.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from torch import nn

from rehearsal_torch.data.decision import Decision

Sought = TypeVar("Sought", bound=nn.Module, contravariant=True)


class Search(ABC, Generic[Sought]):
    """A way to make an objective large.

    Attributes:
        declines: Whether an answer may be "no" where its own estimate speaks against acting (`search.guard`); otherwise it bears a
            warning. Random baselines, presets that reproduce a publication and rounds that learn set it to False.
    """

    declines: bool = True

    @abstractmethod
    def __call__(self, objective: Sought) -> Decision:
        """The best action found, and how."""
