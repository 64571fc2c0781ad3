"""Surrogates: the abstract base classes of models fitted to data.

A surrogate consists of parts that are fitted one by one, each to its own examples. It does not rate actions;
that is the objective's task. It does record the question that it was fitted for (`question`) and the fields
of that question on which the fit depends (`used`), so that it never silently answers another question.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import torch
from torch import Tensor, nn

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_compatibility import (
    Kind,
    OtherQuestionError,
    Question,
    differences,
    like,
    taken,
)
from rehearsal_torch.data.trainable_part import (
    Examples,
    NotFittedError,
    Solved,
    Trained,
    state_faults,
    unfitted_parts,
)
from rehearsal_torch.mechanisms.mechanism import Trajectory

Module = TypeVar("Module", bound=nn.Module)


class Modules(nn.ModuleList, Generic[Module]):
    """A list of modules of one class."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[Module]: ...

        def __getitem__(self, place: int) -> Module: ...  # type: ignore[override]


# Parts, each with the examples that it is fitted to.
Fits = Iterator[tuple[Solved | Trained, Examples]]


class Surrogate(nn.Module, ABC):
    """A model whose parts are fitted to a table."""

    kind: Kind | None = None  # The kind of problem that it serves (`Problem.kind`); None for any
    tracks: bool = False  # Whether it follows a drift by itself, so that no rows need be forgotten
    by_adjustment: bool = False  # Whether the graph enters by the adjustment of candidate sets alone

    @property
    def device(self) -> torch.device:
        """Where its parameters and buffers are (``.to("cuda")`` moves them); the CPU if it has none. What it
        is asked about is taken there, and what it tells of a table is where the table is.
        """
        first = next(chain(self.parameters(), self.buffers()), None)
        return torch.device("cpu") if first is None else first.device

    def on_cpu(self) -> Self:
        """Itself, or, where it was moved to another device, a copy of it on the CPU."""
        return self if self.device.type == "cpu" else deepcopy(self).to("cpu")

    @abstractmethod
    def parts(self, table: Table) -> Fits:
        """Parts to fit, in order, with examples (n, ...) that may depend on the fits of earlier ones."""

    def require_fitted(self) -> None:
        """Refuses to answer (`NotFittedError`) while a part has been neither fitted nor loaded."""
        unfitted = unfitted_parts(self)
        if unfitted:
            names = ", ".join(unfitted[:4]) + (", ..." if len(unfitted) > 4 else "")
            remedy = "fit it first (rt.fit(surrogate, table)), or load a checkpoint (rt.load(folder))"
            raise NotFittedError(f"this {type(self).__name__} has not been fitted yet ({names}): {remedy}")

    def question(self) -> Question | None:
        """The question that it was fitted for; None if it records none, and cannot `adopt` another."""
        return None

    def used(self) -> tuple[str, ...]:
        """The fields of the question (`data.task_compatibility.fields`) on which the fit depends."""
        return ()

    def adopt(self, question: object) -> None:
        """Takes over a question (a task, or plain data of one; for episodes the names of their columns),
        provided that the fit can answer it; from then on that question is answered. OtherQuestionError,
        naming each field that differs and on which the fit depends.
        """
        own = self.question()
        if own is None:
            raise OtherQuestionError(
                f"{type(self).__name__} does not record the question that it was fitted for (`question`): "
                "it cannot be compared with this one"
            )
        asked = like(own, question)
        mismatches = differences(own, asked, self.used())
        if mismatches:
            remedy = "Fit again for this question, or ask the one that was fitted for"
            raise OtherQuestionError(
                f"the surrogate was fitted for another question. {'. '.join(mismatches)}. {remedy}"
            )
        self._take(taken(own, asked, self.used()))

    def lipschitz(self, table: Table) -> Mapping[str, float]:  # noqa: ARG002
        """Guaranteed Lipschitz constants, and Jacobians on a table's rows, by name; empty without any."""
        return {}

    def check_noise(self, rows: Table | None, held_out: Table | None) -> None:
        """Measures how well what it takes for noise can be predicted, and keeps it with its state in place of
        what an earlier fit left (`surrogates.transition`), as every fit does; nothing by default. Takes rows
        of its fit and rows that it was not fitted to, None where there are none.
        """

    def noise_shares(self) -> Mapping[str, float]:
        """What `check_noise` found, as R2 of each variable; empty if nothing is known, as by default."""
        return {}

    def surprise(self, case: Any, decision: Decision, answer: Table) -> float | None:  # noqa: ARG002
        """The p-value of the outcomes in the one row that followed a decision, under what the model expects;
        None where it expects no distribution, as by default.
        """
        return None

    def faults(self) -> list[str]:
        """All inconsistencies of the state: values that are not finite, and sizes that do not agree."""
        return [f"{name}: not fitted" for name in unfitted_parts(self)] + state_faults(self)

    def _take(self, question: Question) -> None:
        """Makes `question` its own; the compatibility has been checked."""


# Rows, evenly spaced, on which noise is checked, at most; and those below which nothing is said of it.
ROWS, FEWEST = 5_000, 100


def sample(table: Table, most: int = ROWS) -> Table:
    """A copy of about `most` rows at most, evenly spaced; whole units, where units are known."""
    if table.units is None or len(table) <= most:
        kept = torch.linspace(0, len(table) - 1, min(most, len(table)), dtype=torch.float64).round().long()
        return table.rows(kept)
    place = torch.unique_consecutive(table.units, return_inverse=True)[1]
    units = int(place[-1]) + 1
    some = torch.linspace(0, units - 1, max(1, units * most // len(table)), dtype=torch.float64).long()
    return table.rows(torch.isin(place, some.to(place.device)))


class SeparateMembers(Surrogate, ABC):
    """A surrogate of members that are fitted apart from each other, in any order or by several processes,
    once what they have in common is; in one process if a subclass overrides `parts`.
    """

    members_are: str = "models"  # What the members are, in the plural, for progress

    @abstractmethod
    def separate(self) -> Sequence[nn.Module]:
        """The members; the fit of one changes nothing of another."""

    @abstractmethod
    def common_parts(self, table: Table) -> Fits:
        """The parts that all members have in common, with their examples."""

    @abstractmethod
    def member_parts(self, place: int, table: Table) -> Fits:
        """The parts of one member, with their examples, once the common ones have been fitted."""

    def closing_parts(self, table: Table) -> Fits:  # noqa: ARG002
        """The parts that follow from all members, with their examples; none by default."""
        yield from ()

    def parts(self, table: Table) -> Fits:
        """The common parts, then those of each member in order, then the closing ones."""
        yield from self.common_parts(table)
        for index in range(len(self.separate())):
            yield from self.member_parts(index, table)
        yield from self.closing_parts(table)


class EpisodeSurrogate(Surrogate, ABC):
    """A surrogate that can replay an observed episode under other actions: fitted, or a known truth."""

    kind: Kind | None = "look_back"
    has_constants: bool = True  # Whether its steps may have Lipschitz constants (`Trajectory.lipschitz`)

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The D state variables of a trajectory, in order."""

    @abstractmethod
    def trajectory(self, episode: Episode) -> Trajectory:
        """The episode's counterfactual transitions, in the surrogate's own coordinates."""

    @abstractmethod
    def units(self, states: Tensor) -> Tensor:
        """The trajectory's coordinates to units, (..., D) -> (..., D): increasing in each variable."""

    @property
    def members(self) -> int:
        """M, the number of models of an ensemble, whose states are side by side in a trajectory; else 1."""
        return 1

    def member_units(self, states: Tensor) -> Tensor:
        """States of each member in the variables' units, (..., M D) -> (..., M, D)."""
        return self.units(states).unsqueeze(-2)

    @abstractmethod
    def state_scale(self) -> Tensor:
        """(D,), a bound on the change of each variable per unit of its coordinate; infinite if unknown."""

    @property
    def dose_names(self) -> tuple[str, ...]:
        """The p doses of an action, columns of the episodes; empty if an episode has no such columns."""
        return ()

    @abstractmethod
    def doses(self, actions: Tensor) -> Tensor:
        """Action numbers to doses, (...) -> (..., p), in the doses' units."""

    def chooser(self, states: Sequence[str]) -> "EpisodeSurrogate":  # noqa: ARG002
        """The model to search for a reward that reads these states; itself by default."""
        return self

    def support(self, episode: Episode, states: Tensor | None = None) -> Tensor | None:
        """In how many units of the fit what each action changes was done in a comparable step, each two doses
        together, (T, A) long, at the observed states or others, (T, D) in the variables' units; None if that
        is not known, as by default.
        """

    @property
    def claimant(self) -> "EpisodeSurrogate | None":
        """The model that claims what an action gains, and has no say in which is chosen; None by default."""

    @property
    def unmoved(self) -> tuple[str, ...]:
        """The states that no action is seen to move; none by default."""
        return ()

    def replayed(self, episode: Episode, actions: Tensor) -> Tensor | None:
        """The states of an episode under sequences, (n, H) long, in the variables' units, by each of the R
        refits of a claimant, (R, n, T, D); None of other models, as by default.
        """

    def outside(self, episode: Episode, slack: float = 0.0) -> tuple[Finding, ...]:  # noqa: ARG002
        """A finding of the kind ``range`` for each variable of an episode that leaves the range of the
        observations by more than `slack`, as a share of the range on the model's scale; empty if no range is
        known.
        """
        return ()

    def noise(self, table: Table) -> tuple[Tensor, Tensor] | None:
        """What each step is predicted from, (n, p), and each member's noise, (n, M, D), float64; or None."""

    @property
    def least_noise(self) -> Tensor | None:
        """The variance of each state's noise, (D,), below which none of it matters; None by default."""

    @property
    def predictable_noise(self) -> Tensor | None:
        """How well the noise of each state can be predicted from state and action on held-out units, as R2,
        (D,) (`surrogates.transition`); (0,) if it is not known, None if it is no model of rows.
        """

    def noise_causes(self) -> Mapping[str, tuple[float, float]]:
        """Of states whose noise can be predicted, how much of it other states of the same step explain, and a
        level of each unit; empty if nothing is known, as by default.
        """
        return {}

    def noise_shares(self) -> dict[str, float]:
        """`predictable_noise` by name; empty if it is not known."""
        known = self.predictable_noise
        return dict(zip(self.names, known.tolist(), strict=True)) if known is not None and len(known) else {}

    @property
    def selectable(self) -> Tensor | None:
        """Which actions a search may select, (A,) bool; None for all. Observed actions may always be kept."""
