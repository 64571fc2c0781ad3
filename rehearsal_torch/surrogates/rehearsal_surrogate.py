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
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
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
        by_adjustment: Whether the graph enters the fit through the adjustment of the candidate sets alone.
    """

    kind: Kind | None = "rehearse"
    has_responses: bool = False
    by_adjustment: bool = False

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
        """Neither the region nor the candidate sets enter the fit of a structural model: they are read when a
        decision is made.
        """
        return ("graph", "actions", "context", "outcomes")

    def responses(
        self,
        altered: Sequence[str],  # noqa: ARG002
        count: int,  # noqa: ARG002
        seed: int = 0,  # noqa: ARG002
    ) -> AffineResponse | None:
        """The outcomes' response to context, action and noise under models drawn from the posterior.

        Args:
            altered: The k variables that are set; may be empty.
            seed: Determines the models; no other random state is used or changed.

        Returns:
            `count` equally likely responses in a leading dimension; None if the surrogate has no posterior
            over models with normal outcomes.

        Raises:
            ValueError: if a variable may not be altered.
        """
        return None

    def outcome_draws(self, altered: Sequence[str], given: Tensor, action: Tensor) -> OutcomeDraws | None:
        """Draws of the outcomes that the model expects in one case.

        Args:
            altered: The variables of a candidate set, or none for no action.
            given: The context, (|X|,), in units.
            action: The values that are set, (k,), in units.

        Returns:
            The draws; by default those of `responses`. None if the model has none of the outcomes.
        """
        found = self.responses(altered, MODELS)
        return None if found is None else of_response(found, given, action)

    def _take(self, question: Question) -> None:
        self.task = RehearsalTask.of(question)  # type: ignore[arg-type]
        self.overlap.take(self.task)
