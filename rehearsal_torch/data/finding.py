"""Findings: warnings and reasons of a decision, or of its data, each with a kind for programs and a sentence.

    why nothing is altered
        no_gain          nothing is better by the method's own estimate
        never_acts       the method never alters anything
        nothing_left     all that could be tried was tried, or is waited for
        no_path          the graph has no directed path from what would be set to an outcome
        no_support       too few observations are near
        no_effect        no action is seen to move what is rewarded
        unqualified      no alteration meets what the method asks of one
        invalid          the model or the search has no finite answer
        model_error      what the model takes for noise can be predicted: it is wrong where answers come from
        losing_members   members of an ensemble predict no gain
        falling_score    a score that is guarded beside the reward falls
        bad_fit          the model does not fit the observations
    what must be known before acting
        range            a value lies outside its observed range
        support          few observations are near, or none where a case is
        few_comparable   few units had a dose in a comparable step, once earlier changes are made
        gain             the gain is not told apart from zero
        graph            the graph, or another one that may be true, speaks against it
        refuted_graph    the observations contradict the graph
        adjustment       the adjustment for common causes is not valid
        assumption       what the graph leaves open is read in one way
        present          a present value is not used
        claim            an estimate that needs less contradicts it
        score            rows that were left out are predicted no better than by a constant; also a reason
        hidden_cause     a hidden cause as strong as an observed covariate would overturn it
        noise            it is not known whether the model's noise is noise
        imputed          it rests on values that were filled in
        constraint       a constraint of the method is not met
        replay           the search claims another value than the model gives
    what must be known of the data, before anything is fitted (`Problem.findings`)
        rows             there are few rows or units, or some are repeated or left out
        values           values of a column may not mean what they seem to, or few rows have them
        identifier       a column identifies persons or rows
        context          nothing is known of a case before deciding
        desired          the rows lie inside or outside of the desired region, nearly all of them
        unused           a column, a variable or a cost does nothing
    notes
        note             how a decision was found or estimated, or how the search ended

The first kinds are warnings where a method acts nevertheless, such as a preset that reproduces a publication.

A claim lies outside the data where a finding is of the kind ``range`` or ``support``. In sentences and
figures the reason then stands in the place of its number; tables and files keep the number and the warning.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, get_args

Reason = Literal[
    "no_gain", "never_acts", "nothing_left", "no_path", "no_support", "no_effect", "unqualified", "invalid"
]
Model = Literal["model_error", "losing_members", "falling_score", "bad_fit"]
Claim = Literal["range", "support", "gain", "graph", "refuted_graph", "adjustment", "present", "claim"]
Doubt = Literal[
    "few_comparable", "assumption", "score", "hidden_cause", "noise", "imputed", "constraint", "replay"
]
Data = Literal["rows", "values", "identifier", "context", "desired", "unused"]
FindingKind = Literal[Reason, Model, Claim, Doubt, Data, "note"]
KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
NOTHING_BETTER: tuple[FindingKind, ...] = ("no_gain", "never_acts", "nothing_left")
"""Reasons for altering nothing that answer the question; by the others, the method cannot answer it."""
MISFITS: tuple[FindingKind, ...] = ("bad_fit", "score")
"""Findings by which a model is not one to act on alone: they come first."""
DOUBTING: tuple[FindingKind, ...] = (*MISFITS, "hidden_cause", "adjustment", "claim", "few_comparable")
"""Findings by which a decision is at most *may*."""
OUTSIDE: tuple[FindingKind, ...] = ("range", "support")
"""Findings by which a claim lies outside the data."""


@dataclass(frozen=True)
class Finding:
    """A warning, reason or note: a sentence without an initial capital and a full stop, the numbers behind
    it, and in `general` the sentence without the values of the case, where it states some.
    """

    kind: FindingKind
    text: str
    numbers: Mapping[str, float] = field(default_factory=dict, hash=False)
    general: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"expected a kind of finding among {list(KINDS)}; got {self.kind!r}")

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        numbers = {"numbers": dict(self.numbers)} if self.numbers else {}
        general = {"general": self.general} if self.general else {}
        return {"kind": self.kind, "text": self.text, **general, **numbers}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Finding":
        """The finding that `to_dict` wrote."""
        numbers, general = dict(plain.get("numbers") or {}), plain.get("general", "")
        return cls(plain["kind"], plain["text"], numbers, general)

    @classmethod
    def comparing(cls, kind: FindingKind, sentence: str, where: str, general: str = "") -> "Finding":
        """A sentence with ``{}`` for what an action is compared with, `where`, or in `general`."""
        general = general and sentence.replace("{}", general)
        return cls(kind, sentence.replace("{}", where), general=general)


def recorded(findings: Iterable[Finding]) -> dict[str, Any]:
    """Findings as the entry of a record; empty without any."""
    plain = [finding.to_dict() for finding in findings]
    return {"findings": plain} if plain else {}


def findings_of(line: Mapping[str, Any]) -> tuple[Finding, ...]:
    """The findings of a recorded decision, or of a data card."""
    return tuple(Finding.of(record) for record in line.get("findings") or ())


def texts_of(line: Mapping[str, Any]) -> list[str]:
    """The sentences of the findings of a recorded decision, or of a data card."""
    return [str(record["text"]) for record in line.get("findings") or ()]


def reason_of(line: Mapping[str, Any]) -> str:
    """The sentence of a recorded decision's reason; empty without one."""
    return str((line.get("reason") or {}).get("text", ""))


def undecided(line: Mapping[str, Any]) -> bool:
    """Whether a recorded decision alters nothing because the method cannot tell; see `Decision.undecided`."""
    reason = line.get("reason") or {"kind": NOTHING_BETTER[0]}
    return line.get("alteration") is None and reason["kind"] not in NOTHING_BETTER


def joined(*findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """All findings in order, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(findings)))


def outside(findings: Iterable[Finding]) -> tuple[str, list[str]]:
    """Why a claim would lie outside the data, in a sentence, ranges first, and the further reasons; empty."""
    reasons = [finding for finding in findings if finding.kind in OUTSIDE]
    texts = [finding.text for finding in sorted(reasons, key=lambda finding: finding.kind != "range")]
    range_count = sum(finding.kind == "range" for finding in reasons) or 1
    return (f"outside the data: {'; '.join(texts[:range_count])}" if texts else ""), texts[range_count:]


def doubted(findings: Iterable[Finding], untouched: bool = False) -> bool:
    """Whether a decision is at most *may*; an `untouched` gain needs no score of left-out rows."""
    return any(
        finding.kind in DOUBTING and not (untouched and finding.kind == "score") for finding in findings
    )


def in_place(findings: Iterable[Finding]) -> str:
    """The sentence that stands in place of a number; empty where the claim has one."""
    reason, _ = outside(findings)
    return f"{reason[0].upper()}{reason[1:]}." if reason else ""


def further(findings: Iterable[Finding], said: str) -> list[str]:
    """The sentences of findings that `said` does not contain."""
    return [finding.text for finding in findings if finding.text not in said]
