"""Sentences on recorded decisions: the macros of ``templates/sentences.txt`` over the fields of `views`."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from rehearsal_torch.data.estimate import CHANCE, Intervals, alike, in_words, is_chance, percents
from rehearsal_torch.data.finding import findings_of, in_place, texts_of
from rehearsal_torch.evaluation.run_record import Decided, claim
from rehearsal_torch.evaluation.run_record import before as compared_with
from rehearsal_torch.reporting.decision_frame import counts_of, doubts, in_all, overall_of
from rehearsal_torch.reporting.labels import Wording
from rehearsal_torch.reporting.page.html import sentence, sentences
from rehearsal_torch.reporting.page.page_content import Material, finite
from rehearsal_torch.reporting.page.views import (
    NO_UNITS,
    Units,
    case_of,
    changes_of,
    episode_of,
    named_values,
    trials_of,
)

# With more cases than these, a sentence on all of them comes first.
SEVERAL = 5


def headline(decision: Decided, units: Units = NO_UNITS) -> str:
    """The recommendation of a case in one sentence; it may help where the gain is not told from zero."""
    return sentence("headline", case_of(decision, units))


def settings(setting: Mapping[str, Any], word: str = "to", units: Units = NO_UNITS) -> str:
    """Settings in words: ``rate to 0.3 % and term to 12 months``."""
    return sentence("settings", named_values(setting, units), word)


def changes(setting: Mapping[str, Any], present: Mapping[str, Any], units: Units) -> str:
    """What is set: ``lower rate from 7.1 to 5.4 % and set term to 12 months``."""
    return sentence("changes", changes_of(setting, present, units))


def chances(decision: Decided, wanted: str = "") -> list[str]:
    """The estimated chance before and after, with its interval, also of a rejected alteration; costs, where
    they are known. Where the decision lies outside the data, that reason in place of all.
    """
    return sentences("chances", case_of(decision, wanted=wanted))


def overall(decisions: Sequence[Decided], wanted: str = "") -> str:
    """All cases in one sentence: the mean chances without and with the decisions, or, where the gain has no
    draws, of the recommended alterations of many cases. A warning of a model not to act on alone is first.
    """
    texts = doubts(map(findings_of, decisions))
    total = overall_of(decisions) if len(decisions) > 1 else None
    several = len(decisions) > SEVERAL
    summary = average(decisions, wanted) if several and total is None else ""
    summary = summary if total is None else in_all(total, wanted, counts_of(decisions))
    return " ".join([*texts, *([summary] if summary else [])])


def average(decisions: Sequence[Decided], wanted: str) -> str:
    """How many cases have a recommendation, and the mean estimates of those within the data."""
    recommended = [decision for decision in decisions if decision.get("alteration") is not None]
    inside = [decision for decision in recommended if not in_place(findings_of(decision))]
    noun, trend, ends = "", "", ["", ""]
    if pair := mean_ends(inside):
        measure = str(claim(recommended[0], "of") or CHANCE)
        chance, fine = is_chance(measure), alike(*pair)
        number = Intervals().chance if chance else Intervals().plain
        noun, ends = in_words(measure, wanted), [number(value, fine=fine) for value in pair]
        texts = [percents([value], True) for value in pair]
        trend = "stays" if texts[0] == texts[1] else "rises" if pair[1] > pair[0] else "falls"
    return sentence("average", len(recommended), len(decisions), len(inside), noun, trend, *ends)


def mean_ends(decisions: Sequence[Decided]) -> tuple[float, float] | None:
    """The mean estimates before and after; None unless all decisions have both."""
    pairs = [(finite(compared_with(decision)), finite(claim(decision))) for decision in decisions]
    numbers = [(before, after) for before, after in pairs if before is not None and after is not None]
    if not numbers or len(numbers) < len(decisions):
        return None
    return fmean(before for before, _ in numbers), fmean(after for _, after in numbers)


def said_of_episode(decision: Decided, words: Wording) -> tuple[str, str, list[str]]:
    """Title, headline and sentences of a decision with a trajectory."""
    episode = episode_of(decision, words)
    texts = [*sentences("episode_answer", episode, words), *sentences("episode_further", episode, words)]
    return episode.title, sentence("episode_headline", episode), texts + _warnings(decision)


def said_of_trials(report: Material) -> tuple[str, str, list[str]]:
    """Title, headline and sentences of the last decision of a run of trials. The headline is the next
    experiment, where experiments are run elsewhere; in a simulated world the action to keep.
    """
    trials = trials_of(report)
    texts = [*sentences("trials_purpose", trials), *sentences("trials_reward", trials)]
    texts += sentences("trials_beside", trials)
    title, lead = (sentence(name, trials) for name in ("trials_title", "trials_headline"))
    return title, lead, texts + _warnings(report.run.decisions[-1])


def _warnings(decision: Decided) -> list[str]:
    return [f"Warning: {text}." for text in texts_of(decision)]
