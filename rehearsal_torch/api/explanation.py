"""Explanations of decisions: covariates, near rows, runners-up, and what single edges of the graph do.

    explanation = model.explain(case)
    explanation.sentence()       the recommendation
    explanation.sentences()      plain text, the recommendation first
    explanation.to_frame()       one row per fact

The facts are collected by `api.explain_decision`; this module holds them and puts them into words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

import pandas as pd

from rehearsal_torch.api.what_if import in_points, in_settings
from rehearsal_torch.data.decision import Decision, Estimate, RehearsalCase
from rehearsal_torch.data.estimate import Intervals, chance_of, ends_of, in_words, percent
from rehearsal_torch.data.finding import further, outside
from rehearsal_torch.data.tables.in_memory import in_library
from rehearsal_torch.reporting.decision_frame import table_html

Verdict = Literal["stands", "falls", "unknown"]
COLUMNS = ("part", "about", "says", "number", "lower", "upper")


@dataclass(frozen=True)
class Adjusted:
    """What is adjusted for where one candidate set is altered (`graphs.separation`).

    Attributes:
        context: The context, which is always given.
        before: Covariates that the alteration does not influence.
        between: Covariates between two of the alterations, or mediators.
        reasons: Why that does not suffice; empty if it does.
        enters: Whether the fit uses these sets; a model of all equations of the graph does not.
        front_door: Whether the mediators tell the effect.
    """

    names: tuple[str, ...]
    context: tuple[str, ...]
    before: tuple[str, ...]
    between: tuple[str, ...]
    reasons: tuple[str, ...]
    enters: bool
    front_door: bool = False

    def sentence(self) -> str:
        """The covariates in words."""
        if self.front_door:
            own, through = ", ".join(self.names), ", ".join(self.between)
            known = (
                f", given {', '.join([*self.context, *self.before])}" if self.context or self.before else ""
            )
            return (
                f"A hidden cause joins {own} and the outcome; the effect of setting {own} is told through "
                f"{through} (the front door){known}."
            )
        every = [*self.context, *self.before, *self.between]
        known, parts = ", ".join(every) or "nothing", []
        if self.context and len(every) > len(self.context):
            parts.append(f"context {', '.join(self.context)}")
        if self.between:
            parts.append(f"between the actions {', '.join(self.between)}")
        detail = f" ({'; '.join(parts)})" if parts else ""
        if self.enters:
            said = f"Setting {', '.join(self.names)} is adjusted for {known}{detail}"
        else:
            said = (
                f"The method fits every equation of the graph; for setting {', '.join(self.names)} it would "
                f"suffice to adjust for {known}{detail}"
            )
        if self.reasons:
            return f"{said}, which does not suffice: {'; '.join(self.reasons)}."
        return f"{said}; by the graph, no common cause of action and outcome is left."


@dataclass(frozen=True)
class NearRows:
    """The rows near an action in a context.

    Attributes:
        count: How many of the `compared` rows lie within `radius`.
        radius: In standard deviations of context and action: for 97.5 % of the rows, the 5th nearest row is
            within it (`surrogates.rehearsal_surrogate`).
        region: Context variables and actions to (smallest, largest) among the near rows.
        desired: How many of the near rows have a desired outcome; None if the outcomes are not known.
        effective: The effective number of rows near the decision as the method counts it; None if it does
            not.
        contents: The near rows, nearest first; None unless they were asked for.
        classes: Variable of classes to those that occur among the near rows.
        beyond: The share of such cases, whose covariates differ, in which no row is near the action; None if
            the method does not tell.
    """

    count: int
    compared: int
    radius: float
    region: Mapping[str, tuple[float | str, float | str]]
    desired: int | None = None
    effective: float | None = None
    contents: pd.DataFrame | None = field(default=None, repr=False, compare=False)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    beyond: float | None = None

    @property
    def share(self) -> float:
        """The share of the compared rows that are near."""
        return self.count / self.compared

    def sentences(self) -> list[str]:
        """How many rows are near, and where they lie."""
        near = (
            f"{self.count:,} of {self.compared:,} rows ({self.share:.1%}) lie near this action in this "
            f"context (within {self.radius:.2f} standard deviations)"
        )
        if self.effective is not None:
            near += f"; the method counts {self.effective:.4g} effective rows"
        if self.beyond is not None:
            near += f"; with the covariates of such cases, no row is near for {percent(self.beyond)} of them"
        found = [f"{near}."]
        ends = [
            f"{name} {_end(low)}"
            if low == high and isinstance(low, str)
            else f"{name} from {_end(low)} to {_end(high)}"
            for name, (low, high) in self.region.items()
        ]
        ends += [f"{name} {' or '.join(each)}" for name, each in self.classes.items() if each]
        if ends:
            found.append(f"The near rows have {', '.join(ends)}.")
        if self.desired is not None and self.count:
            found.append(f"{self.desired:,} of these {self.count:,} rows have a desired outcome.")
        return found


@dataclass(frozen=True)
class RunnerUp:
    """The best action that was not chosen.

    Attributes:
        of: "set", the best action of another candidate set; or "action", the best one of the same set that
            differs in some variable by at least a tenth of its range, or in its level.
        estimate: The estimate of it; None if the method has none.
        difference: The estimate of the explained action minus this one, with its interval where the method
            has one; None if one of the two has no estimate.
        against: Why the method would not recommend it; empty if there is no reason.
        basis: How the interval was found where the two set different variables; else empty.
    """

    alteration: Mapping[str, float | str]
    of: Literal["set", "action"]
    estimate: Estimate | None
    difference: Estimate | None
    against: str = ""
    basis: str = ""

    def sentence(self, withheld: bool = False) -> str:
        """The runner-up, and by how much it falls behind; no number where the explained action is `withheld`,
        as it lies outside the data.
        """
        which = "Best of the other candidate sets" if self.of == "set" else "Best clearly different action"
        said = f"{which}: {in_settings(self.alteration)}"
        if withheld:
            said += "; not compared, as the decision lies outside the data"
        elif self.difference is None:
            said += "; the method has no estimate of the difference"
        elif self.difference.lower is None or self.difference.upper is None:
            said += f"; {_worse(self.difference)} (the method has no interval of this difference)"
        else:
            told = (
                "not told apart"
                if self.difference.lower <= 0 <= self.difference.upper
                else _worse(self.difference)
            )
            said += f"; {told}: a difference of {in_points(self.difference)}"
            said += f" ({self.basis})" if self.basis else ""
        return f"{said}. It would not be recommended: {self.against}." if self.against else f"{said}."


@dataclass(frozen=True)
class WithoutEdge:
    """What becomes of the recommendation if one directed edge is taken out of the graph.

    Attributes:
        edge: (cause, effect); the effect may be several variables that are joined by bi-directional edges.
        gain: The estimate of the action minus that of no action under the graph without the edge; None if it
            is not known.
        because: How the verdict was found.
        instead: What the method would set under that graph, name to value, where that differs clearly from
            the action: other variables, another level, or a tenth of a range; empty otherwise.
    """

    edge: tuple[str, str]
    verdict: Verdict
    gain: float | None
    because: str
    instead: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The edge as text."""
        return " -> ".join(self.edge)

    def sentence(self, withheld: bool = False) -> str:
        """The verdict in words; no number of an action that is `withheld`, as it lies outside the data."""
        known = None if withheld else self.gain
        gain = "" if known is None else f" (a gain of {Intervals().difference(known)})"
        instead = f"; it would then set {in_settings(self.instead)}" if self.instead else ""
        verdict = {"stands": "stands", "falls": "no longer stands", "unknown": "was not checked"}[
            self.verdict
        ]
        return f"Without {self.text} it {verdict}{gain}: {self.because}{instead}."


@dataclass(frozen=True)
class Explanation:
    """Why a method decides as it does in one case.

    Attributes:
        considered: The action that is explained, name to value: the recommended one, or the one that was
            found and not recommended; empty if there is none.
        adjusted: What is adjusted for, one entry per candidate set; that of the considered action first.
        rows: The rows near the considered action; None if there is none, or too few rows were kept.
        edges: What becomes of the decision without single edges into the action, an outcome, or what lies
            between them.
        notes: What could not be asked, one sentence each.
    """

    case: RehearsalCase
    decision: Decision
    considered: Mapping[str, float | str]
    adjusted: tuple[Adjusted, ...]
    rows: NearRows | None
    runners_up: tuple[RunnerUp, ...]
    edges: tuple[WithoutEdge, ...]
    notes: tuple[str, ...] = ()
    wanted: str = ""

    def sentence(self) -> str:
        """The decision with its chances, or why there is none; where it lies outside the data, that reason in
        place of the chances.
        """
        one, (beyond, _) = self.decision, outside(self.decision.findings)
        if one.alteration is None:
            what = "Refused" if one.undecided else "No action"
            would = f"; the best action found was {in_settings(self.considered)}" if self.considered else ""
            said = f"{what}: {one.reason or 'the method gives no reason'}{would}."
            return f"{said} {_capital(beyond)}." if beyond else said
        said = f"Recommended: {in_settings(self.considered)}"
        if beyond:
            return f"{said}; {beyond}."
        told = Intervals()
        if one.estimate is not None:
            of = in_words(one.estimate.of, self.wanted)
            said += f"; the estimated {of} is {chance_of(one.estimate, told)}"
        if one.unchanged is not None:
            said += f"; {chance_of(one.unchanged, told)} with the present values"
        if one.baseline is None:
            return f"{said}."
        usual = "with no action" if one.unchanged is None else "with what is usual in such a case"
        return f"{said}; {chance_of(one.baseline, told)} {usual}."

    def sentences(self) -> list[str]:
        """The explanation in plain text, the decision first; no number of a decision outside the data."""
        one, beyond = self.decision, self._beyond
        sentences = [self.sentence()]
        sentences += [each.sentence() for each in self.adjusted[: 1 if self.considered else None]]
        sentences += [] if self.rows is None else self.rows.sentences()
        sentences += [*(each.sentence(beyond) for each in self.runners_up), *self._edges()]
        if one.sensitivity is not None and not beyond:
            sentences.append(_capital(f"{one.sensitivity.sentence()}."))
        more = further(one.findings, sentences[0])
        return [*sentences, *(_capital(f"{each.rstrip('.')}.") for each in more), *self.notes]

    def to_frame(self, library: str = "pandas") -> Any:
        """One row per fact: its part (decision, adjustment, rows, region, runner-up, edge, hidden cause),
        what it is about, what it says, and a number with its interval, NaN where there is none (in polars and
        pyarrow, a missing value).
        """
        frame = pd.DataFrame(list(self._facts()), columns=list(COLUMNS))
        return in_library(frame.astype(dict.fromkeys(COLUMNS[3:], float)), library)

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        first, *others = self.sentences()
        none = self._beyond
        rows = [[each.text, each.verdict, _number(each.gain, none), each.because] for each in self.edges]
        in_table = {each.sentence(none) for each in self.edges}
        texts = [f"<p>{escape(each)}</p>" for each in others if each not in in_table]
        table = [table_html(["without the edge", "the decision", "gain", "why"], rows)] if rows else []
        return "<div>" + "".join([f"<p><strong>{escape(first)}</strong></p>", *texts, *table]) + "</div>"

    @property
    def _beyond(self) -> bool:
        """Whether the decision lies outside the data."""
        return bool(outside(self.decision.findings)[0])

    def _edges(self) -> list[str]:
        """One sentence for each edge without which the decision does not stand, or another action is clearly
        preferred; one for all others of a kind.
        """
        standing = [each for each in self.edges if each.verdict == "stands"]
        unknown = [each for each in self.edges if each.verdict == "unknown"]
        single = [each for each in self.edges if each.verdict == "falls"]
        single += [each for each in standing if each.instead]
        sentences = [each.sentence(self._beyond) for each in single]
        if standing:
            sentences.append(f"It stands without {_one_of(standing)}.")
        for why in dict.fromkeys(each.because for each in unknown):
            some = [each for each in unknown if each.because == why]
            sentences.append(f"Not checked without {_one_of(some)}: {why}.")
        return sentences

    def _facts(self) -> Iterator[tuple[Any, ...]]:
        """The rows of the frame, with None where there is no number."""
        decision, rows, beyond = self.decision, self.rows, self._beyond
        yield "decision", in_settings(self.considered), self.sentence(), *_numbers(decision.estimate)
        for each in self.adjusted:
            yield "adjustment", ", ".join(each.names), each.sentence(), None, None, None
        if rows is not None:
            yield "rows", "near", rows.sentences()[0], float(rows.count), None, None
            for name, (low, high) in rows.region.items():
                texts = isinstance(low, str)
                says, ends = (f"{low} to {high}", (None, None)) if texts else ("", (low, high))
                yield "region", name, says, None, *ends
            for name, classes in rows.classes.items():
                yield "region", name, " or ".join(classes), None, None, None
        for other in self.runners_up:
            says, numbers = other.sentence(beyond), _numbers(other.difference)
            yield "runner-up", in_settings(other.alteration), says, *numbers
        for edge in self.edges:
            yield "edge", edge.text, edge.sentence(beyond), edge.gain, None, None
        if (hidden := decision.sensitivity) is not None:
            yield "hidden cause", "tipping", hidden.sentence(), hidden.tipping, None, None


def _numbers(estimate: Estimate | None) -> tuple[float | None, ...]:
    """The point and the interval of an estimate."""
    return (None,) * 3 if estimate is None else (estimate.point, *(ends_of(estimate) or (None, None)))


def _number(value: float | None, withheld: bool) -> str:
    return "" if value is None or withheld else f"{value:+.3f}"


def _end(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _worse(difference: Estimate) -> str:
    way = "worse" if difference.point >= 0 else "better"
    if difference.lower is not None:
        return f"{way} by the estimate"
    return f"{Intervals().difference(abs(difference.point))} {way} by the estimate"


def _one_of(edges: Sequence[WithoutEdge]) -> str:
    texts = [each.text for each in edges]
    return texts[0] if len(texts) == 1 else f"any one of {', '.join(texts)}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
