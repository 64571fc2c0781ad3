"""What `rehearse` returns: decisions (`api.decisions`), with the held-out score of the untouched rows.

    decisions = rt.rehearse("table.csv", "task.yaml", "cases.csv", claims="cross_fitted")
    print(decisions.held_out())

No table knows what an alteration would have brought, but it knows whether the outcome of an untouched row is
desired, and a method predicts that too (`reporting.untouched_score`). The rows are those held out by
``dataset.validation``, or, with cross-fitted claims, all rows, each predicted by a model that has not seen
it. Methods with networks stop their training by the held-out rows, so that a score on these is a little too
good.

Source: Brier (1950).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from rehearsal_torch.api.decisions import Decisions
from rehearsal_torch.claims.cross_fitting import CrossFittedClaims
from rehearsal_torch.claims.row_cases import Untouched, untouched_rows
from rehearsal_torch.data.codings.recorded import wanted_in
from rehearsal_torch.data.decision import Decision, DecisionContext
from rehearsal_torch.method_choice.words import sentence
from rehearsal_torch.objectives.objective import AlterationObjective, class_of
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
from rehearsal_torch.reporting.untouched_score import UntouchedScore, score_of
from rehearsal_torch.surrogates.surrogate import Surrogate

if TYPE_CHECKING:
    from rehearsal_torch.api.rehearsal_model import RehearsalModel

NONE = (
    'Held-out score of the untouched rows: none, as no row was held out (claims="cross_fitted" scores all '
    'rows, **{"dataset.validation": 0.2} holds a fifth out)'
)


class Rehearsed(Decisions):
    """The decisions, in the order of the cases.

    Args:
        untouched: The score of the rows that nobody altered; None if no row was held out.

    Attributes:
        untouched: The same.
        model: The same: it decides for further cases, and can be saved; None if it is not known.
    """

    def __init__(
        self,
        decisions: Iterable[Decision],
        untouched: UntouchedScore | None = None,
        cases: Sequence[DecisionContext] = (),
        labels: pd.Index | None = None,
        model: "RehearsalModel | None" = None,
        library: str = "pandas",
    ) -> None:
        wanted = "" if model is None else wanted_in(model.task)
        super().__init__(decisions, cases, labels, wanted, library, None if model is None else model.units)
        self.untouched, self.model = untouched, model

    def held_out(self) -> str:
        """One sentence on how well the method predicts what happens without an alteration, beside a constant:
        a method that does not beat it has learnt nothing about the outcome.
        """
        return NONE if self.untouched is None else self.untouched.line()

    def _sentences(self) -> list[str]:
        chosen = None if self.model is None else self.model.choice
        return [
            *super()._sentences(),
            *([] if chosen is None else [sentence(chosen)]),
            *([] if self.untouched is None else [self.untouched.line()]),
        ]


def untouched_score(
    problem: RehearsalTable,
    surrogate: Surrogate,
    objective: Callable[..., Any],
    claims: CrossFittedClaims | None = None,
) -> UntouchedScore | None:
    """The score of the rows that nobody altered; None if no row was held out, or the method says nothing of
    them.

    Args:
        surrogate: The model fitted to the rows that were not held out.
        objective: The objective of its decisions.
        claims: Cross-fitted claims, whose folds have predicted every row; None uses the held-out rows.
    """
    if claims is not None:
        return None if claims.untouched is None else _scored(claims.untouched, problem.facts().units)
    made = class_of(objective)
    if problem.aside is None or made is None or not issubclass(made, AlterationObjective):
        return None
    found = untouched_rows(surrogate, objective, problem.aside, problem.task, problem.share)
    return _scored(found, problem.aside_units)


def _scored(untouched: Untouched, units: Sequence[str] | None) -> UntouchedScore | None:
    named = None if units is None else [units[row] for row in untouched.rows.tolist()]
    return score_of(
        untouched.desired.tolist(), untouched.predicted.tolist(), untouched.constant.tolist(), named
    )
