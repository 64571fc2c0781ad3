"""Fitted methods: fitted once, asked again tomorrow.

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
from rehearsal_torch.data.codings.decision_texts import in_numbers, wanted_in
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

# What a configuration holds of a method.
NODES = ("surrogate", "objective", "search")
# Where the card of a saved model has the SHA-256 of its method.
SHA = "method_sha256"
Case = Mapping[str, float | str]


@dataclass(frozen=True, eq=False)
class RehearsalModel(FittedMethod):
    """A rehearsal method, fitted to a table.

    Attributes:
        nodes: The configuration of surrogate, objective and search, as plain data.
        described: Returns the card.
        past: The rows of the fit; None for a saved model, which holds none.
        choice: The choice of the method from the rows (`methods.method_choice`); None if it was asked for by
            name, or the model was loaded, whose card then has the sentences.
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
        """Moves the fitted model, such as to a GPU: ``model.to("cuda")``. It then decides there, and its
        answers are on the CPU as before; with several `workers` a copy on the CPU decides.
        """
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
    def _judged(self) -> Claims | None:
        """What judges decisions by other graphs."""
        if self.doubts is None:
            return None
        return self.doubts.claims(self.surrogate, self.method.objective, self.method.search.declines)

    def decide(
        self,
        cases: IntoDataFrame | Table | str | Path | Sequence[Case] | Case,
        workers: int = 1,
    ) -> Decisions:
        """Decides which alteration to make in each case.

        Args:
            cases: In any of the forms of `rehearse`.
            workers: Processes that share the cases, each with one thread; the decisions do not depend on it
                (those of a model on a GPU but for rounding, see `to`).

        Warns:
            RequestWarning: if the problem file of the fit has bounds for each case, which are not kept.

        Raises:
            TableError: if the cases cannot be read; all faults are listed.
            RequestError: if the cases are of another type, there is none, or `workers` is below 1.
        """
        check_workers(workers)
        if self.bounds_left:
            warnings.warn(self.bounds_left, RequestWarning, stacklevel=2)
        problem = self._cases(cases)
        with in_words(), undisturbed(self.method.search.draws):
            rounds = decided(
                problem, self.surrogate, self.method, self.seed, workers, self._judged, self.overturning
            )
        every, chosen = [each.case for each in rounds], [each.decision for each in rounds]
        library = library_of(cases) or "pandas"
        return Decisions(chosen, every, labels_of(cases), wanted_in(self.task), library, self.units)

    def what_if(self, case: IntoDataFrame | Case, alteration: Mapping[str, float | str]) -> WhatIf:
        """What the method claims of a given alteration in one case; nothing is searched.

        Args:
            case: The context of the case: a dictionary, or one row in any of the forms of `decide`.
            alteration: Name to value for all variables of one candidate set, within their bounds or levels; a
                text for a variable that has texts.

        Raises:
            TableError: if the context is incomplete or not numeric.
            RequestError: if there is not one case, the values may not be set, or the method has no interval.
        """
        one = self._one(case)
        with in_words(), undisturbed():
            return what_if(self, one, self._codes(alteration))

    def compare(
        self,
        case: IntoDataFrame | Case,
        first: Mapping[str, float | str],
        second: Mapping[str, float | str],
    ) -> Comparison:
        """Which of two alterations, of the same variables or of two candidate sets, is better in one case.

        Both are judged by the same draws of the model, or by the posterior of the difference, so that its
        interval is narrower than what the two intervals suggest. Where two sets of variables have regressions
        of their own, it is wider, and holds whatever the dependence of the two errors; `basis` says so.

        Raises:
            RequestError: as `what_if` does, or if the method has no interval of the difference.
        """
        one = self._one(case)
        with in_words(), undisturbed():
            return compare(self, one, self._codes(first), self._codes(second))

    def average(self) -> list[AverageEffect]:
        """By how much each action changes the mean chance over the rows of the fit, against no action and
        against the other ones, with a doubly robust estimate beside it where the action has levels; each is
        printed as a sentence. Of a single continuous action, those at a few quantiles of the rows; empty
        where several of these are set together, and for methods without draws.
        """
        return effects_of(self.surrogate)

    def explain(
        self,
        case: IntoDataFrame | Case,
        rows: bool = False,
        refits: int = 8,
        table: IntoDataFrame | Table | str | Path | None = None,
    ) -> Explanation:
        """Why the method decides as it does in one case: what is adjusted for, which rows lie near, which
        action comes second, whether the decision stands without single edges of the graph, and how strong
        a hidden common cause would have to be.

        Args:
            rows: Whether the explanation holds the near rows themselves (``explanation.rows.contents``).
            refits: The largest number of fits under graphs without an edge; each takes as long as `learn`. 0
                leaves out the edges that need one.
            table: The rows of the fit, in any of the forms of `learn`, for a model that was loaded: it holds
                only contexts and actions of some of them. None is enough for a model of this session.

        Warns:
            RequestWarning: if the table is not that of the fit.

        Raises:
            TableError: if the context is incomplete or not numeric, or the table cannot be used.
            RequestError: if there is not one case, the method does not judge given alterations, or an
                argument is of the wrong kind.
        """
        check_explained(refits, rows)
        one = self._one(case)
        (decision,) = self.decide(case)
        with in_words(), undisturbed():
            past = self.past if table is None else self._rows_again(table)
            return explain(self, one, decision, past, rows, refits)

    def _rows_again(self, table: Any) -> FittedRows:
        """The rows of a saved model, given again; its card names them by fingerprint."""
        stated = self.card.get("settings")
        stated = stated if isinstance(stated, Mapping) else {}
        groups = ("dataset", "trainer")
        settings = {str(key): stated[key] for key in stated if str(key).partition(".")[0] in groups}
        request = Request.of(table, self.task, self.name, self.seed, settings)
        config, method = request.configured()
        # A model is called by the method that decides, also where that was chosen from the rows.
        assert method is not None
        with open_dict(config):
            config.surrogate = {**self.nodes["surrogate"], "task": self.task.to_plain()}
        problem = request.problem(config)
        known, given = self.card.get("data_fingerprint"), problem.observations()
        if isinstance(known, str) and given.fingerprint() != known:
            warnings.warn(
                f"table: the model was fitted to other rows than these {len(given)} "
                f"({known[:12]}, here {given.fingerprint()[:12]}), so that the explanation is of another "
                "table: give those of the fit",
                RequestWarning,
                stacklevel=3,
            )
        return FittedRows(problem.observations, partial(fitted_under, build(config, problem, method)))

    def _codes(self, alteration: Any) -> Any:
        """An alteration with codes in place of texts."""
        if not isinstance(alteration, Mapping):
            return alteration
        try:
            return in_numbers(alteration, self.task.coded)
        except ValueError as error:
            raise RequestError(str(error)) from None

    def _one(self, case: Any) -> RehearsalCase:
        problem = self._cases(case)
        if problem.count() != 1:
            raise RequestError(f"case: expected one case; got {problem.count()}: take one row of them")
        return problem.case(0)

    def save(self, folder: str | Path) -> Path:
        """Writes the model to a new folder, or over that of a saved model; `rehearsal_torch.load` reads it,
        and nothing in it is pickled.

        Raises:
            CheckpointError: if the folder holds anything but a saved model, or the model cannot be saved;
                nothing is written then.
        """
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
        others: list[RehearsalSurrogate] = []
        if self.doubts is not None:
            with in_words(), undisturbed():
                # Fits what has not been asked for yet.
                _ = self._judged
            others = list(self.doubts.fits.values())
        if self.doubts is not None and others:
            refuted = [_listed(asdict(each)) for each in self.doubts.refuted]
            content["doubts"] = {"refuted": refuted, "members": self.doubts.members, "fits": len(others)}
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        card = {**self.card, SHA: hashlib.sha256(text.encode()).hexdigest()}
        # The task may have other bounds than when the surrogate was built.
        surrogate = {**self.nodes["surrogate"], "task": self.task.to_plain()}

        def write(beside: Path) -> None:
            save_surrogate(self.surrogate, surrogate, beside, card)
            write_text(beside / METHOD, text)
            for place, each in enumerate(others):
                own = {**self.nodes["surrogate"], "task": each.task.to_plain()}
                save_surrogate(each, own, beside / UNDER / str(place))

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

    def _cases(self, given: Any) -> NewCases:
        if (contexts := plain_contexts(given, self.task)) is not None:
            return NewCases(self.task, contexts, [str(number) for number in range(1, len(contexts) + 1)])
        rows = rows_of(given, "cases")
        with in_words():
            read = rows_in(rows, "cases", "the cases")
            if not len(read.frame):
                raise RequestError(f"{read.where}: expected at least one case; got none")
            numbers = isinstance(rows, Table)
            frame = read.frame if numbers else cases_in_codes(read.frame, read.where, self.task)
            given_context, lines = cases_in(frame, read.where, self.task.context)
            return NewCases(
                self.task,
                as_tensor(given_context),
                names_of(rows, len(lines)) or lines,
                present_in(frame, read.where, self.task.box.names),
                unit_costs=costs_in(frame, read.where, self.task.costs),
            )


def left_behind(whose: str, names: Collection[str], task: RehearsalTask) -> str:
    """That a model of a task may set more than the bounds of its cases allow; empty if there are none.
    `whose` bounds they are is said in words; `names` are the variables that they are of.
    """
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
    given = f"given {_several(task.variables(task.context))}" if task.context else "without a context"
    lie = "lie" if len(task.outcomes) > 1 else "lies"
    return (
        f"Decision support for cases like the rows of the data: {given}, it estimates how probable it is "
        f"that {_several(task.outcomes)} {lie} in the desired region after setting "
        f"{_several(task.variables(task.box.names))}, and recommends values or declines. A "
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
    return {
        "intended_use": intended_use(problem.task),
        "limits": list(LIMITS),
        "held_out": UNMEASURED if score is None else {"brier": _brier(score), "in words": score.line()},
        "method": method,
        **({} if choice is None else {"method_choice": sentences(choice)}),
        "settings": {name: _plain(value) for name, value in settings.items()},
        **provenance(seed, problem.observations()),
        "data": data,
    }


def _brier(score: UntouchedScore) -> dict[str, float]:
    ends = {"own": score.own, "constant": score.constant}
    return {"rows": score.rows, **{name: round(each.mean, 6) for name, each in ends.items()}}


def _listed(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(each) if isinstance(each, tuple) else each for name, each in plain.items()}


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _several(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
