"""What a run of trials recommends, in sentences: the next experiment, and the action to keep."""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.data.finding import reason_of, texts_of
from rehearsal_torch.evaluation.recorded_run import Decided, claim, effort
from rehearsal_torch.evaluation.trial_rows import scored
from rehearsal_torch.reporting.page.material import Material, counted, finite, mapping, named, shown
from rehearsal_torch.reporting.page.probability_sentences import settings
from rehearsal_torch.reporting.trial_report import kept


def said_of_trials(of: Material) -> tuple[str, str, list[str]]:
    """Title, headline and sentences of the last decision of a run.

    In a system of one's own, whose experiments are run elsewhere, the headline is the next experiment; in a
    simulated world it is the action to keep.
    """
    last, count = of.run.decisions[-1], len(of.run.decisions)
    kept_setting, tried = mapping(kept(last)), mapping(last.get("alteration"))
    keep = f"Keep {_at(kept_setting, of)}." if kept_setting else "Nothing is recommended."
    sentences = [*_predicted(of), *_runner_up(of), *_before(of)]
    title, headline = f"Recommendation after {counted(count, 'decision')}", keep
    if proposes(last):
        name = str(last.get("identity") or "")
        title = f"{name[:1].upper()}{name[1:]}" if name else "Next experiment"
        headline = f"Try {_at(tried, of)}."
        if tried == kept_setting:
            sentences = ["It is also the setting to keep, if you had to stop now.", *sentences]
        else:
            sentences = [*_next(of), f"To keep, if you had to stop now: {_at(kept_setting, of)}.", *sentences]
    elif last.get("reward") is None and kept_setting and reason_of(last):
        title, headline = "Next experiment", "There is nothing to try before further results are known."
        sentences = [f"To keep, if you had to stop now: {_at(kept_setting, of)}.", *sentences]
    if not tried and (reason := reason_of(last)):
        sentences.append(f"Why: {reason}.")
    sentences += [f"Warning: {text}." for text in texts_of(last)]
    return title, headline, sentences


def proposes(last: Decided) -> bool:
    """Whether a decision is an experiment that is yet to be run."""
    return last.get("reward") is None and bool(last.get("alteration"))


def _at(setting: Mapping[str, Any], of: Material) -> str:
    """A setting in words, with units where they are known."""
    return settings(setting, "at", of.units) or "nothing"


def _next(of: Material) -> list[str]:
    """What the next experiment is for."""
    predicted = finite(effort(of.run.decisions[-1], "predicted_reward"))
    what = "" if predicted is None else f"Its predicted reward is {shown(predicted)}: it"
    return [f"{what or 'It'} is chosen for what it may bring, or teach, not as the best known setting."]


def _predicted(of: Material) -> list[str]:
    """The predicted reward of the action to keep, with its interval if one was recorded."""
    last = of.run.decisions[-1]
    point = finite(claim(last))
    if point is None:
        return []
    lower, upper, level = (finite(claim(last, part)) for part in ("lower", "upper", "level"))
    ends = (
        "; the run recorded no interval for it"
        if lower is None or upper is None
        else f" ({'' if level is None else f'{100 * level:g}% '}interval {shown(lower)} to {shown(upper)})"
    )
    sentences = [f"Predicted reward of this setting: {shown(point)}{ends}."]
    if lower is not None:
        sentences.append(
            "The interval covers what is not known of the mechanisms, not the noise of a single experiment "
            "and not a wrong graph; in simulated systems it held the truth in some four of five cases."
        )
    return sentences


def _runner_up(of: Material) -> list[str]:
    """The best other setting that was tried, and the chance that the one to keep is better."""
    beside = mapping(effort(of.run.decisions[-1], "runner_up"))
    setting, predicted, chance = (
        mapping(beside.get("action")),
        finite(beside.get("predicted")),
        finite(beside.get("chance")),
    )
    if not setting or predicted is None or chance is None:
        return []
    sure = f"{100 * chance:.0f}%" if 0.01 <= chance <= 0.99 else "below 1%" if chance < 0.5 else "above 99%"
    return [
        f"The best other setting that was tried is {_at(setting, of)}, with a predicted reward of "
        f"{shown(predicted)}; the claimed probability that the one to keep is better is {sure}."
    ]


def _before(of: Material) -> list[str]:
    """The best reward before: observed in a system of one's own, or known by a world."""
    best, setting = finite(of.card.get("best reward so far")), mapping(of.card.get("at"))
    if best is not None:
        where = f", at {named(setting)}" if setting else ""
        return [f"Largest reward that was observed in the experiments so far: {shown(best)}{where}."]
    last = of.run.decisions[-1]
    if not scored(last):
        return []
    score = last["score"]
    return [
        f"The truth, which this simulated world knows: this setting has an expected reward of "
        f"{shown(score['recommended'])}, "
        f"the best of the start design has {shown(score['start'])}, the best possible "
        f"{shown(score['optimum'])}."
    ]
