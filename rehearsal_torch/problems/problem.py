"""Problems: the contracts of data sets and simulators; their observations, cases and scores.

A problem has observations to learn from, cases to decide on, and a score for a decision. A world is a
simulator: it also returns what follows a decision, and knows the best achievable value. A data set is a
problem, since the outcome of another action is unknown.

The kinds are `RehearsalProblem` (contexts, and a task with the roles of the variables), `CausalProblem`
(experiments, round by round) and `EpisodeProblem` (what was done step by step). What only some problems know,
such as costs or the words for a report, is in `Problem.facts`.

Source: Du et al. (2026), Sec. 2.1 and 3.1 (rehearsal).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.data.records import Records
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.seeding import numpy_generator

if TYPE_CHECKING:
    from rehearsal_torch.data.causal_task import CausalTask
    from rehearsal_torch.data.decision import Decision, DecisionContext
    from rehearsal_torch.data.episode import Episode
    from rehearsal_torch.data.finding import Finding
    from rehearsal_torch.data.rehearsal_task import RehearsalTask
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.data.task_compatibility import Kind, Question
    from rehearsal_torch.data.trials.trial_log import TrialLog
    from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

# For the cards of simulated worlds.
SIMULATED = (
    "A simulated world: for learning the tool and for measuring it, never for evidence about real decisions."
)


def ranges_of(table: Records) -> dict[str, list[float]]:
    """The smallest and the largest value of each column, for cards."""
    columns = zip(table.names, table.values.T, strict=True)
    cells = {name: column[~np.isnan(column)] for name, column in columns}
    return {name: [float(values.min()), float(values.max())] for name, values in cells.items() if len(values)}


def as_table(rows: Records) -> Table:
    """Rows as tensors; torch is loaded here, which checks of files go without."""
    import torch

    from rehearsal_torch.data.table import Table

    altered = np.zeros(rows.values.shape, dtype=bool) if rows.altered is None else rows.altered
    places = None if rows.places is None else torch.tensor(rows.places)
    return Table(rows.names, torch.tensor(rows.values), torch.tensor(altered), places=places)


@dataclass(frozen=True)
class Facts:
    """Facts of a problem beside its rows and cases; by default none.

    Attributes:
        notes: What to know before a model is fitted, one sentence each.
        units: The unit (a patient, a store) of each row of the observations; None if every row is its own.
        imputations: m, how often missing cells of the observations are imputed; 0 where none is missing.
        method: The method that the problem itself asks for, such as "auto".
        graphs: The graphs that may be true, as `graphs.graph_notation` reads them; None if there is one.
        costs: Action to the weight of its squared change, for `micns`.
        unweighed: Actions whose costs are stated and do not count, as no worth is.
        surrogate: Surrogate settings that its configuration leaves open, name to plain data.
        reward: The reward of a step, as the node of a configuration; empty for the configuration's own.
        rules: Which changes of episodes may be recommended, by the names of `objectives.change_rules`.
        wording: ``unit``, ``units`` and ``step`` in words, ``units_of`` columns and names of ``levels`` of
            actions.
        waiting: The trials, if proposed experiments wait for their result, which decisions then heed.
        experiments: The user's table of experiments; None elsewhere.
        episodes: A split, "train", "validation" or "test", to its episodes; None where there are none.
        seen_by: Whether a model of a table with a fingerprint has seen scored rows, or None; None without
            scores.
        reading: Plain data to read later episodes by: ``task``, ``step``, its length, and ``first`` time.
    """

    notes: Sequence[str] = ()
    units: Sequence[str] | None = None
    imputations: int = 0
    method: str | None = None
    graphs: Any = None
    costs: Mapping[str, float] = field(default_factory=dict)
    unweighed: Sequence[str] = ()
    surrogate: Mapping[str, Any] = field(default_factory=dict)
    reward: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)
    wording: Mapping[str, Any] = field(default_factory=dict)
    waiting: TrialLog | None = None
    experiments: Experiments | None = None
    episodes: Callable[[str], Sequence[Episode]] | None = None
    seen_by: Callable[[str | None], bool | None] | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)


class Experiments(ABC):
    """A user's table of experiments of a task, to which proposals are added; `lacking` says why no model is
    fitted.
    """

    task: CausalTask
    lacking: str

    @abstractmethod
    def to_begin(self, seed: int = 0) -> Table | None:
        """Experiments to run while no model can be fitted, actions (m, k); None if one can be."""

    @abstractmethod
    def with_proposals(self, settings: Sequence[Mapping[str, float]]) -> str:
        """The table as text, with a row for each proposed experiment, whose results are to be filled in."""


class Problem(ABC):
    """Observations, cases and scores of a `kind`: ``rehearse`` (what to alter now, case by case),
    ``optimise`` (what to try next, round by round) or ``look_back`` (what should have been done in an
    episode).
    """

    kind: Kind = "look_back"

    @abstractmethod
    def observations(self) -> Table:
        """The observations that a surrogate is fitted to."""

    @abstractmethod
    def held_out(self) -> Table:
        """Observations for early stopping and held-out likelihoods; not used for fitting."""

    def question(self) -> Question:
        """What a surrogate must have been fitted for; by default the columns of the observations."""
        from rehearsal_torch.data.task_compatibility import Columns

        return Columns(self.observations().names)

    def facts(self) -> Facts:
        """The facts beside rows and cases."""
        return Facts()

    def findings(self) -> tuple[Finding, ...]:
        """Warnings of the data, found once, before anything is fitted; none by default."""
        return ()

    @abstractmethod
    def count(self) -> int:
        """The number of cases; an unbounded problem returns the number that was requested."""

    @abstractmethod
    def case(self, index: int) -> DecisionContext:
        """Case number `index`, the same at every call and in every process; IndexError if there is none."""

    def cases(self, indices: Sequence[int]) -> Sequence[DecisionContext]:
        """Some of the cases, which are decided in one batch."""
        return [self.case(index) for index in indices]

    @abstractmethod
    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:
        """The problem's own metrics for a decision, name to number."""

    @abstractmethod
    def card(self) -> Mapping[str, Any]:
        """Plain data for people and `card.yaml`: sizes, ranges, missing values, source, fingerprint."""


class OwnData(Problem, ABC):
    """A user's own data, which may not mean what their author means."""

    @cached_property
    def found(self) -> Findings:
        """The findings, with the keys of a problem file."""
        findings = Findings("")
        self._note(findings)
        return findings

    def findings(self) -> tuple[Finding, ...]:
        """The findings, for the author of the data."""
        return self.found.findings

    @abstractmethod
    def _note(self, findings: Findings) -> None:
        """Adds the findings."""


class OfFile(OwnData, ABC):
    """A problem file as a problem; `read_notes` are sentences on what its readers decided by themselves, and
    it `goes_on` if `suggest` proposes what is next, not `decide`.
    """

    read_notes: tuple[str, ...]
    goes_on = False

    @abstractmethod
    def counted(self) -> str:
        """The numbers of rows, cases and the like in one sentence."""

    @abstractmethod
    def variable_rows(self) -> list[tuple[str, ...]]:
        """A row for each variable, the header first."""

    def sections(self) -> list[str]:
        """Further lines; none by default."""
        return []

    def graph_of_variables(self) -> RehearsalGraph | None:
        """The graph, with variables of classes in the place of their indicators; None if there is none."""
        return None


@dataclass(frozen=True)
class Verdict:
    """The value of the rows after a decision: whether all are desired, and their mean reward, or None."""

    success: bool | None = None
    reward: float | None = None


class World(Problem, ABC):
    """A problem that simulates what follows a decision."""

    seed: int

    def stream(self, purpose: int, index: int = 0) -> np.random.Generator:
        """A random number generator determined by the world's seed, a purpose and an index."""
        return numpy_generator(self.seed, purpose, index)

    @abstractmethod
    def respond(self, case: DecisionContext, decision: Decision) -> Table:
        """The row(s) that follow a decision, altered cells marked."""

    @abstractmethod
    def optimum(self, case: DecisionContext) -> float:
        """The best achievable score in a case."""

    def verdict(self, answer: Table) -> Verdict:  # noqa: ARG002
        """The value of the row(s) that followed a decision."""
        return Verdict()


class RehearsalProblem(Problem, ABC):
    """What to alter before the outcome is known; `hypotheses` are graphs for methods without the true one."""

    kind: Kind = "rehearse"
    task: RehearsalTask
    hypotheses: tuple[RehearsalGraph, ...] = ()

    def question(self) -> Question:
        """The task."""
        return self.task

    def facts(self) -> Facts:
        """Task and candidate graphs for surrogates; actions with a cost, where no worth is stated."""
        graphs = [graph.to_plain() for graph in self.hypotheses]
        unweighed = tuple(self.task.costs) if self.task.worth is None else ()
        return Facts(surrogate={"task": self.task.to_plain(), "hypotheses": graphs}, unweighed=unweighed)


class CausalProblem(Problem, ABC):
    """A problem with a causal task; case t is the question what to try in round t."""

    kind: Kind = "optimise"
    task: CausalTask

    def question(self) -> Question:
        """The task."""
        return self.task

    def facts(self) -> Facts:
        """The task, for surrogates."""
        return Facts(surrogate={"task": self.task.to_plain()})


class EpisodeProblem(Problem, ABC):
    """A problem of kind ``look_back``: what should have been done in an episode."""

    @abstractmethod
    def episodes(self, split: str = "train") -> Sequence[Episode]:
        """The episodes of a split: "train", "validation" or "test"."""

    def facts(self) -> Facts:
        """The episodes."""
        return Facts(episodes=self.episodes)

    def observations(self) -> Table:
        """Transitions of the units to learn from, in the table's units."""
        from rehearsal_torch.data.episode import transitions

        return transitions(self.episodes("train"))

    def held_out(self) -> Table:
        """Transitions of the validation units."""
        from rehearsal_torch.data.episode import transitions

        return transitions(self.episodes("validation"))
