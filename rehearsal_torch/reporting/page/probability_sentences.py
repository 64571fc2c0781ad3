"""One sentence for each part of a rehearsal decision: what to set, the chances, the truth, what was rejected.

The numbers are those of the decision's line in ``decisions.jsonl``, in the digits of the console's table
(`reporting.decision_table`): probabilities in three decimals, settings in four significant digits.
"""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.evaluation.recorded_run import Decided, claim, effort
from rehearsal_torch.evaluation.rehearsal_rows import interval_of, scored_by_world, truth_bounds
from rehearsal_torch.reporting import cost_words
from rehearsal_torch.reporting.decision_table import figure
from rehearsal_torch.reporting.page.material import finite, mapping, shown

DESIRED = "probability of a desired outcome"


def headline(one: Decided, units: Mapping[str, Any] | None = None) -> str:
    """What is recommended, in one sentence.

    Args:
        one: The decision.
        units: Variable to its unit; None or empty if they are unknown.
    """
    setting = mapping(one.get("alteration"))
    if setting:
        said = changes(setting, mapping(one.get("present")), units or {})
        return f"{said[:1].upper()}{said[1:]}."
    if one.get("status") == "refused":
        return "Refused: the method cannot answer, and recommends nothing."
    return "No action is recommended."


def settings(setting: Mapping[str, Any], word: str = "to") -> str:
    """What is set to which value, in words: ``rate to 0.3 and term to 12``."""
    parts = [f"{name} {word} {shown(value)}" for name, value in setting.items()]
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


def chances(one: Decided) -> list[str]:
    """The estimated chance before and after, with its interval; what the rejected alteration was estimated
    to bring, where one was rejected; what it costs and nets, where that is known.
    """
    costs = cost_words.sentence(one)
    return [*_chances(one), *([costs] if costs else [])]


def _chances(one: Decided) -> list[str]:
    before, after = finite(claim(one, of="baseline")), finite(claim(one))
    unchanged = finite(claim(one, of="unchanged"))
    what = str(claim(one, "of") or claim(one, "of", "baseline") or DESIRED)
    if one.get("alteration") is None:
        said = [f"With no action, the estimated {what} is {figure(before)}."] if before is not None else []
        if unchanged is not None:
            said = [
                f"With {_left(one)}, the estimated {what} is {figure(unchanged)}"
                f"{_interval(one, 'unchanged')}.{_usual(before)}"
            ]
        would = mapping(effort(one, "would_set"))
        if would:
            said.append(_rejected(one, would, after))
        return said
    if after is None:
        return ["The method estimates no chance for this."]
    ends = interval(one)
    if before is None:
        return [f"The estimated {what} is {figure(after)}{ends}."]
    if unchanged is not None:
        gain = finite(claim(one, of="gain"))
        return [
            f"The estimated {what} {_way(unchanged, after)} from {figure(unchanged)} with {_left(one)} to "
            f"{figure(after)}{ends}.",
            *([] if gain is None else [_gained(one, gain)]),
            _usual(before).strip(),
        ]
    way, gain = _way(before, after), finite(claim(one, of="gain"))
    return [
        f"The estimated {what} {way} from {figure(before)} with no action{_interval(one, 'baseline')} to "
        f"{figure(after)}{ends}.",
        *([] if gain is None else [_gained(one, gain)]),
    ]


def _gained(one: Decided, gain: float) -> str:
    """The difference to changing nothing, and whether it is told from zero."""
    lower, upper = (finite(claim(one, end, "gain")) for end in ("lower", "upper"))
    within = lower is not None and upper is not None and lower <= 0 <= upper
    unclear = ", so that it is not told from zero" if within else ""
    return f"The difference is {gain:+.3f}{_interval(one, 'gain', '+.3f')}{unclear}."


def interval(one: Decided) -> str:
    """The interval of the estimate in brackets, with its level if that is known; empty without one."""
    found = _interval(one, "estimate")
    if found:
        return found
    lower, upper = map(finite, interval_of(one))
    if lower is None or upper is None:
        return ""
    return f" (certified interval {figure(lower)} to {figure(upper)})"


def truth(one: Decided) -> list[str]:
    """What a simulated world knows of the decision, and bounds on the true probability; empty without
    either.
    """
    said = []
    bounds = {name: finite(value) for name, value in truth_bounds(one).items()}
    lower, upper = bounds.get("truth_lower"), bounds.get("truth_upper")
    if lower is not None and upper is not None:
        level = finite(mapping(one.get("certificate")).get("level"))
        sure = "" if level is None else f"with a probability of {100 * level:g}%, "
        said.append(
            f"If the model is right, {sure}the true probability lies between {figure(lower)} and "
            f"{figure(upper)}."
        )
    if scored_by_world(one):
        score = one["score"]
        acted = one.get("alteration") is not None
        after = f"is {figure(score['probability'])} after this, " if acted else ""
        said.append(
            f"The truth, which this simulated world knows: the probability {after}"
            f"{'' if acted else 'is '}{figure(score['no_action'])} with no action and "
            f"{figure(score['oracle'])} at best."
        )
    return said


def _way(before: float, after: float) -> str:
    return "rises" if after > before else "falls" if after < before else "stays"


def _left(one: Decided) -> str:
    """What would be left as it is: ``rate left at 7.1``."""
    names = mapping(one.get("alteration")) or mapping(effort(one, "would_set"))
    present = mapping(one.get("present"))
    left = [f"{name} left at {shown(present[name])}" for name in names if name in present]
    return " and ".join(left) or "nothing changed"


def _usual(before: float | None) -> str:
    """What usually happens, where the comparison is with something else."""
    return "" if before is None else f" With what is usual in such a case, it is {figure(before)}."


def _interval(one: Decided, of: str, form: str = ".3f") -> str:
    lower, upper, level = (finite(claim(one, part, of)) for part in ("lower", "upper", "level"))
    if lower is None or upper is None:
        return ""
    named_level = "" if level is None else f"{100 * level:g}% "
    return f" ({named_level}interval {lower:{form}} to {upper:{form}})"


def _rejected(one: Decided, would: Mapping[str, Any], after: float | None) -> str:
    """What the withdrawn alteration was, and what it was estimated to bring."""
    brings = "" if after is None else f", estimated at {figure(after)}{_interval(one, 'estimate')}"
    return f"The alteration that was withdrawn would have set {settings(would)}{brings}."
