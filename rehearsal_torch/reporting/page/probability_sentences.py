"""One sentence for each part of a rehearsal decision: what to set, the chances, the truth, what was rejected.

The numbers are those of the decision's line in ``decisions.jsonl``. Chances are in per cent with their
intervals, differences in percentage points (`data.estimate`), settings in four significant digits.
The desired region is named where its words are short (`data.codings.texts`). Tables have more digits
(`reporting.decision_table`).
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from rehearsal_torch.data.estimate import (
    CHANCE,
    Ends,
    Intervals,
    alike,
    decimals,
    in_words,
    is_chance,
    percent,
    percents,
)
from rehearsal_torch.data.finding import findings_of, in_place, undecided
from rehearsal_torch.evaluation.recorded_run import Decided, claim, effort
from rehearsal_torch.evaluation.recorded_run import before as compared_with
from rehearsal_torch.evaluation.rehearsal_rows import interval_of, scored_by_world, truth_bounds
from rehearsal_torch.reporting import cost_words
from rehearsal_torch.reporting.page.material import and_list, finite, mapping, shown

# With more cases than these, one sentence on all of them stands before the sentences of each.
SEVERAL = 5


def headline(decision: Decided, units: Mapping[str, Any] | None = None) -> str:
    """What is recommended, in one sentence.

    Args:
        units: Variable to its unit; None or empty if they are unknown.
    """
    setting = mapping(decision.get("alteration"))
    if setting:
        change = changes(setting, mapping(decision.get("present")), units or {})
        return f"{change[:1].upper()}{change[1:]}."
    if undecided(decision):
        return "Refused: the method cannot answer, and recommends nothing."
    return "No action is recommended."


def settings(setting: Mapping[str, Any], word: str = "to", units: Mapping[str, Any] | None = None) -> str:
    """What is set to which value, in words: ``rate to 0.3 % and term to 12 months``."""
    known = units or {}
    parts = [
        f"{name} {word} {shown(value)}{f' {known[name]}' if known.get(name) else ''}"
        for name, value in setting.items()
    ]
    return and_list(parts)


def changes(setting: Mapping[str, Any], present: Mapping[str, Any], units: Mapping[str, Any]) -> str:
    """What is set, from its present value where that is known: ``lower rate from 7.1 to 5.4 % and set term to
    12 months``; texts are neither raised nor lowered: ``set smoker from yes to no``.
    """
    parts = []
    for name, value in setting.items():
        before, unit = present.get(name), f" {units[name]}" if units.get(name) else ""
        now, then = finite(before), finite(value)
        texts = isinstance(before, str) and isinstance(value, str)
        if texts and before != value:
            parts.append(("set", f"{name} from {before} to {value}{unit}"))
        elif texts or (now is not None and then is not None and shown(now) == shown(value)):
            parts.append(("leave", f"{name} at {shown(value)}{unit}"))
        elif now is None or then is None:
            parts.append(("set", f"{name} to {shown(value)}{unit}"))
        else:
            way = "raise" if then > now else "lower"
            parts.append((way, f"{name} from {shown(now)} to {shown(value)}{unit}"))
    if {verb for verb, _ in parts} == {"set"}:
        return f"set {and_list([what for _, what in parts])}"
    return and_list([f"{verb} {what}" for verb, what in parts])


def context(decision: Decided, units: Mapping[str, Any] | None = None) -> str:
    """What is known of the case; empty if nothing is."""
    known = mapping(decision.get("given"))
    if not known:
        return ""
    facts = [
        f"{name} {shown(value)}{f' {units[name]}' if units and units.get(name) else ''}"
        for name, value in known.items()
    ]
    return f"Known before deciding: {', '.join(facts)}."


def overall(decisions: Sequence[Decided], wanted: str = "") -> str:
    """All cases in one sentence: in how many an alteration is recommended, and the mean chances without and
    with it; empty for few cases.

    Args:
        wanted: The desired region in words; empty where these are too long.
    """
    if len(decisions) <= SEVERAL:
        return ""
    acted = [decision for decision in decisions if decision.get("alteration") is not None]
    sentence = f"In {len(acted)} of {len(decisions)} cases an alteration is recommended"
    within = [decision for decision in acted if not in_place(findings_of(decision))]
    pairs = [(finite(compared_with(decision)), finite(claim(decision))) for decision in within]
    both = [(before, after) for before, after in pairs if before is not None and after is not None]
    if not both or len(both) < len(within):
        return f"{sentence}{'' if within or not acted else ', outside the data in all of them'}."
    these = "these" if len(within) == len(acted) else f"the {len(within)} of these within the data"
    before, after = fmean(pair[0] for pair in both), fmean(pair[1] for pair in both)
    of, intervals, fine = _of(acted[0]), Intervals(), alike(before, after)
    number = intervals.chance if is_chance(of) else intervals.plain
    ends = f"{number(before, fine=fine)} to {number(after, fine=fine)}"
    what = in_words(of, wanted)
    return f"{sentence}; in {these}, the estimated {what} {_way(before, after)} on average from {ends}."


def chances(decision: Decided, wanted: str = "") -> list[str]:
    """The estimated chance before and after, with its interval; what the rejected alteration was estimated
    to bring, where one was rejected; what it costs and nets, where that is known. Where the decision lies
    outside the data, that reason in place of all of them (`data.finding`).

    Args:
        wanted: The desired region in words; empty where these are too long.
    """
    beyond = in_place(findings_of(decision))
    if beyond:
        return [beyond]
    costs = cost_words.sentence(decision)
    return [*_chances(decision, in_words(_of(decision), wanted)), *([costs] if costs else [])]


def _chances(decision: Decided, what: str) -> list[str]:
    before, after = finite(claim(decision, of="baseline")), finite(claim(decision))
    unchanged = finite(claim(decision, of="unchanged"))
    intervals = Intervals()
    if decision.get("alteration") is None:
        sentences = []
        if unchanged is not None:
            number = _number(decision, "unchanged", intervals)
            sentences = [f"With {_left(decision)}, the estimated {what} is {number}."]
            sentences += _usual(decision, intervals)
        elif before is not None:
            sentences = [
                f"With no action, the estimated {what} is {_number(decision, 'baseline', intervals)}."
            ]
        would = mapping(effort(decision, "would_set"))
        if would:
            brings = "" if after is None else f", estimated at {_number(decision, 'estimate', intervals)}"
            sentences.append(f"The alteration that was withdrawn would have set {settings(would)}{brings}.")
        return sentences
    if after is None:
        return ["The method estimates no chance for this."]
    against = before if unchanged is None else unchanged
    if against is None:
        return [f"The estimated {what} is {_number(decision, 'estimate', intervals)}."]
    fine = _decimals(decision)
    left = "no action" if unchanged is None else _left(decision)
    start = _number(decision, "baseline" if unchanged is None else "unchanged", intervals, fine)
    end = _number(decision, "estimate", intervals, fine)
    gained = _gained(decision, intervals, fine)
    return [
        f"The estimated {what} {_way(against, after)} from {start} with {left} to {end}{gained}.",
        *([] if unchanged is None else _usual(decision, intervals)),
    ]


def _of(decision: Decided) -> str:
    """What the estimates of a decision are of."""
    return str(claim(decision, "of") or claim(decision, "of", "baseline") or CHANCE)


def _gained(decision: Decided, intervals: Intervals, fine: int) -> str:
    """The difference to changing nothing, and whether it is told from zero; empty where it is not known."""
    gain, ends = finite(claim(decision, of="gain")), _ends(decision, "gain")
    if gain is None:
        return ""
    unclear = ", not told from zero" if ends is not None and ends[0] <= 0 <= ends[1] else ""
    level = finite(claim(decision, "level", "gain"))
    number = (
        intervals.difference(gain, ends, level, fine)
        if is_chance(_of(decision))
        else intervals.plain(gain, ends, level)
    )
    return f": a difference of {number}{unclear}"


def _number(decision: Decided, of: str, intervals: Intervals, fine: int = 0) -> str:
    """An estimate of a decision with its interval, in words; for want of one, with that of a certificate."""
    point, ends, chance = finite(claim(decision, of=of)), _ends(decision, of), is_chance(_of(decision))
    assert point is not None
    lower, upper = map(finite, interval_of(decision)) if of == "estimate" and ends is None else (None, None)
    if lower is not None and upper is not None and chance:
        in_percent = percents([point, lower, upper], fine)
        return f"{in_percent[0]} (error of counting under the model {in_percent[1]} to {in_percent[2]})"
    level = finite(claim(decision, "level", of))
    return intervals.chance(point, ends, level, fine) if chance else intervals.plain(point, ends, level, fine)


def _decimals(decision: Decided) -> int:
    """The decimals of the chances before and after, and of their difference."""
    against = "baseline" if finite(claim(decision, of="unchanged")) is None else "unchanged"
    before, after, gain = (_point_and_ends(decision, of) for of in (against, "estimate", "gain"))
    return decimals(before, after, gain) if before and after and is_chance(_of(decision)) else 0


def _point_and_ends(decision: Decided, of: str) -> list[float]:
    """An estimate of a decision with the ends of its interval; empty where it is not known."""
    point = finite(claim(decision, of=of))
    return [] if point is None else [point, *(_ends(decision, of) or ())]


def _ends(decision: Decided, of: str) -> Ends:
    """The interval of an estimate; None without one."""
    lower, upper = (finite(claim(decision, end, of)) for end in ("lower", "upper"))
    return None if lower is None or upper is None else (lower, upper)


def truth(decision: Decided) -> list[str]:
    """What a simulated world knows of the decision, and bounds on the true probability within the data; empty
    without either.
    """
    sentences = []
    bounds = {name: finite(value) for name, value in truth_bounds(decision).items()}
    lower, upper = bounds.get("truth_lower"), bounds.get("truth_upper")
    if lower is not None and upper is not None and not in_place(findings_of(decision)):
        level = finite(mapping(decision.get("certificate")).get("level"))
        sure = "" if level is None else f"with a probability of {100 * level:g}%, "
        least, most = percents([lower, upper])
        sentences.append(f"If the model is right, {sure}the true chance lies between {least} and {most}.")
    if scored_by_world(decision):
        score = decision["score"]
        acted = decision.get("alteration") is not None
        known = [finite(score[name]) for name in ("probability", "no_action", "oracle")]
        with_this, without, best = ("-" if value is None else percent(value) for value in known)
        after = f"is {with_this} after this, " if acted else ""
        sentences.append(
            f"The truth, which this simulated world knows: the chance {after}"
            f"{'' if acted else 'is '}{without} with no action and {best} at best."
        )
    return sentences


def _way(before: float, after: float) -> str:
    if percents([before], True) == percents([after], True):
        return "hardly changes,"
    return "rises" if after > before else "falls"


def _left(decision: Decided) -> str:
    """What would be left as it is: ``rate left at 7.1``."""
    names = mapping(decision.get("alteration")) or mapping(effort(decision, "would_set"))
    present = mapping(decision.get("present"))
    left = [f"{name} left at {shown(present[name])}" for name in names if name in present]
    return " and ".join(left) or "nothing changed"


def _usual(decision: Decided, intervals: Intervals) -> list[str]:
    """What usually happens, where the comparison is with something else."""
    if finite(claim(decision, of="baseline")) is None:
        return []
    return [f"With what is usual in such a case, it is {_number(decision, 'baseline', intervals)}."]
