"""A fitted rehearsal method, which decides, compares, explains and can be saved.

    model = rt.learn(frame, task)
    decisions = model.decide(cases)
    model.save("model")

    rt.load("model").decide(cases)         the same decisions, to the last bit

No rows are needed to decide: what hidden causes would have to do is compared with covariates whose strengths
were recorded with the fit (`surrogates.tipping_strength`).
"""

import hashlib
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import torch
import yaml
from narwhals.typing import IntoDataFrame
from omegaconf import open_dict

from rehearsal_torch.api.decisions import Decisions
from rehearsal_torch.api.explain_decision import FittedRows, check_explained, explain
from rehearsal_torch.api.explanation import Explanation
from rehearsal_torch.api.fit_and_decide import decided, in_words, provenance, undisturbed
from rehearsal_torch.api.rehearsal_request import (
    NewCases,
    Request,
    check_workers,
    labels_of,
    names_of,
    plain_contexts,
    rows_of,
)
from rehearsal_torch.api.what_if import Comparison, FittedMethod, WhatIf, compare, what_if
from rehearsal_torch.checkpoint import METHOD, UNDER, written
from rehearsal_torch.checkpoint import save as save_surrogate
from rehearsal_torch.claims.abstention_rules import Claims
from rehearsal_torch.claims.graph_robustness import Doubts
from rehearsal_torch.data.codings.decision_texts import in_numbers, region_in_words
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finding import Finding, findings_of
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.decision_cases import cases_in_codes, costs_in, present_in
from rehearsal_torch.data.tables.in_memory import library_of
from rehearsal_torch.evaluation.effect_tables import AverageEffect, effects_of
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.methods.method_choice import Choice, sentences
from rehearsal_torch.methods.run_parts import Method, build, fitted_under
from rehearsal_torch.problems.cases.user_table import RehearsalTable, cases_in, rows_in
from rehearsal_torch.reporting.decision_frame import table_html
from rehearsal_torch.reporting.no_action_score import UntouchedScore
from rehearsal_torch.spaces.box import as_tensor
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.tipping_strength import Overturning
from rehearsal_torch.user_error import RequestError, RequestWarning

NODES = ("surrogate", "objective", "search")  # What a configuration holds of a method.
# Where the card of a saved model has the SHA-256 of its method.
SHA = "method_sha256"
Case = Mapping[str, float | str]


@dataclass(frozen=True, eq=False)
class RehearsalModel(FittedMethod):
    """A rehearsal method, fitted to a table.

    Attributes:
        nodes: The configuration of surrogate, objective and search, as plain data.
        past: The rows of the fit; None for a saved model, which holds none.
        choice: The choice of the method from the rows (`methods.method_choice`); None if it was named or
            loaded.
        bounds_left: What becomes of bounds that a problem file has for each case; empty where it has none.
        doubts: What is doubted of the graph; its fits under other graphs are saved as well.
    """

    surrogate: RehearsalSurrogate = field(repr=False)
    method: Method = field(repr=False)
    nodes: Mapping[str, Any] = field(repr=False)
    name: str
    seed: int
    overturning: Overturning = field(repr=False)
    described: Callable[[], Mapping[str, Any]] = field(repr=False)
    past: FittedRows | None = field(default=None, repr=False)
    choice: Choice | None = field(default=None, repr=False)
    bounds_left: str = field(default="", repr=False)
    units: Mapping[str, str] = field(default_factory=dict, repr=False)
    doubts: Doubts | None = field(default=None, repr=False)

    def to(self, device: torch.device | str) -> Self:
        """Moves the fitted model to a device, such as "cuda"; several `workers` decide on the CPU."""
        self.surrogate.to(device)
        return self

    @cached_property
    def card(self) -> Mapping[str, Any]:
        """What it was fitted to, what it is for, and its limits."""
        return self.described()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What must be known of the data that it was fitted to; those of `rehearsal check`."""
        return findings_of(self.card.get("data") or {})

    @cached_property
    def strengths(self) -> dict[tuple[str, ...], Mapping[str, float] | None]:
        """The strengths of the covariates for each candidate set (`Overturning.covariates`)."""
        sets = filter(self.overturning.known_for, self.task.candidates)
        return {names: self.overturning.covariates(names) for names in sets}

    @cached_property
    def _graph_claims(self) -> Claims | None:
        """What judges decisions by other graphs."""
        if self.doubts is None:
            return None
        return self.doubts.claims(self.surrogate, self.method.objective, self.method.search.declines)

    def decide(
        self, cases: IntoDataFrame | Table | str | Path | Sequence[Case] | Case, workers: int = 1
    ) -> Decisions:
        """Decides which alteration to make in each case, given in any of the forms of `rehearse`, by
        `workers` processes. A RequestWarning if bounds of each case are not kept; a TableError lists the
        faults of cases, a RequestError is for other types and no cases.
        """
        check_workers(workers)
        if self.bounds_left:
            warnings.warn(self.bounds_left, RequestWarning, stacklevel=2)
        problem = self._cases(cases)
        with in_words(), undisturbed(self.method.search.draws):
            rounds = decided(
                problem, self.surrogate, self.method, self.seed, workers, self._graph_claims, self.overturning
            )
        contexts, decisions = [round.case for round in rounds], [round.decision for round in rounds]
        library = library_of(cases) or "pandas"
        return Decisions(
            decisions, contexts, labels_of(cases), region_in_words(self.task), library, self.units
        )

    def what_if(self, case: IntoDataFrame | Case, alteration: Mapping[str, float | str]) -> WhatIf:
        """What the method claims of a given alteration in one case (a dictionary, or one row in any of the
        forms of `decide`): name to value, or text, for all variables of one candidate set. Nothing is
        searched. A TableError for an incomplete context, a RequestError for what cannot be answered.
        """
        known_case = self._single_case(case)
        with in_words(), undisturbed():
            return what_if(self, known_case, self._in_codes(alteration))

    def compare(
        self, case: IntoDataFrame | Case, first: Mapping[str, float | str], second: Mapping[str, float | str]
    ) -> Comparison:
        """Which of two alterations, of the same variables or of two candidate sets, is better in one case. A
        RequestError as of `what_if`, or without an interval of the difference.

        Both are judged by the same draws of the model, or by the posterior of the difference, so that its
        interval is narrower than what the two intervals suggest. Where two sets of variables have regressions
        of their own, it is wider, and holds whatever the dependence of the two errors; `basis` says so.
        """
        known_case = self._single_case(case)
        with in_words(), undisturbed():
            return compare(self, known_case, self._in_codes(first), self._in_codes(second))

    def average(self) -> list[AverageEffect]:
        """How each action changes the mean chance over the rows of the fit, against no action and the others,
        doubly robust beside it for levels; a single continuous action at some quantiles. Empty for several
        continuous actions at once, and without draws.
        """
        return effects_of(self.surrogate)

    def explain(
        self,
        case: IntoDataFrame | Case,
        rows: bool = False,
        refits: int = 8,
        table: IntoDataFrame | Table | str | Path | None = None,
    ) -> Explanation:
        """Why the method decides so in one case: covariates, near rows, the second best action, single edges
        without which it falls, and the strength of a hidden common cause that would overturn it.

        Args:
            rows: Whether the explanation holds the near rows themselves (``explanation.rows.contents``).
            refits: The largest number of fits without an edge, each as long as `learn`; 0 leaves them out.
            table: The rows of the fit, as for `learn`, for a loaded model, which has only some of them.

        Warns:
            RequestWarning: if the table is not that of the fit.

        Raises:
            TableError: if the context is incomplete or not numeric, or the table cannot be used.
            RequestError: for several cases, wrong arguments, or a method that judges no given action.
        """
        check_explained(refits, rows)
        known_case = self._single_case(case)
        (decision,) = self.decide(case)
        with in_words(), undisturbed():
            past = self.past if table is None else self._fitted_rows(table)
            return explain(self, known_case, decision, past, rows, refits)

    def _fitted_rows(self, table: Any) -> FittedRows:
        """The rows of a saved model, given again; its card names them by fingerprint."""
        recorded = self.card.get("settings")
        recorded = recorded if isinstance(recorded, Mapping) else {}
        groups = ("dataset", "trainer")
        settings = {str(key): recorded[key] for key in recorded if str(key).partition(".")[0] in groups}
        request = Request.of(table, self.task, self.name, self.seed, settings)
        config, method = request.configured()
        # A model is called by the method that decides, also where that was chosen from the rows.
        assert method is not None
        with open_dict(config):
            config.surrogate = {**self.nodes["surrogate"], "task": self.task.to_plain()}
        problem = request.problem(config)
        known, rows = self.card.get("data_fingerprint"), problem.observations()
        if isinstance(known, str) and rows.fingerprint() != known:
            warnings.warn(
                f"table: the model was fitted to other rows than these {len(rows)} "
                f"({known[:12]}, here {rows.fingerprint()[:12]}), so that the explanation is of another "
                "table: give those of the fit",
                RequestWarning,
                stacklevel=3,
            )
        return FittedRows(problem.observations, partial(fitted_under, build(config, problem, method)))

    def _in_codes(self, alteration: Any) -> Any:
        if not isinstance(alteration, Mapping):
            return alteration
        try:
            return in_numbers(alteration, self.task.coded)
        except ValueError as error:
            raise RequestError(str(error)) from None

    def _single_case(self, case: Any) -> RehearsalCase:
        problem = self._cases(case)
        if problem.count() != 1:
            raise RequestError(f"case: expected one case; got {problem.count()}: take one row of them")
        return problem.case(0)

    def save(self, folder: str | Path) -> Path:
        """Writes the model to a new folder or over a saved model; else a CheckpointError."""
        strengths = [
            {"altered": list(names), "covariates": None if covariates is None else dict(covariates)}
            for names, covariates in self.strengths.items()
        ]
        content = {
            **{group: self.nodes[group] for group in ("objective", "search")},
            "seed": self.seed,
            "strengths": strengths,
            "units": dict(self.units),
            "left": self.bounds_left,
        }
        fits: list[RehearsalSurrogate] = []
        if self.doubts is not None:
            with in_words(), undisturbed():
                # Fits what has not been asked for yet.
                _ = self._graph_claims
            fits = list(self.doubts.fits.values())
        if self.doubts is not None and fits:
            refuted = [
                {
                    name: list(value) if isinstance(value, tuple) else value
                    for name, value in asdict(arrow).items()
                }
                for arrow in self.doubts.refuted
            ]
            content["doubts"] = {"refuted": refuted, "members": self.doubts.members, "fits": len(fits)}
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        card = {**self.card, SHA: hashlib.sha256(text.encode()).hexdigest()}
        # The task may have other bounds than when the surrogate was built.
        surrogate = {**self.nodes["surrogate"], "task": self.task.to_plain()}

        def write(beside: Path) -> None:
            save_surrogate(self.surrogate, surrogate, beside, card)
            write_text(beside / METHOD, text)
            for index, surrogate_fit in enumerate(fits):
                node = {**self.nodes["surrogate"], "task": surrogate_fit.task.to_plain()}
                save_surrogate(surrogate_fit, node, beside / UNDER / str(index))

        return written(folder, write)

    def _repr_html_(self) -> str:
        held_out = self.card.get("held_out")
        score = held_out.get("in words", "") if isinstance(held_out, Mapping) else held_out
        facts = {
            "method": self.name,
            "intended use": self.card.get("intended_use", ""),
            "limits": " ".join(map(str, self.card.get("limits", ()))),
            "held-out score": score or "",
            "data": str(self.card.get("data_fingerprint", ""))[:12],
        }
        return table_html(["", "a fitted method"], [[name, str(text)] for name, text in facts.items()])

    def _cases(self, cases: Any) -> NewCases:
        if (contexts := plain_contexts(cases, self.task)) is not None:
            return NewCases(self.task, contexts, [str(number) for number in range(1, len(contexts) + 1)])
        rows = rows_of(cases, "cases")
        with in_words():
            table = rows_in(rows, "cases", "the cases")
            if not len(table.frame):
                raise RequestError(f"{table.where}: expected at least one case; got none")
            numbers = isinstance(rows, Table)
            frame = table.frame if numbers else cases_in_codes(table.frame, table.where, self.task)
            given_context, lines = cases_in(frame, table.where, self.task.context)
            return NewCases(
                self.task,
                as_tensor(given_context),
                names_of(rows, len(lines)) or lines,
                present_in(frame, table.where, self.task.box.names),
                unit_costs=costs_in(frame, table.where, self.task.costs),
            )


def left_behind(whose: str, names: Collection[str], task: RehearsalTask) -> str:
    """A warning that a model does not keep bounds `whose` cases have, of variables `names`; may be empty."""
    ends = ", ".join(
        f"{name} from {low:g} to {high:g}" for name, (low, high) in task.box.bounds().items() if name in names
    )
    if not ends:
        return ""
    return (
        f"bounds: a model does not keep those that {whose}, so that this one may set {ends}: to decide "
        "within them, call rt.rehearse with the problem file and cases=..."
    )


UNMEASURED = (
    'not measured: no row was held out (**{"dataset.validation": 0.2} holds a fifth out when it is fitted)'
)
LIMITS = (
    "It rests on the graph as given, and on no hidden common cause beyond it; no interval covers an error in "
    "the graph.",
    "Contexts and actions outside the ranges of the data carry a warning: what it says of them is an "
    "extrapolation.",
    "It answers this task alone: where another graph, context, outcome or set of actions would need another "
    "fit, it is refused.",
    "It says nothing of units, instruments or populations other than those of the data, nor of changes "
    "since.",
    "Its weights hold contexts, covariates and actions of rows that it was fitted to: share it as you would "
    "share them.",
)


def intended_use(task: RehearsalTask) -> str:
    """What a method fitted for a task is for, in a sentence."""
    context = f"given {_enumeration(task.variables(task.context))}" if task.context else "without a context"
    lie = "lie" if len(task.outcomes) > 1 else "lies"
    return (
        f"Decision support for cases like the rows of the data: {context}, it estimates how probable it is "
        f"that {_enumeration(task.outcomes)} {lie} in the desired region after setting "
        f"{_enumeration(task.variables(task.box.names))}, and recommends values or declines. A "
        "recommendation is a claim of this model, not a prescription."
    )


def model_card(
    problem: RehearsalTable,
    method: str,
    seed: int,
    settings: Mapping[str, object],
    score: UntouchedScore | None = None,
    choice: Choice | None = None,
) -> dict[str, Any]:
    """The card, as plain data: the data by fingerprint and ranges, the task, and how well the method predicts
    rows that it has not seen, where that was measured.

    Source: after Mitchell et al. (2019), Model cards for model reporting (intended use, limits, data).
    """
    data = {name: value for name, value in problem.card().items() if name != "cases"}
    held_out: Any = UNMEASURED
    if score is not None:
        means = {"own": round(score.own.mean, 6), "constant": round(score.constant.mean, 6)}
        held_out = {"brier": {"rows": score.rows, **means}, "in words": score.line()}
    return {
        "intended_use": intended_use(problem.task),
        "limits": list(LIMITS),
        "held_out": held_out,
        "method": method,
        **({} if choice is None else {"method_choice": sentences(choice)}),
        "settings": {
            name: value if isinstance(value, bool | int | float | str | None) else str(value)
            for name, value in settings.items()
        },
        **provenance(seed, problem.observations()),
        "data": data,
    }


def _enumeration(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
