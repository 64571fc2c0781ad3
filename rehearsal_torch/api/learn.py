"""Learning: a rehearsal method fitted to a table, to decide for cases that come later.

    model = rt.learn(frame, task)
    decisions = model.decide(cases)

It is the first half of `rehearse`, which decides at once: the fit, its configuration and its seeds are the
same.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from narwhals.typing import IntoDataFrame

from rehearsal_torch.api.configured import in_words, learnt, undisturbed
from rehearsal_torch.api.explaining.explain import FittedRows
from rehearsal_torch.api.model_card import model_card
from rehearsal_torch.api.rehearsal_model import NODES, RehearsalModel, left_behind
from rehearsal_torch.api.request import Request
from rehearsal_torch.claims.cross_fitting import CrossFittedClaims
from rehearsal_torch.claims.row_cases import Untouched, untouched_rows
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.method_choice.rule import Choice
from rehearsal_torch.methods.judged import fitted_under
from rehearsal_torch.methods.run import Run
from rehearsal_torch.objectives.objective import AlterationObjective, class_of
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
from rehearsal_torch.reporting.untouched_score import UntouchedScore, score_of
from rehearsal_torch.surrogates.overturning import Overturning
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.user_error import RequestWarning


def learn(
    table: IntoDataFrame | Table | str | Path,
    task: Mapping[str, Any] | RehearsalTask | str | Path | None = None,
    method: str | None = None,
    seed: int = 0,
    **settings: object,
) -> RehearsalModel:
    """Fits a rehearsal method to a table.

    Arguments, warnings and errors are those of `rehearse`; with the method "auto", the model's `choice` says
    why one was taken. ``**{"dataset.validation": 0.2}`` holds a fifth of the rows out, and the model's card
    says how well it predicts them.
    """
    request = Request.of(table, task, method, seed, settings)
    with in_words(), undisturbed():
        config, method_asked = request.configured()
        problem = request.problem(config)
        for sentence in problem.facts().notes:
            warnings.warn(sentence, RequestWarning, stacklevel=2)
        request, run, choice = request.run(config, method_asked, problem)
        surrogate = learnt(run)
        return model_of(request, run, surrogate, untouched_score(problem, surrogate, run.objective), choice)


def model_of(
    request: Request,
    run: Run,
    surrogate: Surrogate,
    score: UntouchedScore | None,
    choice: Choice | None = None,
) -> RehearsalModel:
    """The model of a fit, with the held-out score and the choice of the method for its card."""
    problem = run.problem
    assert isinstance(problem, RehearsalTable)
    assert isinstance(surrogate, RehearsalSurrogate)
    written = request.written
    left = "" if written is None else f"{written.source} has for each case"
    return RehearsalModel(
        surrogate,
        run,
        {name: run.config[name] for name in NODES},
        request.method,
        request.seed,
        Overturning(problem.task, problem.observations),
        partial(model_card, problem, request.method, request.seed, request.settings, score, choice),
        FittedRows(problem.observations, partial(fitted_under, run)),
        choice,
        "" if written is None else left_behind(left, written.bounds, problem.task),
        dict(problem.facts().wording.get("units_of", {})),
    )


def untouched_score(
    problem: RehearsalTable,
    surrogate: Surrogate,
    objective: Callable[..., Any],
    claims: CrossFittedClaims | None = None,
) -> UntouchedScore | None:
    """The score of the rows that nobody altered (`reporting.untouched_score`): those held out by
    ``dataset.validation``, or, with cross-fitted claims, all rows, each predicted by a model that has not
    seen it. None if there is none, or the method says nothing of them.

    No table knows what an alteration would have brought, but it knows whether the outcome of an untouched row
    is desired, and a method predicts that too. Methods with networks stop their training by the held-out
    rows, so that a score on these is a little too good.

    Args:
        surrogate: The model fitted to the rows that were not held out.
        claims: Cross-fitted claims, whose folds have predicted every row; None uses the held-out rows.

    Source: Brier (1950).
    """
    if claims is not None:
        return None if claims.untouched is None else _scored(claims.untouched, problem.facts().units)
    kind = class_of(objective)
    if problem.aside is None or kind is None or not issubclass(kind, AlterationObjective):
        return None
    rows = untouched_rows(surrogate, objective, problem.aside, problem.task, problem.share)
    return _scored(rows, problem.aside_units)


def _scored(untouched: Untouched, units: Sequence[str] | None) -> UntouchedScore | None:
    named = None if units is None else [units[row] for row in untouched.rows.tolist()]
    return score_of(
        untouched.desired.tolist(), untouched.predicted.tolist(), untouched.constant.tolist(), named
    )
