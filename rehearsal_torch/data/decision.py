"""Decision contexts (rehearsal cases and episodes), and decisions with their estimates and diagnostics.

In a rehearsal case, the context is observed, and an alteration is sought before the outcomes occur; in a
look-back, the whole episode is observed, and the question is what other actions would have brought.

A decision has one of three statuses. *do*: set these values; an interval of what that gains lies above zero.
*may*: the method would set these values, and cannot tell their gain from zero, or its model is doubted
(`finding.DOUBTING`). *leave*: nothing is altered, for a reason: nothing is better, or the method cannot tell
(`Decision.undecided`), and then leaving everything unaltered is no recommendation. All else is a `Finding`.

Source: Du et al. (2026), Sec. 2 (context before alteration); Qin et al. (2023), Sec. 4.2 (refusals); Tsirtsis
and Gomez-Rodriguez (2023), Sec. 3 (episodes) and 5 (outcome and effort).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.decision_texts import worded
from rehearsal_torch.data.codings.one_hot_actions import no_class, offered_words
from rehearsal_torch.data.costs import CaseCosts
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.estimate import (
    CHANCE,
    DIFFERENCE,
    NET_GAIN,
    NET_VALUE,
    Estimate,
    Record,
    copied,
    net,
)
from rehearsal_torch.data.finding import NOTHING_BETTER, Finding, doubted, joined
from rehearsal_torch.data.mean_gain import GainDraws, Status
from rehearsal_torch.data.sensitivity import HiddenCause, Sensitivity
from rehearsal_torch.spaces.box import Alteration, levels_text, margin, nearest, setting_text

__all__ = [
    "CHANCE",
    "DIFFERENCE",
    "Decision",
    "DecisionContext",
    "EpisodeCase",
    "Estimate",
    "RehearsalCase",
    "Status",
    "action_name",
    "action_step",
]

# The fraction of an interval's width by which rounding may carry a value beyond its bounds.
ROUNDING = 1e-6


@dataclass(frozen=True)
class RehearsalCase:
    """The information available before acting. A ValueError if a given or present value is not finite, a
    variable has an empty range, or levels lie outside it.

    Attributes:
        identity: The name of the case in its data set.
        given: Observed variables, name to value (...).
        feasible: Variables that may be set, name to (lower, upper).
        unit: The unit (a patient, a store) of which the case is one row; None if unknown.
        levels: The only values of variables that may not be set to any value of their range.
        present: Present values, feasible or not, which settable variables keep if nothing is done.
        own: Variables that may be set whose range is that of this case alone, and is recorded with it.
        codings: The codes of its variables' texts, for messages.
    """

    identity: str
    given: dict[str, Tensor]
    feasible: dict[str, tuple[float, float]]
    unit: str | None = None
    levels: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    present: Mapping[str, float] = field(default_factory=dict)
    own: tuple[str, ...] = ()
    codings: tuple[Coding, ...] = ()
    costs: CaseCosts | None = None

    def __post_init__(self) -> None:
        if fault := next(self._faults(), None):
            raise ValueError(f"{self.identity}: {fault}")

    @classmethod
    def several(
        cls, names: Sequence[str], given: Tensor, own: Sequence[Mapping[str, Any]], **common: Any
    ) -> "list[RehearsalCase]":
        """Cases with the same context variables, (B, |X|); `common` fields are checked once."""
        columns = [column.unbind(0) for column in given.unbind(-1)]
        values = [
            {name: column[row] for name, column in zip(names, columns, strict=True)}
            for row in range(len(own))
        ]
        rows = zip(values, own, strict=True)
        if not own or not bool(given.isfinite().all()):
            return [cls(given=row, **fields, **common) for row, fields in rows]
        row, fields = next(rows)
        first = cls(given=row, **fields, **common)
        cases = [first, *(copied(first, given=row, **fields) for row, fields in rows)]
        for case in cases:
            if case.present:
                case.__post_init__()
        return cases

    def _faults(self) -> Iterator[str]:
        if unknown := [name for name, value in self.given.items() if not bool(value.isfinite().all())]:
            yield f"{unknown} are missing or infinite: measure them first, or leave them out of the context"
        for name, value in self.present.items():
            if not math.isfinite(value):
                yield f"the present value of {name} is {value}: leave it out if it is unknown"
        for name, (lower, upper) in self.feasible.items():
            if not lower <= upper:
                yield f"{name} may be set within [{lower:g}, {upper:g}]: expected lower <= upper"
        for name, values in self.levels.items():
            low, high = self.feasible.get(name, (math.nan, math.nan))
            if not values or not (low == high or any(low <= value <= high for value in values)):
                within = f"expected some, one of which lies where it may be set, in [{low:g}, {high:g}]"
                yield f"{name} has the levels {list(values)}; {within}"

    def in_texts(self, values: Mapping[str, float]) -> dict[str, str]:
        """Values as texts: name to the level or class whose code it is, else to the number."""
        texts = worded(values, {coding.name: coding for coding in self.codings})
        return {
            name: text if isinstance(text, str) else setting_text(float(text)) for name, text in texts.items()
        }

    def holds(self, name: str) -> bool:
        """Whether a variable has a known present value that it may be set to."""
        if name not in self.present:
            return False
        (lower, upper), value, levels = self.feasible[name], self.present[name], self.levels.get(name)
        return lower <= value <= upper and (levels is None or value in levels)

    def kept(self, names: Sequence[str]) -> Alteration | None:
        """The present values of variables; None if some are unknown."""
        if not names or not set(names) <= set(self.present):
            return None
        values = torch.tensor([self.present[name] for name in names], dtype=torch.float64)
        return Alteration(tuple(names), values)

    def check(self, alteration: Alteration | None) -> None:
        """Refuses an infeasible alteration by a ValueError; None is no action."""
        if alteration is None or self._within_bounds(alteration):
            return
        if fault := next(self._infeasible(alteration), None):
            raise ValueError(f"{self.identity}: {fault}")

    def _within_bounds(self, alteration: Alteration) -> bool:
        """Whether values that need no levels lie within their bounds, without an allowance for rounding."""
        if alteration.values.ndim != 1 or self.levels or self.codings:
            return False
        ends = [self.feasible.get(name, (math.inf, -math.inf)) for name in alteration.names]
        rows = zip(ends, alteration.values.tolist(), strict=True)
        return all(lower <= value <= upper for (lower, upper), value in rows)

    def _infeasible(self, alteration: Alteration) -> Iterator[str]:
        for name, value in zip(alteration.names, alteration.values.unbind(-1), strict=True):
            if name not in self.feasible:
                yield f"{name} may not be set; feasible are {list(self.feasible)}"
                continue
            lower, upper = self.feasible[name]
            finite = [bound for bound in (lower, upper) if math.isfinite(bound)] or [1.0]
            # An unbounded interval has no width: the absolute value of its finite bound is used instead.
            ends = (lower, upper) if len(finite) == 2 else (0.0, abs(finite[0]))
            low, high = torch.tensor(ends, dtype=torch.float64)
            slack = float(margin(low, high, ROUNDING))
            levels = self.levels.get(name)
            # A case may be held where no level is.
            levels = None if levels is not None and lower == upper and lower not in levels else levels
            if levels is not None and bool(((nearest(value.double(), levels) - value).abs() > slack).any()):
                coding = next(
                    (coding for coding in self.codings if name in (coding.name, *coding.columns)), None
                )
                offered = levels_text(levels) if coding is None else coding.words
                if coding is not None and coding.reference is not None:
                    offered = offered_words(coding, self.levels)
                fault = f"got {value.tolist()}: take one of these, or offer the value in the task"
                yield f"{coding.name if coding else name} may be set to {offered}; {fault}"
            if not bool(((value >= lower - slack) & (value <= upper + slack)).all()):
                fault = f"got {value.tolist()}: move it inside, or widen the bounds"
                yield f"{name} may be set within [{lower:g}, {upper:g}]; {fault}"
        if mixed := no_class(alteration.names, alteration.values, self.codings):
            offered = offered_words(mixed, self.levels)
            yield f"{mixed.name} may be set to {offered}; got several at once: take one of these"

    def facts(self) -> dict[str, Any]:
        """Plain data by which readers know the case, with the ranges and costs that are its own."""
        return {
            "identity": self.identity,
            **({} if self.unit is None else {"unit": self.unit}),
            "given": {name: value.tolist() for name, value in self.given.items()},
            **({"present": dict(self.present)} if self.present else {}),
            **({"bounds": {name: list(self.feasible[name]) for name in self.own}} if self.own else {}),
            **({} if self.costs is None else self.costs.facts()),
        }


@dataclass(frozen=True)
class EpisodeCase:
    """A complete observed episode.

    Attributes:
        fixed: (T,), true at the time steps whose action may not be changed; empty if all may.
        outcomes: What happened to the unit later, such as a death, name to 0 or 1; no method reads it.
        first: The time of its first step, where steps are counted on from it; None if unknown.
        times: The time of each step in its table, empty where the table lacks it; () if unknown.
    """

    episode: Episode
    fixed: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))
    outcomes: Mapping[str, float] = field(default_factory=dict)
    first: int | None = None
    times: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """The name of the episode in its data set."""
        return self.episode.identity

    def facts(self) -> dict[str, Any]:
        """Plain data that identifies the case to readers: identity, and outcomes and times if known."""
        known = {"observed_outcomes": dict(self.outcomes), "times": list(self.times)}
        return {"identity": self.identity, **{name: value for name, value in known.items() if value}}


DecisionContext = RehearsalCase | EpisodeCase


@dataclass(frozen=True)
class Decision:
    """An alteration, or the reason for none, with its estimates. A ValueError if it sets nothing.

    Attributes:
        alteration: The values to set, in their variables' units; None if nothing is altered. For an episode
            the names are ``action[t]`` for the changed time steps t = 0, 1, ..., the values action numbers.
        value: The objective's value, in its unit, of the decision or of a withdrawn alteration.
        estimate: The method's estimate for its alteration, also a refused one: the probability of a desired
            outcome, the return of an episode, or the expected reward of the recommendation.
        baseline: The same estimate for no action: what usually happens in such a case.
        unchanged: The same estimate if altered variables keep their present values; None if unknown.
        gain: The estimate minus `unchanged` (`before`, if cross-fitted), with its interval, or None.
        cost: What the alteration costs, 0 for none; None if costs are unknown, or it is undecided.
        worth: What a desired outcome is worth, in the unit of the cost; None if unknown.
        recommendation: Trials only: the action to adopt, if it is not the next one to try; else None.
        doses: Episodes only: name in the alteration to doses in their units, or the data set's levels.
        parts: Episodes only: what each changed action gains, name in the alteration to its share of `gain`.
        reason: Why nothing is altered, or how the decision was found; may be None.
        sensitivity: How strong a hidden cause would overturn a recommendation; None if inapplicable.
        hidden_cause: Episodes only: the same for a recommended sequence, as partial R^2, or None.
        draws: Draws of the gain over no action, by which those of several cases are pooled; None without any.
        trace: Plain diagnostics of the search, equal in every run with the same seed.
    """

    alteration: Alteration | None
    value: float
    estimate: Estimate | None = field(default=None, kw_only=True)
    baseline: Estimate | None = field(default=None, kw_only=True)
    unchanged: Estimate | None = field(default=None, kw_only=True)
    gain: Estimate | None = field(default=None, kw_only=True)
    cost: float | None = field(default=None, kw_only=True)
    worth: float | None = field(default=None, kw_only=True)
    recommendation: Alteration | None = field(default=None, kw_only=True)
    doses: Mapping[str, tuple[float, ...]] = field(default_factory=dict, kw_only=True)
    parts: Mapping[str, Estimate] = field(default_factory=dict, kw_only=True)
    findings: tuple[Finding, ...] = field(default=(), kw_only=True)
    reason: Finding | None = field(default=None, kw_only=True)
    sensitivity: Sensitivity | None = field(default=None, kw_only=True)
    hidden_cause: HiddenCause | None = field(default=None, kw_only=True)
    draws: GainDraws | None = field(default=None, kw_only=True, repr=False, compare=False)
    trace: dict[str, Any] = field(default_factory=dict, kw_only=True)
    seconds: float = field(default=0.0, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "findings", tuple(self.findings))
        if self.alteration is not None and not self.alteration.names:
            raise ValueError("an alteration sets at least one variable: use alteration=None for none")
        for setting in (self.alteration, self.recommendation):
            if setting is not None and not all(map(math.isfinite, setting.values.flatten().tolist())):
                values = f"{list(setting.names)} to {setting.values.tolist()}"
                raise ValueError(f"a decision sets {values}: expected finite numbers")

    @property
    def status(self) -> Status:
        """``do``, ``may`` or ``leave``."""
        if self.alteration is None:
            return "leave"
        if doubted(self.findings):
            return "may"
        gain = self.gain if self.gain is None or self.worth is None else self.net_gain
        return "do" if gain is not None and gain.lower is not None and gain.lower > 0 else "may"

    @property
    def undecided(self) -> bool:
        """Whether nothing is altered because the method cannot tell what to do."""
        return self.alteration is None and self.reason is not None and self.reason.kind not in NOTHING_BETTER

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of the findings."""
        return tuple(finding.text for finding in self.findings)

    def told(self, findings: Iterable[Finding]) -> Self:
        """With further findings, each once."""
        all_findings = joined(self.findings, findings)
        return self if all_findings == self.findings else self.changed(findings=all_findings)

    def changed(self, **fields: Any) -> Self:
        """With other fields, which are not checked."""
        return copied(self, **fields)

    def as_class(self, kind: type[Record], **fields: Any) -> Record:
        """The same content as a decision of a subclass, with all of its own fields."""
        return copied(self, kind, **fields)

    def withdrawn(self, reason: Finding) -> Self:
        """Without its alteration; the trace holds what it ``would_set``."""
        assert self.alteration is not None
        would = dict(zip(self.alteration.names, self.alteration.values.tolist(), strict=True))
        decided = self.cost is not None and reason.kind in NOTHING_BETTER
        return replace(
            self,
            alteration=None,
            reason=reason,
            cost=0.0 if decided else None,
            trace=self.trace | {"would_set": would},
        )

    @property
    def before(self) -> Estimate | None:
        """What the estimate is compared with: the present values as they are, if known, else no action."""
        return self.unchanged or self.baseline

    @property
    def improvement(self) -> float:
        """(estimate - before) / |before|; 0 for no action or before = 0, NaN if undecided or unknown."""
        if self.alteration is None:
            return math.nan if self.undecided else 0.0
        before = self.before
        if self.estimate is None or before is None:
            return math.nan
        return (self.estimate.point - before.point) / abs(before.point) if before.point else 0.0

    @property
    def net_value(self) -> Estimate | None:
        """worth P(desired) - cost, with the interval of P, also of no action; None if unknown."""
        estimate = self.estimate if self.alteration is not None else self.before
        return None if self.undecided else net(estimate, self.worth, self.cost, NET_VALUE)

    @property
    def net_gain(self) -> Estimate | None:
        """The net value above that of no change, with the interval of `gain`, else of P; None if unknown."""
        if self.alteration is None:
            return None
        if self.gain is not None:
            return net(self.gain, self.worth, self.cost, NET_GAIN)
        before = self.before
        if before is None or self.worth is None:
            return None
        return net(self.estimate, self.worth, self.cost, NET_GAIN, self.worth * before.point)

    def actions(self) -> dict[int, int]:
        """Episodes: the changed time steps and their action numbers; another alteration is a ValueError."""
        if self.alteration is None:
            return {}
        names, values = self.alteration.names, self.alteration.values.tolist()
        if not all(isinstance(value, int | float) and value == round(value) for value in values):
            setting = dict(zip(names, values, strict=False))
            raise ValueError(f"an episode's actions are whole numbers; got {setting}")
        return {action_step(name): round(value) for name, value in zip(names, values, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without `seconds`, which differ from run to run, and empty special fields."""
        optional = {
            "unchanged": _plain(self.unchanged),
            "gain": _plain(self.gain),
            "cost": self.cost,
            "worth": self.worth,
            "net_value": _plain(self.net_value),
            "net_gain": _plain(self.net_gain),
            "recommendation": _plain(self.recommendation),
            "doses": {name: list(doses) for name, doses in self.doses.items()} or None,
            "parts": {name: part.to_dict() for name, part in self.parts.items()} or None,
            "sensitivity": _plain(self.sensitivity),
            "hidden_cause": _plain(self.hidden_cause),
        }
        return {
            "status": self.status,
            "alteration": _plain(self.alteration),
            "value": self.value,
            "estimate": _plain(self.estimate),
            "baseline": _plain(self.baseline),
            **{name: value for name, value in optional.items() if value is not None},
            "findings": [finding.to_dict() for finding in self.findings],
            "reason": _plain(self.reason),
            "trace": self.trace,
        }


def action_name(step: int) -> str:
    """The name of a time step's action in an alteration."""
    return f"action[{step}]"


def action_step(name: str) -> int:
    """The time step of an action's name, the inverse of `action_name`; a ValueError for other names."""
    digits = name.removeprefix("action[").removesuffix("]")
    if not digits.isascii() or not digits.isdigit() or action_name(int(digits)) != name:
        raise ValueError(f"an episode's alteration sets action[0], action[1], ...; got {name!r}")
    return int(digits)


def _plain(
    record: Alteration | Estimate | Finding | Sensitivity | HiddenCause | None,
) -> dict[str, Any] | None:
    """Plain data; of an alteration name to value, of a batch (q, k) to its q values."""
    if not isinstance(record, Alteration):
        return None if record is None else record.to_dict()
    values = record.values.mT if record.values.ndim > 1 else record.values
    return dict(zip(record.names, values.tolist(), strict=True))
