"""Problems and worlds: where situations come from, and what becomes of decisions.

A problem has observations to learn from, situations to decide in, and a score for a decision. A world also
answers: it says what follows a decision, and knows the best achievable value. A data set is a problem (nobody
answers an episode of the past); a simulator is a world.

Rehearsal problems: observations, contexts, and a task that says who plays which part.

A simulator is one (`RehearsalWorld`), a user's own table another: methods ask for the task alone.

Source: Du et al. (2026), Sec. 2.1 and 3.1.

Problems of causal Bayesian optimisation: where experiments come from.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import Decision, DecisionContext
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.question import Columns, Kind, Question
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

# For the cards of simulated worlds.
SIMULATED = (
    "A simulated world: for learning the tool and for measuring it, never for evidence about real decisions."
)


class Problem(ABC):
    """Observations, situations and scores.

    Attributes:
        kind: What is asked: ``rehearse`` (what to alter now, case by case), ``optimise`` (what to try next,
            round by round) or ``look_back`` (what should have been done in an episode).
    """

    kind: Kind = "look_back"

    @abstractmethod
    def observations(self) -> Table:
        """What a surrogate is fitted to."""

    @abstractmethod
    def held_out(self) -> Table:
        """Observations for early stopping and held-out likelihoods; not used to fit."""

    def question(self) -> Question:
        """What a surrogate must have been fitted for, to decide here; by default the columns of the
        observations.
        """
        return Columns(self.observations().names)

    def surrogate_settings(self) -> Mapping[str, Any]:
        """What a surrogate is to be built with where its configuration leaves it open, name to plain data; by
        default nothing.
        """
        return {}

    def to_begin(self, seed: int = 0) -> Table | None:  # noqa: ARG002
        """The experiments to run before there is anything to fit, actions to set (m, k); None where there are
        observations enough, as there are by default.

        Args:
            seed: Scrambles the design.
        """
        return None

    def episodes(self, split: str = "train") -> Sequence[Episode] | None:  # noqa: ARG002
        """The episodes of a split; None where the observations are no episodes, or not kept as such.

        Args:
            split: One of "train", "validation" and "test".
        """
        return None

    @abstractmethod
    def count(self) -> int:
        """How many situations there are; a problem without end says how many it is asked for."""

    @abstractmethod
    def case(self, index: int) -> DecisionContext:
        """Situation number `index`, 0 ... count - 1: the same at every call and in every process.

        Raises:
            IndexError: if there is no such situation.
        """

    @abstractmethod
    def score(self, case: DecisionContext, decision: Decision) -> Mapping[str, float]:
        """What the problem's own yardstick says of a decision, name to number."""

    @abstractmethod
    def card(self) -> Mapping[str, Any]:
        """A plain description for people and for `card.yaml`: sizes, ranges, missingness, source,
        fingerprint.
        """


class World(Problem, ABC):
    """A problem that answers."""

    @abstractmethod
    def respond(self, case: DecisionContext, decision: Decision) -> Table:
        """The row(s) that follow a decision, altered cells marked."""

    @abstractmethod
    def optimum(self, case: DecisionContext) -> float:
        """The best achievable score in a situation."""

    def success(self, answer: Table) -> bool | None:  # noqa: ARG002
        """Whether the row(s) that followed a decision are what was wanted; None where the world has no word
        on it.
        """
        return None

    def reward(self, answer: Table) -> float | None:  # noqa: ARG002
        """What the row(s) that followed a decision are worth, the mean where there are several; None where
        the world has no reward.
        """
        return None


class RehearsalProblem(Problem, ABC):
    """A problem in foresight.

    Attributes:
        task: Who plays which part.
        hypotheses: Graphs that a method is told of where it is not told the true one; empty where nothing is
            left open.
    """

    kind: Kind = "rehearse"
    task: RehearsalTask
    hypotheses: tuple[RehearsalGraph, ...] = ()

    def question(self) -> Question:
        """The task."""
        return self.task

    def surrogate_settings(self) -> Mapping[str, Any]:
        """The task, and the graphs that may be true."""
        return {
            "task": self.task.to_plain(),
            "hypotheses": [graph.to_plain() for graph in self.hypotheses],
        }


class CausalProblem(Problem):
    """A problem with a causal task; situation t is the question what to try in round t.

    Attributes:
        task: Who follows from whom, what may be set, what is wanted.
    """

    kind: Kind = "optimise"
    task: CausalTask

    def question(self) -> Question:
        """The task."""
        return self.task

    def surrogate_settings(self) -> Mapping[str, Any]:
        """The task."""
        return {"task": self.task.to_plain()}
