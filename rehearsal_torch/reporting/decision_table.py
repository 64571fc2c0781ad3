"""Rehearsal decisions as readable tables: case by case, and summarised by method.

The row of a case holds its context, the alteration, the method's own estimate of the probability of a desired
outcome (no action, or the present values where they are known -> decision, with its interval), the strength
of a hidden common cause that would overturn it, the true probabilities and the largest possible one if the
world knows them, and a note: why nothing is recommended, or warnings. If a certificate bounds both the
posterior mean and the true probability, the two intervals stand below each other, and the head names both.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rehearsal_torch.data.finding import reason_of, texts_of
from rehearsal_torch.data.sensitivity import factor
from rehearsal_torch.evaluation.overturning import graphs_overall, overall, sensitivity_of
from rehearsal_torch.evaluation.recorded_run import Decided, before, claim, effort, group_of
from rehearsal_torch.evaluation.rehearsal_rows import (
    interval_of,
    number,
    row,
    scored_by_world,
    truth_bounds,
)
from rehearsal_torch.evaluation.summaries import MethodSummary
from rehearsal_torch.reporting import cost_words
from rehearsal_torch.reporting.text_table import text_table
from rehearsal_torch.spaces.box import setting_text

SHOWN = 10
MAX_NAMES, MAX_SETTINGS = 4, 5


def cases(decisions: Sequence[Decided], title: str) -> str:
    """The first decisions, one row per case."""
    shown, every = decisions[:SHOWN], [_sentences(decision) for decision in decisions]
    shared = [text for text in every[0] if all(text in other for other in every)] if len(every) > 1 else []
    truth = any(map(scored_by_world, shown))
    notes = any(len(sentences) > len(shared) for sentences in every)
    bounded = any(map(truth_bounds, shown))
    columns: list[tuple[str, Callable[[Decided], str]]] = [
        ("case", lambda decision: str(decision.get("identity", ""))),
        ("context", known),
        ("alteration", change),
        ("probability,\nestimated", _estimated),
        ("intervals:\nposterior mean,\ntruth", _both_intervals) if bounded else ("interval", interval),
    ]
    columns += [("cost", cost_words.cost_cell)] if cost_words.priced(shown) else []
    columns += [("net gain", cost_words.gain_cell)] if cost_words.weighed(shown) else []
    if any(sensitivity_of(decision) for decision in shown):
        columns.append(("strength of hidden\ncause to overturn", tipping))
    columns += [("probability, true\n(best possible)", _true)] if truth else []
    words = [0, 1, 2]
    if notes:
        words.append(len(columns))
        columns.append(
            ("note", lambda decision: "; ".join(text for text in _sentences(decision) if text not in shared))
        )
    rows = [[cell(decision) for _, cell in columns] for decision in shown]
    table = text_table([head for head, _ in columns], rows, texts=words, folds=words)
    more = len(decisions) - len(shown)
    below = [f"... and {more} more in table.csv"] if more > 0 else []
    below += [f"All cases: {text}" for text in shared]
    below += [text for text in (overall(decisions), graphs_overall(decisions)) if text]
    return "\n".join([title, table, *below])


def methods(summaries: Mapping[str, MethodSummary], title: str) -> str:
    """Methods, one column each: see `method_rows`."""
    return text_table(["", *summaries], method_rows(summaries), title)


def method_rows(summaries: Mapping[str, MethodSummary]) -> list[list[str]]:
    """What is known of methods, a row each: its name, then a cell for each method. Number of cases without
    action, true and claimed probabilities, and coverage of the claimed intervals.
    """
    lines: list[tuple[str, Callable[[MethodSummary], str]]] = [
        ("cases", lambda summary: str(summary.count)),
        ("cases without action", lambda summary: str(summary.no_action_count)),
    ]
    if any(summary.auf.count for summary in summaries.values()):
        lines += [
            ("true probability of a desired outcome", lambda summary: figure(summary.auf.mean)),
            (
                "  95% interval of that mean",
                lambda summary: f"{figure(summary.auf.low)} to {figure(summary.auf.high)}",
            ),
            ("  with no action", lambda summary: figure(summary.no_action)),
            ("  best possible", lambda summary: figure(summary.oracle)),
            ("  share of the possible gain", lambda summary: percent(summary.share)),
        ]
    lines.append(("estimated probability", lambda summary: figure(summary.claimed)))
    if any(summary.present_count for summary in summaries.values()):
        lines.append(("  where nothing is set, that of", _of_nothing))
    both = any(summary.truth.intervals for summary in summaries.values())
    if any(summary.intervals for summary in summaries.values()):
        which = "intervals of the posterior mean" if both else "intervals"
        lines.append(
            (
                f"  {which} that contain the truth",
                lambda summary: f"{percent(summary.covered)} of {summary.intervals}",
            )
        )
        lines.append(("  their mean width", lambda summary: figure(summary.width)))
    if both:
        lines += [
            (
                "  intervals of the truth that contain it",
                lambda summary: f"{percent(summary.truth.covered)} of {summary.truth.intervals}",
            ),
            ("  their mean width", lambda summary: figure(summary.truth.width)),
            ("  one-sided lower bounds that it reaches", lambda summary: percent(summary.truth.least)),
        ]
    lines.append(
        (
            "median seconds per decision",
            lambda summary: "-" if math.isnan(summary.seconds) else f"{summary.seconds:.2g}",
        )
    )
    return [[head, *(cell(summary) for summary in summaries.values())] for head, cell in lines]


def _of_nothing(summary: MethodSummary) -> str:
    """What the estimates of decisions without an alteration are of."""
    if not summary.no_action_count:
        return "-"
    if summary.present_count < summary.no_action_count:
        return "the present values, or no action" if summary.present_count else "no action"
    return "the present values"


def per_decision(decisions: Sequence[Decided], dataset: str, method: str, seed: int) -> list[dict[str, Any]]:
    """One row per decision, with its context and its settings, for CSV."""
    lines = []
    for decision in decisions:
        base = row(dataset, method, seed, decision)
        given = {f"given/{name}": value for name, value in decision["given"].items()}
        setting = {f"set/{name}": value for name, value in (decision.get("alteration") or {}).items()}
        own = {
            "before": number(before(decision)),
            **({"usual": number(claim(decision, of="baseline"))} if "unchanged" in decision else {}),
            **{
                f"gain{end}": number(claim(decision, part, "gain"))
                for end, part in (("", "point"), ("_lower", "lower"), ("_upper", "upper"))
                if "gain" in decision
            },
            **(cost_words.cells(decision) if cost_words.priced([decision]) else {}),
            **{f"present/{name}": value for name, value in (decision.get("present") or {}).items()},
            "share": number((decision.get("score") or {}).get("share")),
            "support": number(effort(decision, "support")),
            "distance": number(effort(decision, "distance")),
        }
        weighed = sensitivity_of(decision)
        if weighed is not None:
            own |= {"tipping": weighed.tipping}
            own |= {} if weighed.yardstick is None else {"yardstick": weighed.yardstick}
        weight = effort(decision, "indicator_weight")
        if weight is not None:
            own["indicator_weight"] = number(weight)
        lines.append(
            base
            | truth_bounds(decision)
            | own
            | given
            | setting
            | {
                "status": decision.get("status", ""),
                "declined": decision.get("alteration") is None,
                "reason": reason_of(decision),
                "warnings": "; ".join(texts_of(decision)),
            }
        )
    return lines


def known(decision: Decided) -> str:
    """The context of a case, abbreviated."""
    return _pairs(decision.get("given") or {}, MAX_NAMES)


def change(decision: Decided) -> str:
    """The altered variables and their values; without an alteration "no action" or "refused"."""
    return _pairs(decision.get("alteration") or {}, MAX_SETTINGS) or group_of(decision)


def interval(decision: Decided) -> str:
    """The interval of the estimate; a dash without an alteration or an interval."""
    lower, upper = interval_of(decision)
    if decision.get("alteration") is None or lower is None or upper is None:
        return "-"
    return f"{figure(lower)} to {figure(upper)}"


def tipping(decision: Decided) -> str:
    """The strength of a hidden common cause that would overturn the decision; a dash if it is not known,
    and none where the interval contains no action already.
    """
    sensitivity = sensitivity_of(decision)
    if sensitivity is None:
        return "-"
    return "none" if sensitivity.tipping == 1 else factor(sensitivity.tipping)


def truth_interval(decision: Decided) -> str:
    """The interval for the true probability; a dash without one."""
    bounds = truth_bounds(decision)
    if not bounds or math.isnan(bounds["truth_lower"]):
        return "-"
    return f"{figure(bounds['truth_lower'])} to {figure(bounds['truth_upper'])}"


def _sentences(decision: Decided) -> list[str]:
    """The reason for no action with the alteration it replaces, or the warnings."""
    would = _pairs(effort(decision, "would_set") or {}, MAX_SETTINGS)
    parts = (
        reason_of(decision),
        f"would have set {would}" if would else "",
        *texts_of(decision),
    )
    return [text for text in parts if text]


def figure(value: object) -> str:
    """A probability in three decimals; a dash if there is none."""
    probability = number(value)
    return "-" if math.isnan(probability) else f"{probability:.3f}"


def percent(value: float) -> str:
    """A share in percent; a dash if there is none."""
    return "-" if math.isnan(value) else f"{round(100 * value):d}%"


def _estimated(decision: Decided) -> str:
    return _from_to(before(decision), claim(decision) if decision.get("alteration") is not None else None)


def _both_intervals(decision: Decided) -> str:
    return f"{interval(decision)}\n{truth_interval(decision)}"


def _true(decision: Decided) -> str:
    score = decision.get("score") or {}
    best = figure(score.get("oracle"))
    return f"{_from_to(score.get('no_action'), score.get('probability'))} ({best})"


def _from_to(before: object, after: object) -> str:
    if math.isnan(number(after)):
        return figure(before)
    return f"{figure(before)} -> {figure(after)}"


def _pairs(values: Mapping[str, Any], limit: int) -> str:
    """Names and values of the first `limit` entries, and how many more there are."""
    shown = [
        f"{name}={setting_text(value)}" if isinstance(value, float | int) else f"{name}={value}"
        for name, value in values.items()
    ]
    more = [f"+{len(shown) - limit} more"] if len(shown) > limit + 1 else []
    return ", ".join([*(shown[:limit] if more else shown), *more])
