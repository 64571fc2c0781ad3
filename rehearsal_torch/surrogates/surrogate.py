"""Surrogates: what a method has learnt of the world.

A surrogate is made of parts that can be fitted by themselves, each with its examples. It says nothing of how good
an action is; that is the objective's business.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from torch import Tensor, nn

from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.fitted import Solved, Trained
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.course import Course


class Surrogate(nn.Module, ABC):
    """Parts that are fitted to a table."""

    @abstractmethod
    def parts(self, table: Table) -> Iterator[tuple[Solved | Trained, tuple[Tensor, ...]]]:
        """The parts to fit, in order, each with its examples (n, ...).

        An iterator, so that a later part's examples may use what an earlier part has just learnt (a scaler, say).
        """


class EpisodeSurrogate(Surrogate, ABC):
    """A surrogate that can replay one observed episode under other actions: a learnt transition, or a known truth."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The D state variables of a course, in order."""

    @abstractmethod
    def course(self, episode: Episode) -> Course:
        """The episode's counterfactual steps, in the surrogate's own coordinates."""

    @abstractmethod
    def units(self, states: Tensor) -> Tensor:
        """States from the course's coordinates to the variables' units, (..., D) -> (..., D)."""

    @abstractmethod
    def slope(self) -> Tensor:
        """(D,), the most that a variable moves, in its unit, for one step in its coordinate; infinite where nothing is known."""

    @abstractmethod
    def doses(self, actions: Tensor) -> Tensor:
        """Action numbers to what is given, (...) -> (..., p), in the doses' units."""

    def outside(self, episode: Episode) -> tuple[str, ...]:  # noqa: ARG002
        """A sentence for each variable of an episode that leaves the range of the observations; none where no range is known."""
        return ()
