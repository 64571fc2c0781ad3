"""One sentence for each part of a rehearsal decision: what to set, the chances, the truth, what was rejected.

The numbers are those of the decision's line in ``decisions.jsonl``, in the digits of the console's table
(`reporting.decision_table`): probabilities in three decimals, settings in four significant digits.
"""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.evaluation.recorded_run import Decided, claim, effort
from rehearsal_torch.evaluation.rehearsal_rows import interval_of, scored_by_world, truth_bounds
from rehearsal_torch.reporting.decision_table import figure
from rehearsal_torch.reporting.page.material import finite, mapping, named, shown

DESIRED = "probability of a desired outcome"


def headline(one: Decided) -> str:
    """What is recommended, in one sentence."""
    setting = mapping(one.get("alteration"))
    if setting:
        return f"Set {settings(setting)}."
    if one.get("status") == "refused":
        return "Refused: the method cannot answer, and recommends nothing."
    return "No action is recommended."


def settings(setting: Mapping[str, Any], word: str = "to") -> str:
    """What is set to which value, in words: ``rate to 0.3 and term to 12``."""
    parts = [f"{name} {word} {shown(value)}" for name, value in setting.items()]
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]


def context(one: Decided) -> str:
    """What is known of the case; empty if nothing is."""
    known = mapping(one.get("given"))
    return f"Known before deciding: {named(known)}." if known else ""


def chances(one: Decided) -> list[str]:
    """The estimated chance before and after, with its interval; what the rejected alteration was estimated
    to bring, where one was rejected.
    """
    before, after = finite(claim(one, of="baseline")), finite(claim(one))
    what = str(claim(one, "of") or claim(one, "of", "baseline") or DESIRED)
    if one.get("alteration") is None:
        said = [f"With no action, the estimated {what} is {figure(before)}."] if before is not None else []
        would = mapping(effort(one, "would_set"))
        if would:
            said.append(_rejected(one, would, after))
        return said
    if after is None:
        return ["The method estimates no chance for this."]
    ends = interval(one)
    if before is None:
        return [f"The estimated {what} is {figure(after)}{ends}."]
    way = "rises" if after > before else "falls" if after < before else "stays"
    return [
        f"The estimated {what} {way} from {figure(before)} with no action{_interval(one, 'baseline')} to "
        f"{figure(after)}{ends}."
    ]


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


def _interval(one: Decided, of: str) -> str:
    lower, upper, level = (finite(claim(one, part, of)) for part in ("lower", "upper", "level"))
    if lower is None or upper is None:
        return ""
    named_level = "" if level is None else f"{100 * level:g}% "
    return f" ({named_level}interval {figure(lower)} to {figure(upper)})"


def _rejected(one: Decided, would: Mapping[str, Any], after: float | None) -> str:
    """What the withdrawn alteration was, and what it was estimated to bring."""
    brings = "" if after is None else f", estimated at {figure(after)}{_interval(one, 'estimate')}"
    return f"The alteration that was withdrawn would have set {settings(would)}{brings}."
