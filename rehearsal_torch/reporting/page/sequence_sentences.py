"""One sentence for each part of a decision about an episode: which doses, and the outcome.

Doses and outcomes are those of the recorded trajectory, with the names and units of `reporting.wording`. What
was done is the dose that was given; what would be set, that of a level, unless the dose keeps its level. A
reward of minus one variable is told as that variable. Time steps have the times of the table where all units
begin at the same one; else they are counted from 0, as in ``action[t]``.
"""

from typing import Any

from rehearsal_torch.data.decision import action_step
from rehearsal_torch.data.finding import reason_of, texts_of, undecided
from rehearsal_torch.evaluation.recorded_run import SCORES, Decided, counterpart, effort
from rehearsal_torch.reporting.page.markup import name_of
from rehearsal_torch.reporting.page.material import counted, finite, listed, mapping, shown
from rehearsal_torch.reporting.wording import Wording


def said_of_episode(decision: Decided, words: Wording) -> tuple[str, str, list[str]]:
    """Title, headline and sentences of a decision.

    Args:
        decision: A line of ``decisions.jsonl`` with a trajectory.
    """
    setting, trajectory = mapping(decision.get("alteration")), mapping(decision.get("trajectory"))
    if setting:
        steps = len(listed(trajectory.get("observed_actions")))
        headline = f"Change {len(setting)} of {counted(steps, 'action')}."
    elif undecided(decision):
        headline = "Refused: the method cannot answer, and recommends nothing."
    else:
        headline = "No change is recommended."
    sentences = answer_of(decision, words)
    sentences += _points(trajectory, words) if setting else []
    sentences += _truth(decision, words) if setting else []
    if not setting and (reason := reason_of(decision)):
        sentences.append(f"Why: {reason}.")
    would = mapping(effort(decision, "would_set"))
    if would:
        sentences.append(
            f"Withdrawn: {' '.join(_change(name, trajectory, decision, words) for name in would)}"
        )
    sentences += [f"Warning: {text}." for text in texts_of(decision)]
    return words.titled(name_of(decision)), headline, sentences


def answer_of(decision: Decided, words: Wording) -> list[str]:
    """What is changed at which time step, and the outcome as observed and under these changes."""
    setting, trajectory = mapping(decision.get("alteration")), mapping(decision.get("trajectory"))
    changes = [_change(name, trajectory, decision, words) for name in setting]
    return changes + _outcome(trajectory, words, changed=bool(setting))


def _change(name: str, trajectory: dict[str, Any], decision: Decided, words: Wording) -> str:
    """What is changed at one time step, each dose with its unit before and after."""
    try:
        step = action_step(name)
    except ValueError:
        return f"{name}."
    before, after = (
        _at(trajectory.get("observed_doses"), step),
        listed(mapping(decision.get("doses")).get(name)),
    )
    levels = _at(trajectory.get("level_doses"), step)
    levels = levels if len(levels) == len(before) else before
    after = after or _at(trajectory.get("doses"), step)
    if not before or len(before) != len(after):
        action = (mapping(decision.get("alteration")) or mapping(effort(decision, "would_set"))).get(name)
        return f"{words.at(step)}: action {shown(action)}."
    parts = []
    for coordinate, (old, level, new) in enumerate(zip(before, levels, after, strict=True)):
        dose = words.dose(coordinate)
        unit = f" {dose.unit}" if dose.unit else ""
        before_text, after_text = (dose.level(value) or shown(value) for value in (old, new))
        parts.append(
            f"{dose.name} stays at {before_text}{unit}"
            if new in (old, level)
            else f"{dose.name} from {before_text} to {after_text}{unit}"
        )
    return f"{words.at(step)}: {', '.join(parts)}."


def _outcome(trajectory: dict[str, Any], words: Wording, *, changed: bool) -> list[str]:
    """The outcome of the episode as observed, and under the changes."""
    before, after = (finite(trajectory.get(key)) for key in ("observed", "value"))
    if before is None or after is None:
        return []
    total = words.total
    if not changed:
        return [f"{total} as observed: {_signed(before, words)}."]
    improvement = finite(trajectory.get("improvement"))
    better = "" if improvement is None else f", {100 * abs(improvement):.1f}% {_way(improvement)}"
    gains = [gain for gain in map(finite, listed(trajectory.get("member_gains"))) if gain is not None]
    models = ""
    if len(gains) > 1:
        low, high = shown(min(gains)), shown(max(gains))
        ends = f"gains of {low} to {high}" if low != high else f"a gain of {low}"
        models = f"; the {len(gains)} models of the ensemble predict {ends}"
    return [
        f"{total}: {_signed(before, words)} as observed, {_signed(after, words)} predicted by the model "
        f"under these changes{better}{models}."
    ]


def _points(trajectory: dict[str, Any], words: Wording) -> list[str]:
    """The outcome with the points that actions score because they are given; empty for other rewards."""
    before, after = (finite(trajectory.get(key)) for key in ("observed", "value"))
    scored = mapping(mapping(trajectory.get("related")).get("with doses"))
    first, second = finite(scored.get("observed")), finite(scored.get("value"))
    if (
        before is None
        or after is None
        or first is None
        or second is None
        or (first, second) == (before, after)
    ):
        return []
    return [
        f"With the points that {words.an_action} scores because it is given: {_signed(first, words)} and "
        f"{_signed(second, words)}; that difference is bookkeeping, not an effect."
    ]


def _truth(decision: Decided, words: Wording) -> list[str]:
    """The true outcome, where a simulation knows it; empty otherwise."""
    score = mapping(decision.get("score"))
    name = counterpart(mapping(decision.get("trajectory")), score)
    if name is None:
        return []
    before, after = (finite(score.get(f"{name}_{end}")) for end in ("observed", "value"))
    if before is None or after is None:
        return []
    return [
        f"The truth, which this simulation knows: {SCORES[name]} {_signed(before, words)} as observed, "
        f"{_signed(after, words)} after this decision."
    ]


def _signed(value: float, words: Wording) -> str:
    return shown(words.sign * value + 0.0)


def _way(improvement: float) -> str:
    return "better" if improvement >= 0 else "worse"


def _at(rows: object, step: int) -> list[Any]:
    """The row of a time step; empty if there is none."""
    every = listed(rows)
    return listed(every[step]) if step < len(every) else []
