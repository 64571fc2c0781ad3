"""Rehearsal surrogates: the base class of all models of a rehearsal task.

Besides its own parts, such a surrogate stores where the observations lie (`Overlap`), so that extrapolation
can be reported with every answer.

Source: Du et al. (2026), Sec. 2.1; Qin et al. (2023), Sec. 2 (the task).
"""

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from rehearsal_torch.data.question import Kind, Question
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.scaling import Standardise
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import Adjustment, adjustment
from rehearsal_torch.surrogates.outcome_draws import MODELS, OutcomeDraws, of_response
from rehearsal_torch.surrogates.overlap import Overlap
from rehearsal_torch.surrogates.structural.linear_model import AffineResponse
from rehearsal_torch.surrogates.surrogate import Surrogate


class RehearsalSurrogate(Surrogate, ABC):
    """A surrogate of a rehearsal task.

    The first item that `parts` yields is ``self.overlap, self.overlap.examples(table)``.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        graphs: The candidate graphs; None for the task's own.

    Attributes:
        has_responses: Whether `responses` draws from a posterior; known before anything is fitted.
    """

    kind: Kind | None = "rehearse"
    has_responses: bool = False

    def __init__(
        self, task: Mapping[str, Any] | RehearsalTask, graphs: Sequence[RehearsalGraph] | None = None
    ) -> None:
        super().__init__()
        self.task = RehearsalTask.of(task)
        self.overlap = Overlap(self.task, (self.task.graph,) if graphs is None else graphs)

    def question(self) -> Question:
        """The task."""
        return self.task

    def used(self) -> tuple[str, ...]:
        """Without region and candidate sets, which a structural model reads when it decides."""
        return ("graph", "actions", "context", "outcomes")

    def responses(
        self,
        altered: Sequence[str],  # noqa: ARG002
        count: int,  # noqa: ARG002
        seed: int = 0,  # noqa: ARG002
    ) -> AffineResponse | None:
        """The outcomes' response to context, action and noise when variables are set, under models drawn from
        the posterior by the seed alone: `count` equally likely ones in a leading dimension; None if there is
        no posterior over models with normal outcomes.

        Raises:
            ValueError: if a variable may not be altered.
        """
        return None

    def outcome_draws(self, altered: Sequence[str], given: Tensor, action: Tensor) -> OutcomeDraws | None:
        """Draws of the outcomes that the model expects in one case, with context (|X|,) and the values (k,)
        of a candidate set, or none for no action, in units; by default those of `responses`. None if the
        model has none.
        """
        responses = self.responses(altered, MODELS)
        return None if responses is None else of_response(responses, given, action)

    def _take(self, question: Question) -> None:
        self.task = RehearsalTask.of(question)  # type: ignore[arg-type]
        self.overlap.take(self.task)


class AdjustedSurrogate(RehearsalSurrogate, ABC):
    """A surrogate with estimators for each candidate set, which adjust for covariates that the graph tells;
    all in standardised variables.

    Args:
        task: The roles of the variables; plain data or a RehearsalTask.
        sequential: Uses the sequential formula where a single adjustment set does not exist.

    Attributes:
        adjustments: The adjustment of each candidate set.
    """

    by_adjustment: bool = True

    def __init__(self, task: Mapping[str, Any] | RehearsalTask, sequential: bool) -> None:
        super().__init__(task)
        self.scaler = Standardise(self.task.graph.names)
        self.adjustments: tuple[Adjustment, ...] = tuple(
            adjustment(self.task.graph, self.task.context, altered, self.task.outcomes, sequential)
            for altered in self.task.candidates
        )

    def used(self) -> tuple[str, ...]:
        """All fields: targets depend on the region, and each candidate set has estimators of its own."""
        return ("graph", "actions", "context", "outcomes", "region", "candidates")

    def _shown(self, table: Table, names: Sequence[str]) -> Tensor:
        return self.scaler.standardised(tuple(names), table.columns(tuple(names)))
