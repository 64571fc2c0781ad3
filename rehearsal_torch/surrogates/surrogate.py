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
        """That of parameters and buffers, or the CPU; results for a table are on the table's device."""
        first = next(chain(self.parameters(), self.buffers()), None)
        return torch.device("cpu") if first is None else first.device

    def on_cpu(self) -> Self:
        """Itself if it is on the CPU, otherwise a copy on the CPU."""
        return self if self.device.type == "cpu" else deepcopy(self).to("cpu")

    @abstractmethod
    def parts(self, table: Table) -> Fits:
        """Parts in the order of fitting, with examples (n, ...) that may depend on earlier fits."""

    def require_fitted(self) -> None:
        """NotFittedError if a part has been neither fitted nor loaded."""
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
        """Sets another question (a task, plain data, or columns); OtherQuestionError if the fit differs."""
        fitted_question = self.question()
        if fitted_question is None:
            raise OtherQuestionError(
                f"{type(self).__name__} does not record the question that it was fitted for (`question`): "
                "it cannot be compared with this one"
            )
        requested = like(fitted_question, question)
        mismatches = differences(fitted_question, requested, self.used())
        if mismatches:
            remedy = "Fit again for this question, or ask the one that was fitted for"
            raise OtherQuestionError(
                f"the surrogate was fitted for another question. {'. '.join(mismatches)}. {remedy}"
            )
        self._take(taken(fitted_question, requested, self.used()))

    def lipschitz(self, table: Table) -> Mapping[str, float]:  # noqa: ARG002
        """Guaranteed Lipschitz constants and Jacobian norms on a table's rows, by name; empty by default."""
        return {}

    def check_noise(self, rows: Table | None, held_out: Table | None) -> None:
        """Measures and stores how well abducted noise is predicted, from training and held-out rows."""

    def noise_shares(self) -> Mapping[str, float]:
        """R2 of each variable as measured by `check_noise`; empty if unknown, as by default."""
        return {}

    def surprise(self, case: Any, decision: Decision, answer: Table) -> float | None:  # noqa: ARG002
        """p-value, under the predictive distribution, of the row that followed a decision; or None."""
        return None

    def faults(self) -> list[str]:
        """All inconsistencies of the state: parts not fitted, values not finite, sizes that do not agree."""
        return [f"{name}: not fitted" for name in unfitted_parts(self)] + state_faults(self)

    def _take(self, question: Question) -> None:
        """Sets the question, once its compatibility has been checked."""


# The most rows on which noise is checked, and the fewest.
ROWS, FEWEST = 5_000, 100


def sample(table: Table, most: int = ROWS) -> Table:
    """A copy of about `most` rows at most, evenly spaced; whole units, where units are known."""
    if table.units is None or len(table) <= most:
        rows = torch.linspace(0, len(table) - 1, min(most, len(table)), dtype=torch.float64).round().long()
        return table.rows(rows)
    unit_index = torch.unique_consecutive(table.units, return_inverse=True)[1]
    unit_count = int(unit_index[-1]) + 1
    kept_units = torch.linspace(
        0, unit_count - 1, max(1, unit_count * most // len(table)), dtype=torch.float64
    ).long()
    return table.rows(torch.isin(unit_index, kept_units.to(unit_index.device)))


class SeparateMembers(Surrogate, ABC):
    """A surrogate whose members are fitted independently; in one process if `parts` is overridden."""

    members_are: str = "models"  # What the members are, in the plural, for progress

    @abstractmethod
    def separate(self) -> Sequence[nn.Module]:
        """The members; the fit of one changes nothing of another."""

    @abstractmethod
    def common_parts(self, table: Table) -> Fits:
        """The parts shared by all members, with their examples."""

    @abstractmethod
    def member_parts(self, place: int, table: Table) -> Fits:
        """The parts of one member with their examples; the common parts have been fitted."""

    def closing_parts(self, table: Table) -> Fits:  # noqa: ARG002
        """The parts fitted after all members, with their examples; none by default."""
        yield from ()

    def parts(self, table: Table) -> Fits:
        """The common parts, then those of each member in order, then the closing ones."""
        yield from self.common_parts(table)
        for index in range(len(self.separate())):
            yield from self.member_parts(index, table)
        yield from self.closing_parts(table)


class EpisodeSurrogate(Surrogate, ABC):
    """A model that can replay an observed episode under other actions: fitted, or a known truth."""

    kind: Kind | None = "look_back"
    has_constants: bool = True  # Whether its steps may have Lipschitz constants (`Trajectory.lipschitz`)

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The D state variables of a trajectory, in order."""

    @abstractmethod
    def trajectory(self, episode: Episode) -> Trajectory:
        """The episode's counterfactual transitions, in the model's coordinates."""

    @abstractmethod
    def units(self, states: Tensor) -> Tensor:
        """Model coordinates to units, (..., D) -> (..., D), increasing in each variable."""

    @property
    def members(self) -> int:
        """M, the number of models whose states stand side by side in a trajectory; 1 by default."""
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
        """Number of training units with the doses of each action in a step comparable to the observed one, or
        to `states` (T, D) in units, (T, A) long; None by default.
        """

    @property
    def claimant(self) -> "EpisodeSurrogate | None":
        """The model that estimates gains, separate from the one that selects actions; None by default."""

    @property
    def unmoved(self) -> tuple[str, ...]:
        """The states on which no action has a detectable effect; none by default."""
        return ()

    def replayed(self, episode: Episode, actions: Tensor) -> Tensor | None:
        """States under action sequences (n, H) long by R refits, (R, n, T, D), in units; or None."""

    def outside(self, episode: Episode, slack: float = 0.0) -> tuple[Finding, ...]:  # noqa: ARG002
        """``range`` findings for variables beyond the training range by more than the share `slack` of it."""
        return ()

    def noise(self, table: Table) -> tuple[Tensor, Tensor] | None:
        """The predictors of each step (n, p) and each member's abducted noise (n, M, D), float64; or None."""

    @property
    def least_noise(self) -> Tensor | None:
        """Variance of each state's noise, (D,), below which its predictability is ignored; or None."""

    @property
    def predictable_noise(self) -> Tensor | None:
        """R2 of each state's noise on held-out units, (D,); (0,) if unknown, None if not fitted to rows."""

    def noise_causes(self) -> Mapping[str, tuple[float, float]]:
        """Shares of each state's noise explained by other states of the step, and by a level per unit."""
        return {}

    def noise_shares(self) -> dict[str, float]:
        """`predictable_noise` by name; empty if it is not known."""
        r_squared = self.predictable_noise
        return (
            dict(zip(self.names, r_squared.tolist(), strict=True))
            if r_squared is not None and len(r_squared)
            else {}
        )

    @property
    def selectable(self) -> Tensor | None:
        """Which actions a search may select beside the observed ones, (A,) bool; None for all."""
