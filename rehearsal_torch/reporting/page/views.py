"""Decisions as typed fields, from which templates make sentences, table rows and small pictures.

One dataclass for each kind of decision: `Case` (a rehearsal), `Episode` (an action sequence) and `Trials`
(the last of a run of experiments). The numbers are those of the decision's line in ``decisions.jsonl``:
chances in per cent with their intervals, differences in percentage points (`data.estimate`), settings in four
significant digits. Where a decision lies outside the data, that reason stands in place of all numbers.

Of an episode, doses and outcomes are those of the recorded trajectory, with the names and units of
`reporting.labels`. What was done is the dose that was given; what would be set, that of a level, unless the
dose keeps its level. A reward of minus one variable is shown as that variable. Time steps have the times of
the table where all units begin at the same one; else they are counted from 0, as in ``action[t]``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from rehearsal_torch.data.decision import action_step
from rehearsal_torch.data.estimate import CHANCE, decimals, in_words, is_chance, percent, percents, points
from rehearsal_torch.data.finding import Finding, findings_of, in_place, reason_of, undecided
from rehearsal_torch.data.mean_gain import counted_beyond
from rehearsal_torch.data.outcome_constraint import ConstraintChance
from rehearsal_torch.data.sensitivity import HiddenCause, Sensitivity
from rehearsal_torch.evaluation.claim_rows import interval_of, scored_by_world, scored_trial, truth_bounds
from rehearsal_torch.evaluation.overturning_sentences import hidden_cause_of, sensitivity_of
from rehearsal_torch.evaluation.run_record import SCORES, Decided, claim, counterpart, effort
from rehearsal_torch.reporting.decision_frame import cost_sentence
from rehearsal_torch.reporting.labels import Wording, telling_gap
from rehearsal_torch.reporting.page.data_card import one_outcome
from rehearsal_torch.reporting.page.html import name_of
from rehearsal_torch.reporting.page.page_content import Material, finite, listed, mapping, shown
from rehearsal_torch.reporting.trial_report import kept
from rehearsal_torch.spaces.box import setting_text

Units = Mapping[str, str]
NO_UNITS: Units = MappingProxyType({})
Verdict = Literal["do", "may", "leave", "unclear"]
VERDICTS: tuple[Verdict, ...] = ("do", "may", "leave", "unclear")
# Two values, before and after.
Pair = tuple[str, str]


@dataclass(frozen=True)
class Reading:
    """An estimate as it is written, with its `ends` and the name of its interval, and as numbers."""

    text: str
    ends: Pair | None
    interval: str
    point: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Change:
    """What is set: from `old`, empty where that is unknown, to `new`, with its unit."""

    verb: Literal["set", "leave", "raise", "lower"]
    name: str
    old: str
    new: str


@dataclass(frozen=True)
class Shared:
    """What decisions of all kinds have in common; `withdrawn` is what would have been set."""

    name: str
    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...]

    @property
    def acts(self) -> bool:
        """Whether anything is recommended."""
        return self.verdict in ("do", "may")


@dataclass(frozen=True)
class Case(Shared):
    """A rehearsal decision.

    Attributes:
        noun: The quantity that is estimated, in words.
        chance: Whether it is a chance.
        outside: Why the decision lies outside the data, in place of all numbers; else empty.
        before: The estimate for `left`, what stays as it is, or, if that is empty, for no action.
        trend: What the estimate does from before to after; empty without both.
        told: Whether the gain is told from zero.
        usual: The chance of no action, where the comparison is with something else.
        unseen: What the interval counts where no row is near, in words.
        bounds: Bounds on the true chance with their level, and `truth` after the decision, with no action and
            at best, which a simulated world knows; each empty or None where it is not known.
        alike: Support, distance, and the share of such cases without a row near.
    """

    noun: str
    chance: bool
    outside: str
    changes: tuple[Change, ...]
    withdrawn: tuple[Change, ...]
    given: tuple[tuple[str, str], ...]
    left: tuple[tuple[str, str], ...]
    before: Reading | None
    after: Reading | None
    gain: Reading | None
    trend: str
    told: bool
    usual: Reading | None
    unseen: str
    cost: str
    value: str
    bounds: tuple[str, str, float | None] | None
    truth: tuple[str, str, str] | None
    sensitivity: Sensitivity | None
    alike: Mapping[str, float]
    parts: tuple[tuple[str, str], ...]
    certificate: tuple[tuple[str, str], ...]


def verdict_of(decision: Decided) -> Verdict:
    """What a decision comes to: *leave* is `unclear` where the method cannot tell."""
    if decision.get("alteration") is None:
        return "unclear" if undecided(decision) else "leave"
    return "may" if decision.get("status") == "may" else "do"


def _shared(decision: Decided) -> tuple[str, Verdict, str, tuple[Finding, ...]]:
    return name_of(decision), verdict_of(decision), reason_of(decision), findings_of(decision)


def case_of(decision: Decided, units: Units = NO_UNITS, wanted: str = "") -> Case:
    """A rehearsal decision; `wanted` is the desired region in words, empty if too long."""
    measure = str(claim(decision, "of") or claim(decision, "of", "baseline") or CHANCE)
    chance, present = is_chance(measure), mapping(decision.get("present"))
    comparison = "baseline" if finite(claim(decision, of="unchanged")) is None else "unchanged"
    setting, withdrawn = mapping(decision.get("alteration")), mapping(effort(decision, "would_set"))
    outside = in_place(findings_of(decision))
    fine = _decimals(decision, comparison) if chance and setting else 0
    before, after, gain = (
        _reading(decision, report, chance, fine) for report in (comparison, "estimate", "gain")
    )
    usual = _reading(decision, "baseline", chance) if comparison == "unchanged" else None
    trend = ""
    if before is not None and after is not None:
        texts = [percents([reading.point], True) for reading in (before, after)]
        trend = "stays" if texts[0] == texts[1] else "rises" if after.point > before.point else "falls"
    names = setting or withdrawn
    left = [(name, shown(present[name])) for name in names if name in present]
    if comparison == "unchanged" and not left:
        left = [("", "")]
    told = not (gain and gain.lower is not None and gain.upper is not None and gain.lower <= 0 <= gain.upper)
    value = finite(decision.get("value"))
    alike = {name: finite(effort(decision, name)) for name in ("support", "distance", "beyond")}
    estimates = mapping(effort(decision, "estimates"))
    return Case(
        *_shared(decision),
        noun=in_words(measure, wanted),
        chance=chance,
        outside=outside,
        changes=changes_of(setting, present, units),
        withdrawn=changes_of(withdrawn, {}, units),
        given=tuple(named_values(mapping(decision.get("given")), units)),
        left=tuple(left),
        before=before,
        after=after,
        gain=gain,
        trend=trend,
        told=told,
        usual=usual,
        unseen=counted_beyond(mapping(decision.get("trace"))),
        cost=cost_sentence(decision),
        value="" if value is None else setting_text(value),
        bounds=_bounds(decision),
        truth=_truth(decision),
        sensitivity=sensitivity_of(decision),
        alike={name: number for name, number in alike.items() if number is not None},
        parts=tuple(
            (name, percent(part)) for name, each in estimates.items() if (part := _share(each)) is not None
        ),
        certificate=tuple(named_values(mapping(decision.get("certificate")))),
    )


def named_values(values: Mapping[str, Any], units: Units = NO_UNITS) -> list[tuple[str, str]]:
    """Names with their values in words, and their units."""
    return [
        (name, f"{shown(value)} {units[name]}" if units.get(name) else shown(value))
        for name, value in values.items()
    ]


def changes_of(setting: Mapping[str, Any], present: Mapping[str, Any], units: Units) -> tuple[Change, ...]:
    """What is set, from its present value where that is known; texts are neither raised nor lowered."""
    changes = []
    for name, new in named_values(setting, units):
        before, value = present.get(name), setting[name]
        first, second = finite(before), finite(value)
        texts = isinstance(before, str) and isinstance(value, str)
        old = shown(before) if texts or None not in (first, second) else ""
        if old and old == shown(value):
            changes.append(Change("leave", name, old, new))
        elif first is None or second is None:
            changes.append(Change("set", name, old, new))
        else:
            changes.append(Change("raise" if second > first else "lower", name, old, new))
    return tuple(changes)


def _share(value: object) -> float | None:
    number = finite(value)
    return number if number is not None and 0 <= number <= 1 else None


def _reading(decision: Decided, report: str, chance: bool, fine: int = 0) -> Reading | None:
    """A recorded estimate; for want of an interval, with that of a certificate."""
    point, ends, level = recorded(decision, report)
    if point is None:
        return None
    interval = "interval" if level is None else f"{100 * level:g}% interval"
    if report == "estimate" and ends is None and chance:
        lower, upper = map(finite, interval_of(decision))
        if lower is not None and upper is not None:
            ends, interval = (lower, upper), "error of counting under the model"
    numbers = [point, *(ends or ())]
    if report == "gain" and chance:
        texts = points(numbers, fine)
    else:
        texts = percents(numbers, fine) if chance else [setting_text(number) for number in numbers]
    written = (texts[1], texts[2]) if ends else None
    return Reading(texts[0], written, interval, point, *(ends or (None, None)))


def recorded(decision: Decided, report: str = "estimate") -> tuple[float | None, Any, float | None]:
    """Point, interval and level of an estimate, as far as they were recorded."""
    parts = ("point", "lower", "upper", "level")
    point, lower, upper, level = (finite(claim(decision, part, report)) for part in parts)
    return point, None if lower is None or upper is None else (lower, upper), level


def _decimals(decision: Decided, comparison: str) -> int:
    """The decimals of the chances before and after, and of their difference."""
    estimates = (recorded(decision, report) for report in (comparison, "estimate", "gain"))
    before, after, gain = ([] if point is None else [point, *(ends or ())] for point, ends, _ in estimates)
    return decimals(before, after, gain) if before and after else 0


def _bounds(decision: Decided) -> tuple[str, str, float | None] | None:
    """Bounds on the true chance, within the data, and their level."""
    bounds = {name: finite(value) for name, value in truth_bounds(decision).items()}
    lower, upper = bounds.get("truth_lower"), bounds.get("truth_upper")
    if lower is None or upper is None or in_place(findings_of(decision)):
        return None
    least, most = percents([lower, upper])
    return least, most, finite(mapping(decision.get("certificate")).get("level"))


def _truth(decision: Decided) -> tuple[str, str, str] | None:
    if not scored_by_world(decision):
        return None
    values = [finite(decision["score"][name]) for name in ("probability", "no_action", "oracle")]
    after, before, best = ("-" if value is None else percent(value) for value in values)
    return "" if decision.get("alteration") is None else after, before, best


@dataclass(frozen=True)
class StepChange:
    """What is changed at one time step: coordinates (name, old, new, unit), the same twice where one stays;
    `support` is the number of units that had this in a comparable step. Without doses, an `action`; `idle`
    says that the gain claimed is as large without it.
    """

    at: str
    doses: tuple[tuple[str, str, str, str], ...]
    support: str
    action: str = ""
    idle: bool = False


@dataclass(frozen=True)
class Episode(Shared):
    """An action sequence.

    Attributes:
        title: The heading of the episode.
        steps: How many actions there are.
        outcome: The outcome as observed and, if anything changes, as predicted; empty if unknown.
        readings: The same as numbers for a picture, with the interval.
        better: The improvement in per cent, and its ends; None without one.
        members: How many models of an ensemble there are, and the least and the largest of their gains.
        scored: The outcome with the points that actions score because they are given.
        truth: What a simulation knows: the name of the score, as observed, and after the decision.
        variables: The reward's variables: the mean as observed, and as predicted with its unit.
        cause: What a hidden cause would have to explain, and `proven`, whether no sequence is better.
    """

    title: str
    steps: int
    changes: tuple[StepChange, ...]
    withdrawn: tuple[StepChange, ...]
    outcome: tuple[str, ...]
    before: Reading | None
    after: Reading | None
    better: float | None
    better_ends: Pair | None
    members: tuple[int, str, str] | None
    scored: Pair | None
    truth: tuple[str, str, str] | None
    variables: tuple[tuple[str, str, str], ...]
    cause: HiddenCause | None
    cause_note: str
    proven: bool | None
    gap: str


def episode_of(decision: Decided, words: Wording) -> Episode:
    """A decision with a trajectory."""
    setting, trajectory = mapping(decision.get("alteration")), mapping(decision.get("trajectory"))
    withdrawn = mapping(effort(decision, "would_set"))
    before, after = (finite(trajectory.get(key)) for key in ("observed", "value"))
    known = before is not None and after is not None
    improvement, ends = finite(trajectory.get("improvement")), listed(trajectory.get("improvement_ends"))
    pair = [finite(end) for end in ends]
    gains = [gain for gain in map(finite, listed(trajectory.get("member_gains"))) if gain is not None]
    has_members = len(gains) > 1 and "searched" not in trajectory
    gap = telling_gap(
        finite(effort(decision, "gap")), finite(decision.get("value")), finite(claim(decision, of="baseline"))
    )
    return Episode(
        *_shared(decision),
        title=words.titled(name_of(decision)),
        steps=len(listed(trajectory.get("observed_actions"))),
        changes=tuple(_step_change(name, trajectory, decision, words) for name in setting),
        withdrawn=tuple(_step_change(name, trajectory, decision, words) for name in withdrawn),
        outcome=tuple(_signed(value, words) for value in (before, after)[: 1 + bool(setting)])
        if known
        else (),
        before=_signed_reading(before, [], words) if known else None,
        after=_signed_reading(after, recorded(decision)[1] or [], words) if known and setting else None,
        better=None if improvement is None else 100 * improvement,
        better_ends=(f"{100 * pair[0]:.1f}%", f"{100 * pair[1]:.1f}%")
        if len(pair) == 2 and pair[0] is not None and pair[1] is not None
        else None,
        members=(len(gains), shown(min(gains)), shown(max(gains))) if has_members else None,
        scored=_scored(trajectory, words) if setting else None,
        truth=_true_outcome(decision, words) if setting else None,
        variables=_variables(trajectory, words),
        cause=hidden_cause_of(decision),
        cause_note=str(effort(decision, "hidden_cause") or ""),
        proven=None if (proven := effort(decision, "proven")) is None else bool(proven),
        gap="" if gap is None else shown(gap),
    )


def _step_change(name: str, trajectory: dict[str, Any], decision: Decided, words: Wording) -> StepChange:
    try:
        step = action_step(name)
    except ValueError:
        return StepChange(name, (), "")
    before, levels, after = (
        _row_at(trajectory.get(key), step) for key in ("observed_doses", "level_doses", "doses")
    )
    levels = levels if len(levels) == len(before) else before
    after = listed(mapping(decision.get("doses")).get(name)) or after
    if not before or len(before) != len(after):
        action = (mapping(decision.get("alteration")) or mapping(effort(decision, "would_set"))).get(name)
        return StepChange(words.at(step), (), "", shown(action))
    doses = []
    for coordinate, (old, level, new) in enumerate(zip(before, levels, after, strict=True)):
        dose = words.dose(coordinate)
        first, second = (dose.level(value) or shown(value) for value in (old, new))
        doses.append((dose.name, first, first if new in (old, level) else second, dose.unit))
    units = finite(mapping(trajectory.get("support")).get(str(step)))
    part = finite(mapping(mapping(decision.get("parts")).get(name)).get("point"))
    idle = part is not None and part <= 0 and len(mapping(decision.get("alteration"))) > 1
    return StepChange(words.at(step), tuple(doses), "" if units is None else f"{units:g}", idle=idle)


def _signed(value: float | None, words: Wording) -> str:
    return "" if value is None else shown(words.sign * value + 0.0)


def _signed_reading(value: float | None, ends: Sequence[float], words: Wording) -> Reading:
    assert value is not None
    signed = sorted(words.sign * end + 0.0 for end in ends)
    lower, upper = signed if signed else (None, None)
    written = (shown(lower), shown(upper)) if signed else None
    return Reading(_signed(value, words), written, "95% interval", words.sign * value, lower, upper)


def _scored(trajectory: dict[str, Any], words: Wording) -> Pair | None:
    """The outcome with the points that actions score because they are given; None for other rewards."""
    scored = mapping(mapping(trajectory.get("related")).get("with doses"))
    unscored, (first, second) = (
        [finite(returns.get(key)) for key in ("observed", "value")] for returns in (trajectory, scored)
    )
    if None in unscored or first is None or second is None or [first, second] == unscored:
        return None
    return _signed(first, words), _signed(second, words)


def _true_outcome(decision: Decided, words: Wording) -> tuple[str, str, str] | None:
    """The true outcome, where a simulation knows it."""
    score = mapping(decision.get("score"))
    name = counterpart(mapping(decision.get("trajectory")), score)
    ends = [] if name is None else [finite(score.get(f"{name}_{end}")) for end in ("observed", "value")]
    if name is None or None in ends:
        return None
    return SCORES[name], *(_signed(end, words) for end in ends)  # type: ignore[return-value]


def _variables(trajectory: dict[str, Any], words: Wording) -> tuple[tuple[str, str, str], ...]:
    """The means of the reward's variables over the episode, as observed and as predicted."""
    rows = []
    for name, course in mapping(trajectory.get("variables")).items():
        means = []
        for key in ("observed", "predicted"):
            values = [value for value in map(finite, listed(mapping(course).get(key))) if value is not None]
            means.append(sum(values) / len(values) if values else None)
        if None not in means:
            unit = words.units.get(name, "")
            first, second = (f"{mean:.3g}" for mean in means)
            rows.append((name, first, f"{second} {unit}".rstrip()))
    return tuple(rows)


def _row_at(rows: object, step: int) -> list[Any]:
    """The row of a time step; empty if there is none."""
    values = listed(rows)
    return listed(values[step]) if step < len(values) else []


Settings = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Trials(Shared):
    """The last decision of a run of trials.

    Attributes:
        count: How many decisions there are.
        word: The outcome that is the reward, or "reward".
        proposal: The experiment to run, empty where there is none; `predicted` is its predicted reward, and
            `cost` what it costs.
        open: Whether results are waited for, so that there is nothing to try.
        keep: The setting to keep, with its `reward`, in the context `given`.
        runner_up: The best other setting that was tried, with its predicted reward and the chance that the
            one to keep is better.
        nearly: The values of each action that do nearly as well, from low to high, and the loss up to which.
        largest: The largest reward so far, with its setting; `truth` is the true one of the setting to
            keep, of the best of the start design, and the best possible.
        acquisition: The value by which the proposal was chosen, among so many settings.
        constraints: What is claimed of them at the setting to keep.
    """

    count: int
    word: str
    identity: str
    proposal: Settings
    predicted: str
    cost: str
    open: bool
    keep: Settings
    given: Settings
    reward: Reading | None
    runner_up: tuple[Settings, str, str] | None
    nearly: tuple[tuple[tuple[str, str, str], ...], str] | None
    largest: tuple[str, Settings] | None
    truth: tuple[str, str, str] | None
    acquisition: tuple[str, int] | None
    constraints: tuple[str, ...]


def trials_of(report: Material) -> Trials:
    """What a run of trials recommends; the experiment to run is that of a system of one's own."""
    last, units = report.run.decisions[-1], report.units
    setting = mapping(kept(last))
    predicted, best = finite(effort(last, "predicted_reward")), finite(report.card.get("best reward so far"))
    acquisition, score = finite(effort(last, "acquisition")), mapping(last.get("score"))
    cost = finite(effort(last, "cost"))
    runner_up = mapping(effort(last, "runner_up"))
    other, chance = finite(runner_up.get("predicted")), finite(runner_up.get("chance"))
    found = bool(runner_up.get("action")) and other is not None and chance is not None
    return Trials(
        *_shared(last),
        count=len(report.run.decisions),
        word=one_outcome(mapping(report.card.get("reward"))) or "reward",
        identity=str(last.get("identity") or ""),
        proposal=tuple(named_values(mapping(last.get("alteration")), units)) if proposes(last) else (),
        predicted="" if predicted is None else shown(predicted),
        cost="" if cost is None else shown(cost),
        open=last.get("reward") is None and bool(setting) and bool(reason_of(last)),
        keep=tuple(named_values(setting, units)),
        given=tuple(named_values(mapping(last.get("given")), units)),
        reward=_reading(last, "estimate", False),
        runner_up=(
            tuple(named_values(mapping(runner_up["action"]), units)),
            shown(other),
            percents([min(max(chance or 0.0, 0.001), 0.999)])[0],
        )
        if found
        else None,
        nearly=_nearly(mapping(effort(last, "nearly")), units),
        largest=None
        if best is None
        else (shown(best), tuple(named_values(mapping(report.card.get("at")), units))),
        truth=(shown(score["recommended"]), shown(score["start"]), shown(score["optimum"]))
        if best is None and scored_trial(last)
        else None,
        acquisition=None
        if acquisition is None
        else (shown(acquisition), int(finite(effort(last, "evaluations")) or 0)),
        constraints=tuple(map(str, _constraints(listed(effort(last, "constraints"))))),
    )


def _constraints(recorded: Sequence[Any]) -> Iterator[ConstraintChance]:
    """What is claimed of constraints, without entries that are damaged."""
    for entry in map(mapping, recorded):
        numbers = [finite(entry.get(name)) for name in ("asked", "probability", "low")]
        known = [number for number in numbers if number is not None]
        if len(known) == len(numbers):
            yield ConstraintChance(str(entry.get("constraint", "")), *known)


def _nearly(recorded: Mapping[str, Any], units: Units) -> tuple[tuple[tuple[str, str, str], ...], str] | None:
    """The ranges of `Trials.nearly` that are more than a value."""
    values = {name: listed(ends) for name, ends in mapping(recorded.get("ranges")).items()}
    texts = [
        (name, " or ".join(ends), "")
        for name, ends in values.items()
        if len(ends) > 1 and isinstance(ends[0], str)
    ]
    ranges = {name: list(map(finite, ends)) for name, ends in values.items()}
    ends = {
        name: pair
        for name, pair in ranges.items()
        if len(pair) == 2 and pair[0] != pair[1] and None not in pair
    }
    loss = finite(recorded.get("loss"))
    if not (ends or texts) or loss is None:
        return None
    highs = named_values({name: pair[1] for name, pair in ends.items()}, units)
    return (*((name, shown(ends[name][0]), high) for name, high in highs), *texts), f"{loss:.2g}"


def proposes(last: Decided) -> bool:
    """Whether a decision is an experiment that is yet to be run."""
    return last.get("reward") is None and bool(last.get("alteration"))
