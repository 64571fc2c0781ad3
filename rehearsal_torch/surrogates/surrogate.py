"""Surrogates: what a method has learnt of the world.

A surrogate is made of parts that can be fitted by themselves, each with its examples. It says nothing of how
good an action is; that is the objective's business. It does say what it was fitted for (`question`), and
which fields of that the fit used (`used`), so that it never answers another question in silence.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

from torch import Tensor, nn

from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.part import NotFittedError, Solved, Trained, state_faults, unfitted_parts
from rehearsal_torch.data.question import Kind, OtherQuestionError, Question, differences, like, taken
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.trajectory import Trajectory


class Surrogate(nn.Module, ABC):
    """Parts that are fitted to a table.

    Attributes:
        kind: The kind of problem that it decides for (`Problem.kind`); None for any.
    """

    kind: Kind | None = None

    @abstractmethod
    def parts(self, table: Table) -> Iterator[tuple[Solved | Trained, tuple[Tensor, ...]]]:
        """The parts to fit, in order, each with its examples (n, ...).

        An iterator, so that a later part's examples may use what an earlier part has just learnt (a scaler,
        say).
        """

    def require_fitted(self) -> None:
        """Refuses a question that only what was learnt could answer.

        Raises:
            NotFittedError: if a part has been neither fitted nor loaded.
        """
        blank = unfitted_parts(self)
        if blank:
            shown = ", ".join(blank[:4]) + (", ..." if len(blank) > 4 else "")
            remedy = "fit it first (rt.fit(surrogate, table)), or load a checkpoint (rt.load(folder))"
            raise NotFittedError(f"this {type(self).__name__} has learnt nothing yet ({shown}): {remedy}")

    def question(self) -> Question | None:
        """What it was built and fitted for; None where it does not say, and then it can be asked nothing
        else.
        """
        return None

    def used(self) -> tuple[str, ...]:
        """The fields of the question (`data.question.fields`) that the fit used; the others may change after
        it.
        """
        return ()

    def adopt(self, question: object) -> None:
        """Takes a question for its own, if what was learnt can answer it: from here on, that one is answered.

        Args:
            question: A task, or plain data of one; for episodes the names of their columns.

        Raises:
            OtherQuestionError: naming each field that the fit used and that differs.
        """
        own = self.question()
        if own is None:
            raise OtherQuestionError(
                f"{type(self).__name__} does not say what it was fitted for (`question`): it cannot be "
                "compared with what is asked"
            )
        asked = like(own, question)
        found = differences(own, asked, self.used())
        if found:
            remedy = "Fit again for this question, or ask the one that was fitted for"
            raise OtherQuestionError(
                f"what was learnt answers another question. {'. '.join(found)}. {remedy}"
            )
        self._take(taken(own, asked, self.used()))

    def lipschitz(self, table: Table) -> Mapping[str, float]:  # noqa: ARG002
        """How much it uses, on rows, of the Lipschitz constants that it guarantees, name to number; empty
        where it guarantees none.
        """
        return {}

    def faults(self) -> list[str]:
        """Everything that is wrong with the state: numbers that are not finite, sizes that do not belong
        together; empty where nothing is.
        """
        return [f"{name}: nothing was learnt" for name in unfitted_parts(self)] + state_faults(self)

    def _take(self, question: Question) -> None:
        """Answers `question` from here on."""


class EpisodeSurrogate(Surrogate, ABC):
    """A surrogate that can replay one observed episode under other actions: a learnt transition, or a known
    truth.
    """

    kind: Kind | None = "look_back"

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The D state variables of a course, in order."""

    @abstractmethod
    def trajectory(self, episode: Episode) -> Trajectory:
        """The episode's counterfactual steps, in the surrogate's own coordinates."""

    @abstractmethod
    def units(self, states: Tensor) -> Tensor:
        """States from the course's coordinates to the variables' units, (..., D) -> (..., D)."""

    @abstractmethod
    def state_scale(self) -> Tensor:
        """(D,), the most that a variable moves, in its unit, for one step in its coordinate; infinite where
        nothing is known.
        """

    @abstractmethod
    def doses(self, actions: Tensor) -> Tensor:
        """Action numbers to what is given, (...) -> (..., p), in the doses' units."""

    def outside(self, episode: Episode) -> tuple[str, ...]:  # noqa: ARG002
        """A sentence for each variable of an episode that leaves the range of the observations; none where no
        range is known.
        """
        return ()

    @property
    def selectable(self) -> Tensor | None:
        """Which actions a search may select, (A,) bool; None for all. Observed actions may be kept, whichever
        they are.
        """
        return None
