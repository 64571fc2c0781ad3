"""The explanation of a decision as records and sentences: covariates, near rows, runners-up, edges.

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
from rehearsal_torch.spaces.box import setting_text

Verdict = Literal["stands", "falls", "unknown"]
COLUMNS = ("part", "about", "says", "number", "lower", "upper")


@dataclass(frozen=True)
class Adjusted:
    """What is adjusted for where one candidate set is altered (`graphs.separation`).

    Attributes:
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
            name, mediators = ", ".join(self.names), ", ".join(self.between)
            covariates = (
                f", given {', '.join([*self.context, *self.before])}" if self.context or self.before else ""
            )
            return (
                f"A hidden cause joins {name} and the outcome; the effect of setting {name} is told through "
                f"{mediators} (the front door){covariates}."
            )
        all_covariates = [*self.context, *self.before, *self.between]
        covariates, parts = ", ".join(all_covariates) or "nothing", []
        if self.context and len(all_covariates) > len(self.context):
            parts.append(f"context {', '.join(self.context)}")
        if self.between:
            parts.append(f"between the actions {', '.join(self.between)}")
        detail = f" ({'; '.join(parts)})" if parts else ""
        if self.enters:
            text = f"Setting {', '.join(self.names)} is adjusted for {covariates}{detail}"
        else:
            text = (
                f"The method fits every equation of the graph; for setting {', '.join(self.names)} it would "
                f"suffice to adjust for {covariates}{detail}"
            )
        if self.reasons:
            return f"{text}, which does not suffice: {'; '.join(self.reasons)}."
        return f"{text}; by the graph, no common cause of action and outcome is left."


@dataclass(frozen=True)
class NearRows:
    """The rows near an action in a context.

    Attributes:
        count: How many of the `compared` rows lie within `radius`.
        radius: In standard deviations: for 97.5 % of the rows, the 5th nearest row is within it.
        region: Context variables and actions to (smallest, largest) among the near rows.
        desired: How many of the near rows have a desired outcome; None if the outcomes are not known.
        effective: Their effective number as the method counts it; None if it does not.
        classes: Variable of classes to those that occur among the near rows.
        beyond: The share of such cases in which no row is near the action; None if it is unknown.
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
        text = (
            f"{self.count:,} of {self.compared:,} rows ({self.share:.1%}) lie near this action in this "
            f"context (within {self.radius:.2f} standard deviations)"
        )
        if self.effective is not None:
            text += f"; the method counts {self.effective:.4g} effective rows"
        if self.beyond is not None:
            text += f"; with the covariates of such cases, no row is near for {percent(self.beyond)} of them"
        sentences = [f"{text}."]
        ends = [
            f"{name} {_end_text(low)}"
            if low == high and isinstance(low, str)
            else f"{name} from {_end_text(low)} to {_end_text(high)}"
            for name, (low, high) in self.region.items()
        ]
        ends += [f"{name} {' or '.join(levels)}" for name, levels in self.classes.items() if levels]
        if ends:
            sentences.append(f"The near rows have {', '.join(ends)}.")
        if self.desired is not None and self.count:
            sentences.append(f"{self.desired:,} of these {self.count:,} rows have a desired outcome.")
        return sentences


@dataclass(frozen=True)
class RunnerUp:
    """The best action that was not chosen.

    Attributes:
        of: "set", the best action of another candidate set; or "action", the best other one.
        difference: The explained action's estimate minus this one's, or None.
        basis: How the interval was found where the two set different variables; else empty.
    """

    alteration: Mapping[str, float | str]
    of: Literal["set", "action"]
    estimate: Estimate | None
    difference: Estimate | None
    against: str = ""
    basis: str = ""

    def sentence(self, withheld: bool = False) -> str:
        """How far it falls behind; without numbers if the explained action is `withheld`."""
        kind = "Best of the other candidate sets" if self.of == "set" else "Best clearly different action"
        text = f"{kind}: {in_settings(self.alteration)}"
        if withheld:
            text += "; not compared, as the decision lies outside the data"
        elif self.difference is None:
            text += "; the method has no estimate of the difference"
        elif self.difference.lower is None or self.difference.upper is None:
            text += f"; {_worse_text(self.difference)} (the method has no interval of this difference)"
        else:
            verdict = (
                "not told apart"
                if self.difference.lower <= 0 <= self.difference.upper
                else _worse_text(self.difference)
            )
            text += f"; {verdict}: a difference of {in_points(self.difference)}"
            text += f" ({self.basis})" if self.basis else ""
        return f"{text}. It would not be recommended: {self.against}." if self.against else f"{text}."


@dataclass(frozen=True)
class WithoutEdge:
    """What becomes of the recommendation if one directed edge is taken out of the graph.

    Attributes:
        edge: (cause, effect); the effect may be several variables that are joined by bi-directional edges.
        gain: The estimate minus that of no action under the graph without the edge; None if unknown.
        instead: What the method would set under that graph, where that differs clearly from the action.
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
        shown_gain = None if withheld else self.gain
        gain = "" if shown_gain is None else f" (a gain of {Intervals().difference(shown_gain)})"
        instead = f"; it would then set {in_settings(self.instead)}" if self.instead else ""
        verdict = {"stands": "stands", "falls": "no longer stands", "unknown": "was not checked"}[
            self.verdict
        ]
        return f"Without {self.text} it {verdict}{gain}: {self.because}{instead}."


@dataclass(frozen=True)
class Explanation:
    """Why a method decides as it does in one case.

    Attributes:
        considered: The recommended action, or the one withdrawn, name to value; else empty.
        adjusted: What is adjusted for, one entry per candidate set; that of the considered action first.
        rows: The rows near the considered action; None if there is none, or too few rows were kept.
        edges: The decision without single edges into the action, an outcome, or what lies between.
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
        """The decision with its chances or its reason; outside the data, that reason in their place."""
        decision, (beyond, _) = self.decision, outside(self.decision.findings)
        if decision.alteration is None:
            outcome = "Refused" if decision.undecided else "No action"
            best = f"; the best action found was {in_settings(self.considered)}" if self.considered else ""
            text = f"{outcome}: {decision.reason or 'the method gives no reason'}{best}."
            return f"{text} {_capitalised(beyond)}." if beyond else text
        text = f"Recommended: {in_settings(self.considered)}"
        if beyond:
            return f"{text}; {beyond}."
        intervals = Intervals()
        if decision.estimate is not None:
            of = in_words(decision.estimate.of, self.wanted)
            text += f"; the estimated {of} is {chance_of(decision.estimate, intervals)}"
        if decision.unchanged is not None:
            text += f"; {chance_of(decision.unchanged, intervals)} with the present values"
        if decision.baseline is None:
            return f"{text}."
        usual = "with no action" if decision.unchanged is None else "with what is usual in such a case"
        return f"{text}; {chance_of(decision.baseline, intervals)} {usual}."

    def sentences(self) -> list[str]:
        """The explanation in plain text, the decision first; no number of a decision outside the data."""
        decision, beyond = self.decision, self._outside_data
        sentences = [self.sentence()]
        sentences += [fact.sentence() for fact in self.adjusted[: 1 if self.considered else None]]
        sentences += [] if self.rows is None else self.rows.sentences()
        sentences += [*(fact.sentence(beyond) for fact in self.runners_up), *self._edge_sentences()]
        if decision.sensitivity is not None and not beyond:
            sentences.append(_capitalised(f"{decision.sensitivity.sentence()}."))
        more = further(decision.findings, sentences[0])
        return [*sentences, *(_capitalised(f"{text.rstrip('.')}.") for text in more), *self.notes]

    def to_frame(self, library: str = "pandas") -> Any:
        """One row per fact: part, subject, sentence, and a number with its interval, if it has one."""
        frame = pd.DataFrame(list(self._frame_rows()), columns=list(COLUMNS))
        return in_library(frame.astype(dict.fromkeys(COLUMNS[3:], float)), library)

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        headline, *sentences = self.sentences()
        withheld = self._outside_data
        gains = ["" if edge.gain is None or withheld else f"{edge.gain:+.3f}" for edge in self.edges]
        edges = zip(self.edges, gains, strict=True)
        rows = [[edge.text, edge.verdict, gain, edge.because] for edge, gain in edges]
        in_table = {edge.sentence(withheld) for edge in self.edges}
        texts = [f"<p>{escape(sentence)}</p>" for sentence in sentences if sentence not in in_table]
        table = [table_html(["without the edge", "the decision", "gain", "why"], rows)] if rows else []
        return "<div>" + "".join([f"<p><strong>{escape(headline)}</strong></p>", *texts, *table]) + "</div>"

    @property
    def _outside_data(self) -> bool:
        return bool(outside(self.decision.findings)[0])

    def _edge_sentences(self) -> list[str]:
        """A sentence for each edge that changes something, and one for all others of a kind."""
        standing = [edge for edge in self.edges if edge.verdict == "stands"]
        unknown = [edge for edge in self.edges if edge.verdict == "unknown"]
        separate = [edge for edge in self.edges if edge.verdict == "falls"]
        separate += [edge for edge in standing if edge.instead]
        sentences = [edge.sentence(self._outside_data) for edge in separate]
        if standing:
            sentences.append(f"It stands without {_one_of(standing)}.")
        for reason in dict.fromkeys(edge.because for edge in unknown):
            edges = [edge for edge in unknown if edge.because == reason]
            sentences.append(f"Not checked without {_one_of(edges)}: {reason}.")
        return sentences

    def _frame_rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of the frame, with None where there is no number."""
        decision, rows, beyond = self.decision, self.rows, self._outside_data
        yield "decision", in_settings(self.considered), self.sentence(), *_point_and_ends(decision.estimate)
        for adjusted in self.adjusted:
            yield "adjustment", ", ".join(adjusted.names), adjusted.sentence(), None, None, None
        if rows is not None:
            yield "rows", "near", rows.sentences()[0], float(rows.count), None, None
            for name, (low, high) in rows.region.items():
                texts = isinstance(low, str)
                says, ends = (f"{low} to {high}", (None, None)) if texts else ("", (low, high))
                yield "region", name, says, None, *ends
            for name, classes in rows.classes.items():
                yield "region", name, " or ".join(classes), None, None, None
        for runner_up in self.runners_up:
            says, numbers = runner_up.sentence(beyond), _point_and_ends(runner_up.difference)
            yield "runner-up", in_settings(runner_up.alteration), says, *numbers
        for edge in self.edges:
            yield "edge", edge.text, edge.sentence(beyond), edge.gain, None, None
        if (hidden := decision.sensitivity) is not None:
            yield "hidden cause", "tipping", hidden.sentence(), hidden.tipping, None, None


def _point_and_ends(estimate: Estimate | None) -> tuple[float | None, ...]:
    return (None,) * 3 if estimate is None else (estimate.point, *(ends_of(estimate) or (None, None)))


def _end_text(value: float | str) -> str:
    return value if isinstance(value, str) else setting_text(value)


def _worse_text(difference: Estimate) -> str:
    direction = "worse" if difference.point >= 0 else "better"
    if difference.lower is not None:
        return f"{direction} by the estimate"
    return f"{Intervals().difference(abs(difference.point))} {direction} by the estimate"


def _one_of(edges: Sequence[WithoutEdge]) -> str:
    texts = [edge.text for edge in edges]
    return texts[0] if len(texts) == 1 else f"any one of {', '.join(texts)}"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
