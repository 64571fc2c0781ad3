"""Rehearsal: which alteration to make in each case, so that the outcomes fall into a desired region.

    decisions = rt.rehearse("table.csv", "task.yaml", "cases.csv")

A surrogate is fitted to the table, and a decision is made for each case: the values to set, the estimated
probability of success with an interval, and the same for no action; or a refusal with its reason. The
decisions are, to the last bit, those of

    rehearsal decide table.csv +experiment=own_table decision=METHOD dataset.task=task.yaml

with the cases as ``dataset.contexts=cases.csv``.

Source: Du et al. (2026), Sec. 2.1.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from narwhals.typing import IntoDataFrame

from rehearsal_torch.api.decisions import Decisions
from rehearsal_torch.api.explain_decision import FittedRows
from rehearsal_torch.api.fit_and_decide import decided, in_words, learnt, undisturbed
from rehearsal_torch.api.rehearsal_model import NODES, Case, RehearsalModel, left_behind, model_card
from rehearsal_torch.api.rehearsal_request import Request, check_workers, labels_of, names_of
from rehearsal_torch.claims.cross_fitting import CrossFittedClaims
from rehearsal_torch.claims.graph_robustness import Doubts
from rehearsal_torch.claims.rows_as_cases import Untouched, untouched_rows
from rehearsal_torch.data.codings.decision_texts import region_in_words
from rehearsal_torch.data.decision import Decision, DecisionContext
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.in_memory import library_of
from rehearsal_torch.graphs.graph_notation import graph_class
from rehearsal_torch.methods.method_choice import Choice, Noted, sentence, sentences
from rehearsal_torch.methods.run_parts import (
    Run,
    cross_fitted_claims,
    doubts_of,
    fitted_under,
    judged_by_graphs,
)
from rehearsal_torch.objectives.objective import AlterationObjective, class_of
from rehearsal_torch.problems.cases.user_table import RehearsalTable
from rehearsal_torch.reporting.no_action_score import UntouchedScore, score_of
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.surrogates.tipping_strength import Overturning
from rehearsal_torch.user_error import RequestError, RequestWarning, as_user_error

NONE = (
    'Held-out score of the untouched rows: none, as no row was held out (claims="cross_fitted" scores all '
    'rows, **{"dataset.validation": 0.2} holds a fifth out)'
)


class Rehearsed(Decisions):
    """The decisions, in the order of the cases, with the score of rows that nobody altered (`untouched`; None
    if no row was held out) and the `model`, which decides for further cases (None if unknown).
    """

    def __init__(
        self,
        decisions: Iterable[Decision],
        untouched: UntouchedScore | None = None,
        cases: Sequence[DecisionContext] = (),
        labels: pd.Index | None = None,
        model: RehearsalModel | None = None,
        library: str = "pandas",
    ) -> None:
        region = "" if model is None else region_in_words(model.task)
        super().__init__(decisions, cases, labels, region, library, None if model is None else model.units)
        self.untouched, self.model = untouched, model

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What must be known of the data, before any decision is; empty if the model is not known."""
        return () if self.model is None else self.model.findings

    def held_out(self) -> str:
        """A sentence on how well the method predicts unaltered rows, beside a constant."""
        return NONE if self.untouched is None else self.untouched.line()

    def _sentences(self) -> list[str]:
        choice = None if self.model is None else self.model.choice
        return [
            *super()._sentences(),
            *(f"Of the data: {finding.text}." for finding in self.findings),
            *([] if choice is None else [sentence(choice)]),
            *([] if self.untouched is None else [self.untouched.line()]),
        ]


def rehearse(
    table: IntoDataFrame | Table | str | Path,
    task: Mapping[str, Any] | RehearsalTask | str | Path | None = None,
    cases: IntoDataFrame | Table | str | Path | Sequence[Case] | Case | None = None,
    method: str | None = None,
    seed: int = 0,
    workers: int = 1,
    claims: str = "in_sample",
    graphs: str | Path | Mapping[str, Any] | Sequence[Any] | None = None,
    **settings: object,
) -> Rehearsed:
    """Decides which alteration to make in each case.

    Args:
        table: Observations, one per row, with a column for each variable of the graph: a data frame (pandas,
            polars, pyarrow), a file (.csv, .tsv, .xlsx, .parquet, ...) or a Table. Or, without a task, a
            problem file (docs/own_table.md), which decides for its own cases, else for held-out rows.
        task: Graph, context, box and region, and optionally candidates and codings: a dictionary, a YAML
            file, or a task. Columns of texts need codings, such as {"smoker": ["no", "yes"], "ward":
            "categorical"} (`data.codings`); cases then have texts as well, and tables say them.
        cases: The cases to decide for, one per row, with the context's columns: a data frame, a file, a
            table, or one or several dictionaries. None decides for every row of `table`.
        method: A file in ``conf/decision``, such as "outcome_regression", "cme", "care" or "none"; None for
            the problem file's, else "outcome_regression"; "auto" compares those that apply on the rows, and
            takes the simplest within one standard error of the best (`model.choice`).
        workers: Processes that share cases and long fits; the decisions do not depend on it.
        claims: "in_sample", the method's own estimates; or "cross_fitted", from rows that did not choose the
            actions (ten more fits), with held-out scores ``brier`` and ``brier_constant`` in the trace.
        graphs: Graphs that may be true instead of the task's: {parents, undirected: [[one, other]]}, a list
            of graphs, or the graphs.yaml of ``rehearsal learn-graph``. The method is fitted under each, and
            the trace has the share of them under which the decision is better than no action, and the worst.
            The decisions stay those under the task's graph. None for those that fit the rows as well, if they
            are few (`claims.graph_robustness`).
        settings: Overrides of the method's configuration, dotted key to plain value, such as
            ``**{"objective.caution": 0}``; ``rehearsal options +experiment=auf`` lists the keys.
            ``surrogate``, ``objective``, ``search`` and ``trainer`` name files of these folders of ``conf``.

    Returns:
        A decision for each case, in order: a list with `to_frame()`, `plot()` and a display in notebooks
        (`api.decisions`). `held_out()` and `untouched` say how well the method predicts unseen rows without
        an alteration (with cross-fitted claims or ``dataset.validation``); `model` is the fitted method,
        which decides for further cases and can be saved (`learn`).

    Warns:
        RequestWarning: if none of the rows to learn from, or every one, lies in the desired region.

    Raises:
        TableError: lists columns that are missing, not numeric, incomplete or constant.
        TaskError: if the task cannot be used; all faults are listed.
        RequestError: if there is no such method or setting, or the method is for another kind of problem.
    """
    check_workers(workers)
    if claims not in ("in_sample", "cross_fitted"):
        raise RequestError(f"claims: expected 'in_sample' or 'cross_fitted'; got {claims!r}")
    request = Request.of(table, task, method, seed, settings)
    with in_words(), undisturbed():
        with as_user_error("graphs"):
            possible = None if graphs is None else graph_class(graphs)
        config, method_asked = request.configured()
        problem = request.problem(config, cases)
        case_rows = table if cases is None else cases
        if request.written is None or cases is not None:
            names = names_of(case_rows, problem.count()) if config.dataset.identity is None else None
            problem.identities = names or problem.identities
        if claims == "cross_fitted" and problem.facts().imputations:
            raise RequestError(
                "claims: 'cross_fitted': folds of imputed tables have seen each other's rows through the "
                "imputation: leave claims out, or write missing: complete in the problem file"
            )
        for note in problem.facts().notes:
            warnings.warn(note, RequestWarning, stacklevel=2)
        request, run, choice = request.run(config, method_asked, problem, workers)
        surrogate = learnt(run, workers)
        cross_fitted = cross_fitted_claims(run, workers=workers) if claims == "cross_fitted" else None
        possible = problem.facts().graphs if possible is None else possible
        doubts = doubts_of(run, surrogate)
        judged = judged_by_graphs(run, surrogate, possible, cross_fitted, doubts=doubts)
        if choice is not None:
            judged = Noted(choice.chosen, sentences(choice)[0], judged)
        rounds = decided(problem, surrogate, run, request.seed, workers, judged)
        decisions, decided_cases = [round.decision for round in rounds], [round.case for round in rounds]
        score = untouched_score(problem, surrogate, run.objective, cross_fitted)
        model = model_of(request, run, surrogate, score, choice, doubts)
        library = library_of(cases) or library_of(table) or "pandas"
        return Rehearsed(decisions, score, decided_cases, labels_of(case_rows), model, library)


def learn(
    table: IntoDataFrame | Table | str | Path,
    task: Mapping[str, Any] | RehearsalTask | str | Path | None = None,
    method: str | None = None,
    seed: int = 0,
    **settings: object,
) -> RehearsalModel:
    """Fits a rehearsal method to a table, to decide for cases that come later (`RehearsalModel.decide`).

    Arguments, warnings and errors are those of `rehearse`, which decides at once; with the method "auto", the
    model's `choice` says why one was taken. ``**{"dataset.validation": 0.2}`` holds a fifth of the rows out,
    and the model's card says how well it predicts them.
    """
    request = Request.of(table, task, method, seed, settings)
    with in_words(), undisturbed():
        config, method_asked = request.configured()
        problem = request.problem(config)
        for sentence in problem.facts().notes:
            warnings.warn(sentence, RequestWarning, stacklevel=2)
        request, run, choice = request.run(config, method_asked, problem)
        surrogate = learnt(run)
        score = untouched_score(problem, surrogate, run.objective)
        return model_of(request, run, surrogate, score, choice, doubts_of(run, surrogate))


def model_of(
    request: Request,
    run: Run,
    surrogate: Surrogate,
    score: UntouchedScore | None,
    choice: Choice | None = None,
    doubts: Doubts | None = None,
) -> RehearsalModel:
    """The model of a fit, with the held-out score and the choice of the method for its card."""
    problem = run.problem
    assert isinstance(problem, RehearsalTable)
    assert isinstance(surrogate, RehearsalSurrogate)
    file = request.written
    bounds_of = "" if file is None else f"{file.findings.source} has for each case"
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
        "" if file is None else left_behind(bounds_of, file.form.bounds, problem.task),
        dict(problem.facts().wording.get("units_of", {})),
        doubts,
    )


def untouched_score(
    problem: RehearsalTable,
    surrogate: Surrogate,
    objective: Callable[..., Any],
    claims: CrossFittedClaims | None = None,
) -> UntouchedScore | None:
    """The score of the rows that nobody altered (`reporting.no_action_score`): those held out by
    ``dataset.validation``, or, with cross-fitted claims, all rows, each predicted by a model that has not
    seen it. None without such rows, or a method that does not predict them.

    No table knows what an alteration would have brought, but methods also predict the outcomes of untouched
    rows. Networks stop their training by the held-out rows, so that their score is a little too good.

    Source: Brier (1950).
    """
    if claims is not None:
        return None if claims.untouched is None else _score(claims.untouched, problem.facts().units)
    kind = class_of(objective)
    if problem.aside is None or kind is None or not issubclass(kind, AlterationObjective):
        return None
    rows = untouched_rows(surrogate, objective, problem.aside, problem.task, problem.share)
    return _score(rows, problem.aside_units)


def _score(untouched: Untouched, units: Sequence[str] | None) -> UntouchedScore | None:
    row_units = None if units is None else [units[row] for row in untouched.rows.tolist()]
    return score_of(
        untouched.desired.tolist(), untouched.predicted.tolist(), untouched.constant.tolist(), row_units
    )
