"""What a run of trials recommends, in sentences: the action to keep, its predicted reward, the next trial."""

from rehearsal_torch.evaluation.recorded_run import claim, effort
from rehearsal_torch.evaluation.trial_rows import scored
from rehearsal_torch.reporting.page.material import Material, counted, finite, mapping, named, shown
from rehearsal_torch.reporting.page.probability_sentences import settings
from rehearsal_torch.reporting.trial_report import kept


def said_of_trials(of: Material) -> tuple[str, str, list[str]]:
    """Title, headline and sentences of the last decision of a run."""
    last, count = of.run.decisions[-1], len(of.run.decisions)
    kept_setting, tried = mapping(kept(last)), mapping(last.get("alteration"))
    headline = f"Keep {settings(kept_setting, 'at')}." if kept_setting else "Nothing is recommended."
    said = [*_predicted(of), *_runner_up(of), *_before(of)]
    if last.get("reward") is None and tried:
        same = "the same setting" if tried == kept_setting else settings(tried, "at")
        said.append(f"To try next, which may teach more than keeping: {same}.")
    if not kept_setting and last.get("reason"):
        said.append(f"Why: {last['reason']}.")
    said += [f"Warning: {text}." for text in last.get("warnings") or ()]
    return f"Recommendation after {counted(count, 'decision')}", headline, said


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
    said = [f"Predicted reward of this setting: {shown(point)}{ends}."]
    if lower is not None:
        said.append(
            "The interval covers what is not known of the mechanisms, not the noise of a single experiment "
            "and not a wrong graph; in simulated systems it held the truth in some four of five cases."
        )
    return said


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
        f"The best other setting that was tried is {settings(setting, 'at')}, with a predicted reward of "
        f"{shown(predicted)}; the claimed probability that the one to keep is better is {sure}."
    ]


def _before(of: Material) -> list[str]:
    """The best reward before: observed in a system of one's own, or known by a world."""
    best, place = finite(of.card.get("best reward so far")), mapping(of.card.get("at"))
    if best is not None:
        where = f", at {named(place)}" if place else ""
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
