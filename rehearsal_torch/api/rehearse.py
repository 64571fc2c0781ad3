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
from rehearsal_torch.data.codings.decision_texts import wanted_in
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
    """The decisions, in the order of the cases.

    Attributes:
        untouched: The score of the rows that nobody altered; None if no row was held out.
        model: It decides for further cases, and can be saved; None if it is not known.
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
        wanted = "" if model is None else wanted_in(model.task)
        super().__init__(decisions, cases, labels, wanted, library, None if model is None else model.units)
        self.untouched, self.model = untouched, model

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What must be known of the data, before any decision is; empty if the model is not known."""
        return () if self.model is None else self.model.findings

    def held_out(self) -> str:
        """One sentence on how well the method predicts what happens without an alteration, beside a constant:
        a method that does not beat it has learnt nothing about the outcome.
        """
        return NONE if self.untouched is None else self.untouched.line()

    def _sentences(self) -> list[str]:
        chosen = None if self.model is None else self.model.choice
        return [
            *super()._sentences(),
            *(f"Of the data: {each.text}." for each in self.findings),
            *([] if chosen is None else [sentence(chosen)]),
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
        table: Observations, one per row, with a column for each variable of the task's graph: a data frame
            (of pandas, polars or pyarrow), a file (.csv, .tsv, .xlsx, .parquet, ...), or a table. Or, without
            a task, a problem file, "problem.yaml" (docs/own_table.md), which decides for its own cases, else
            for rows that it holds out, like ``rehearsal decide problem.yaml``.
        task: Graph, context, box and region, and optionally candidates and codings: a dictionary, a YAML
            file, or a task. Columns of texts need codings, such as {"smoker": ["no", "yes"], "ward":
            "categorical"} (`data.codings`); cases then have texts as well, and tables say them.
        cases: The cases to decide for, one per row, with the context's columns: a data frame, a file, a
            table, or a list of dictionaries (a single dictionary is one case). None decides for every row of
            `table`.
        method: The name of a file in ``conf/decision``, such as "outcome_regression", "cme", "care" or
        "none"; None
            for that of the problem file, else "outcome_regression"; "auto" compares those that apply on the
            rows, and takes the simplest within one standard error of the best: `model.choice` of what is
            returned, and each trace, say why.
        workers: Processes that share cases and long fits, each with one thread; the decisions do not depend
            on it.
        claims: "in_sample", the method's own estimates; or "cross_fitted", estimates of the chosen actions
            from rows that did not choose them (ten more fits). The trace then holds ``brier``, the held-out
            score of the rows without an alteration, and ``brier_constant``, that of a constant.
        graphs: Graphs that may be true instead of the task's: {parents, undirected: [[one, other]]}, a list
            of graphs, or the graphs.yaml of ``rehearsal learn-graph``. The method is fitted under each, and
            the trace says under which share of them the decision is better than no action, and under which
            it is worst. The decisions stay those under the task's graph. None for those that fit the rows as
            well, if they are few (`claims.graph_robustness`); the task's graph alone for none.
        settings: Overrides of the method's configuration, dotted key to plain value, such as
            ``**{"objective.caution": 0}``; ``rehearsal options +experiment=auf`` lists the keys.
            ``surrogate``, ``objective``, ``search`` and ``trainer`` name files of these folders of ``conf``.

    Returns:
        A decision for each case, in the order of the cases: a list with `to_frame()`, `plot()` and a display
        of its own in notebooks (`api.decisions`). Its `held_out()` says in a sentence how well the method
        predicts rows that it has not seen where nothing is altered, and its `untouched` has these numbers
        (None unless ``claims`` are cross-fitted or ``dataset.validation`` holds rows out). Its `model` is the
        fitted method, which decides for further cases and can be saved (`learn`).

    Warns:
        RequestWarning: if none of the rows to learn from, or every one, lies in the desired region.

    Raises:
        TableError: if table or cases cannot be read, or a column is missing, not numeric, incomplete or
            constant; all faults are listed.
        TaskError: if the task cannot be used; all faults are listed.
        RequestError: if there is no such method or setting, or the method is for another kind of problem.
        ValueError: base class of all of the above.
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
        from_memory = table if cases is None else cases
        if request.written is None or cases is not None:
            named = names_of(from_memory, problem.count()) if config.dataset.identity is None else None
            problem.identities = named or problem.identities
        if claims == "cross_fitted" and problem.facts().imputations:
            raise RequestError(
                "claims: 'cross_fitted': folds of imputed tables have seen each other's rows through the "
                "imputation: leave claims out, or write missing: complete in the problem file"
            )
        for note in problem.facts().notes:
            warnings.warn(note, RequestWarning, stacklevel=2)
        request, run, choice = request.run(config, method_asked, problem, workers)
        surrogate = learnt(run, workers)
        from_others = cross_fitted_claims(run, workers=workers) if claims == "cross_fitted" else None
        possible = problem.facts().graphs if possible is None else possible
        doubts = doubts_of(run, surrogate)
        judged = judged_by_graphs(run, surrogate, possible, from_others, doubts=doubts)
        if choice is not None:
            judged = Noted(choice.chosen, sentences(choice)[0], judged)
        rounds = decided(problem, surrogate, run, request.seed, workers, judged)
        decisions, every = [each.decision for each in rounds], [each.case for each in rounds]
        score = untouched_score(problem, surrogate, run.objective, from_others)
        model = model_of(request, run, surrogate, score, choice, doubts)
        library = library_of(cases) or library_of(table) or "pandas"
        return Rehearsed(decisions, score, every, labels_of(from_memory), model, library)


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
    written = request.written
    left = "" if written is None else f"{written.findings.source} has for each case"
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
        "" if written is None else left_behind(left, written.form.bounds, problem.task),
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
    seen it. None if there is none, or the method says nothing of them.

    No table knows what an alteration would have brought, but it knows whether the outcome of an untouched row
    is desired, and a method predicts that too. Methods with networks stop their training by the held-out
    rows, so that a score on these is a little too good.

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
