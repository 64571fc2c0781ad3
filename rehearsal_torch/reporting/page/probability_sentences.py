"""One sentence for each part of a rehearsal decision: what to set, the chances, the truth, what was rejected.

The numbers are those of the decision's line in ``decisions.jsonl``. Chances are in per cent with their
intervals, differences in percentage points (`data.estimates.percent`), settings in four significant digits.
The desired region is named where its words are short (`data.codings.recorded`). Tables have more digits
(`reporting.decision_table`).
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from rehearsal_torch.data.estimates.estimate import CHANCE
from rehearsal_torch.data.estimates.outside import in_place
from rehearsal_torch.data.estimates.percent import (
    Ends,
    Intervals,
    alike,
    decimals,
    in_words,
    is_chance,
    percent,
    percents,
)
from rehearsal_torch.data.finding import findings_of, undecided
from rehearsal_torch.evaluation.recorded_run import Decided, claim, effort
from rehearsal_torch.evaluation.recorded_run import before as compared_with
from rehearsal_torch.evaluation.rehearsal_rows import interval_of, scored_by_world, truth_bounds
from rehearsal_torch.reporting import cost_words
from rehearsal_torch.reporting.page.material import finite, mapping, shown

# With more cases than these, one sentence on all of them stands before the sentences of each.
SEVERAL = 5


def headline(one: Decided, units: Mapping[str, Any] | None = None) -> str:
    """What is recommended, in one sentence.

    Args:
        units: Variable to its unit; None or empty if they are unknown.
    """
    setting = mapping(one.get("alteration"))
    if setting:
        said = changes(setting, mapping(one.get("present")), units or {})
        return f"{said[:1].upper()}{said[1:]}."
    if undecided(one):
        return "Refused: the method cannot answer, and recommends nothing."
    return "No action is recommended."


def settings(setting: Mapping[str, Any], word: str = "to", units: Mapping[str, Any] | None = None) -> str:
    """What is set to which value, in words: ``rate to 0.3 % and term to 12 months``."""
    known = units or {}
    parts = [
        f"{name} {word} {shown(value)}{f' {known[name]}' if known.get(name) else ''}"
        for name, value in setting.items()
    ]
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]


def changes(setting: Mapping[str, Any], present: Mapping[str, Any], units: Mapping[str, Any]) -> str:
    """What is set, from its present value where that is known: ``lower rate from 7.1 to 5.4 % and set term to
    12 months``; texts are neither raised nor lowered: ``set smoker from yes to no``.
    """
    parts = []
    for name, value in setting.items():
        now, then = finite(present.get(name)), finite(value)
        unit = f" {units[name]}" if units.get(name) else ""
        before = present.get(name)
        if isinstance(before, str) and isinstance(value, str):
            parts.append(
                f"leave {name} at {value}{unit}"
                if before == value
                else f"set {name} from {before} to {value}{unit}"
            )
        elif now is None or then is None:
            parts.append(f"set {name} to {shown(value)}{unit}")
        elif shown(now) == shown(value):
            parts.append(f"leave {name} at {shown(value)}{unit}")
        else:
            way = "raise" if then > now else "lower"
            parts.append(f"{way} {name} from {shown(now)} to {shown(value)}{unit}")
    alike = all(part.startswith("set ") for part in parts)
    if alike:
        parts = [part if not place else part.removeprefix("set ") for place, part in enumerate(parts)]
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]


def context(one: Decided, units: Mapping[str, Any] | None = None) -> str:
    """What is known of the case; empty if nothing is."""
    known = mapping(one.get("given"))
    if not known:
        return ""
    each = [
        f"{name} {shown(value)}{f' {units[name]}' if units and units.get(name) else ''}"
        for name, value in known.items()
    ]
    return f"Known before deciding: {', '.join(each)}."


def overall(decisions: Sequence[Decided], wanted: str = "") -> str:
    """All cases in one sentence: in how many an alteration is recommended, and the mean chances without and
    with it; empty for few cases.

    Args:
        wanted: The desired region in words; empty where these are too long.
    """
    if len(decisions) <= SEVERAL:
        return ""
    acted = [one for one in decisions if one.get("alteration") is not None]
    said = f"In {len(acted)} of {len(decisions)} cases an alteration is recommended"
    within = [one for one in acted if not in_place(findings_of(one))]
    pairs = [(finite(compared_with(one)), finite(claim(one))) for one in within]
    both = [(before, after) for before, after in pairs if before is not None and after is not None]
    if not both or len(both) < len(within):
        return f"{said}{'' if within or not acted else ', outside the data in all of them'}."
    these = "these" if len(within) == len(acted) else f"the {len(within)} of these within the data"
    before, after = fmean(each[0] for each in both), fmean(each[1] for each in both)
    of, told, fine = _of(acted[0]), Intervals(), alike(before, after)
    number = told.chance if is_chance(of) else told.plain
    ends = f"{number(before, fine=fine)} to {number(after, fine=fine)}"
    what = in_words(of, wanted)
    return f"{said}; in {these}, the estimated {what} {_way(before, after)} on average from {ends}."


def chances(one: Decided, wanted: str = "") -> list[str]:
    """The estimated chance before and after, with its interval; what the rejected alteration was estimated
    to bring, where one was rejected; what it costs and nets, where that is known. Where the decision lies
    outside the data, that reason in place of all of them (`data.estimates.outside`).

    Args:
        wanted: The desired region in words; empty where these are too long.
    """
    beyond = in_place(findings_of(one))
    if beyond:
        return [beyond]
    costs = cost_words.sentence(one)
    return [*_chances(one, in_words(_of(one), wanted)), *([costs] if costs else [])]


def _chances(one: Decided, what: str) -> list[str]:
    before, after = finite(claim(one, of="baseline")), finite(claim(one))
    unchanged = finite(claim(one, of="unchanged"))
    told = Intervals()
    if one.get("alteration") is None:
        said = []
        if unchanged is not None:
            said = [f"With {_left(one)}, the estimated {what} is {_number(one, 'unchanged', told)}."]
            said += _usual(one, told)
        elif before is not None:
            said = [f"With no action, the estimated {what} is {_number(one, 'baseline', told)}."]
        would = mapping(effort(one, "would_set"))
        if would:
            brings = "" if after is None else f", estimated at {_number(one, 'estimate', told)}"
            said.append(f"The alteration that was withdrawn would have set {settings(would)}{brings}.")
        return said
    if after is None:
        return ["The method estimates no chance for this."]
    against = before if unchanged is None else unchanged
    if against is None:
        return [f"The estimated {what} is {_number(one, 'estimate', told)}."]
    fine = _decimals(one)
    left = "no action" if unchanged is None else _left(one)
    start = _number(one, "baseline" if unchanged is None else "unchanged", told, fine)
    end = _number(one, "estimate", told, fine)
    gained = _gained(one, told, fine)
    return [
        f"The estimated {what} {_way(against, after)} from {start} with {left} to {end}{gained}.",
        *([] if unchanged is None else _usual(one, told)),
    ]


def _of(one: Decided) -> str:
    """What the estimates of a decision are of."""
    return str(claim(one, "of") or claim(one, "of", "baseline") or CHANCE)


def _gained(one: Decided, told: Intervals, fine: int) -> str:
    """The difference to changing nothing, and whether it is told from zero; empty where it is not known."""
    gain, ends = finite(claim(one, of="gain")), _ends(one, "gain")
    if gain is None:
        return ""
    unclear = ", not told from zero" if ends is not None and ends[0] <= 0 <= ends[1] else ""
    level = finite(claim(one, "level", "gain"))
    number = (
        told.difference(gain, ends, level, fine) if is_chance(_of(one)) else told.plain(gain, ends, level)
    )
    return f": a difference of {number}{unclear}"


def _number(one: Decided, of: str, told: Intervals, fine: int = 0) -> str:
    """An estimate of a decision with its interval, in words; for want of one, with that of a certificate."""
    point, ends, chance = finite(claim(one, of=of)), _ends(one, of), is_chance(_of(one))
    assert point is not None
    lower, upper = map(finite, interval_of(one)) if of == "estimate" and ends is None else (None, None)
    if lower is not None and upper is not None and chance:
        said = percents([point, lower, upper], fine)
        return f"{said[0]} (error of counting under the model {said[1]} to {said[2]})"
    level = finite(claim(one, "level", of))
    return told.chance(point, ends, level, fine) if chance else told.plain(point, ends, level, fine)


def _decimals(one: Decided) -> int:
    """The decimals of the chances before and after, and of their difference."""
    against = "baseline" if finite(claim(one, of="unchanged")) is None else "unchanged"
    before, after, gain = (_point_and_ends(one, of) for of in (against, "estimate", "gain"))
    return decimals(before, after, gain) if before and after and is_chance(_of(one)) else 0


def _point_and_ends(one: Decided, of: str) -> list[float]:
    """An estimate of a decision with the ends of its interval; empty where it is not known."""
    point = finite(claim(one, of=of))
    return [] if point is None else [point, *(_ends(one, of) or ())]


def _ends(one: Decided, of: str) -> Ends:
    """The interval of an estimate; None without one."""
    lower, upper = (finite(claim(one, end, of)) for end in ("lower", "upper"))
    return None if lower is None or upper is None else (lower, upper)


def truth(one: Decided) -> list[str]:
    """What a simulated world knows of the decision, and bounds on the true probability within the data; empty
    without either.
    """
    said = []
    bounds = {name: finite(value) for name, value in truth_bounds(one).items()}
    lower, upper = bounds.get("truth_lower"), bounds.get("truth_upper")
    if lower is not None and upper is not None and not in_place(findings_of(one)):
        level = finite(mapping(one.get("certificate")).get("level"))
        sure = "" if level is None else f"with a probability of {100 * level:g}%, "
        least, most = percents([lower, upper])
        said.append(f"If the model is right, {sure}the true chance lies between {least} and {most}.")
    if scored_by_world(one):
        score = one["score"]
        acted = one.get("alteration") is not None
        known = [finite(score[name]) for name in ("probability", "no_action", "oracle")]
        with_this, without, best = ("-" if each is None else percent(each) for each in known)
        after = f"is {with_this} after this, " if acted else ""
        said.append(
            f"The truth, which this simulated world knows: the chance {after}"
            f"{'' if acted else 'is '}{without} with no action and {best} at best."
        )
    return said


def _way(before: float, after: float) -> str:
    if percents([before], True) == percents([after], True):
        return "hardly changes,"
    return "rises" if after > before else "falls"


def _left(one: Decided) -> str:
    """What would be left as it is: ``rate left at 7.1``."""
    names = mapping(one.get("alteration")) or mapping(effort(one, "would_set"))
    present = mapping(one.get("present"))
    left = [f"{name} left at {shown(present[name])}" for name in names if name in present]
    return " and ".join(left) or "nothing changed"


def _usual(one: Decided, told: Intervals) -> list[str]:
    """What usually happens, where the comparison is with something else."""
    if finite(claim(one, of="baseline")) is None:
        return []
    return [f"With what is usual in such a case, it is {_number(one, 'baseline', told)}."]
