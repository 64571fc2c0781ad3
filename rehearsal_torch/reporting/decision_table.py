"""Rehearsal decisions as readable tables: case by case, and summarised by method.

The row of a case holds its context, the alteration, the method's own estimate of the probability of a desired
outcome (no action, or the present values where they are known -> decision, with its interval), the strength
of a hidden common cause that would overturn it, the true probabilities and the largest possible one if the
world knows them, and a note: why nothing is recommended, or warnings. If a certificate bounds both the
posterior mean and the true probability, the two intervals stand below each other, and the head names both.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

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
from rehearsal_torch.spaces.box import setting_text

SHOWN, WIDTH = 10, 110
MAX_NAMES, MAX_SETTINGS = 4, 5


def cases(decisions: Sequence[Decided], title: str, shown: int = SHOWN) -> str:
    """The first decisions, one row per case."""
    some, every = decisions[:shown], [_sentences(one) for one in decisions]
    shared = [text for text in every[0] if all(text in each for each in every)] if len(every) > 1 else []
    weighed = any(sensitivity_of(one) for one in some)
    truth, notes = any(scored_by_world(one) for one in some), any(len(each) > len(shared) for each in every)
    bounds_truth = any(truth_bounds(one) for one in some)
    costs, nets = cost_words.priced(some), cost_words.weighed(some)
    table = Table()
    for head in ("case", "context", "alteration"):
        table.add_column(head, overflow="fold")
    for head in (
        "probability,\nestimated",
        "intervals:\nposterior mean,\ntruth" if bounds_truth else "interval",
        *(["cost"] if costs else []),
        *(["net gain"] if nets else []),
        *(["strength of hidden\ncause to overturn"] if weighed else []),
        *(["probability, true\n(best possible)"] if truth else []),
    ):
        table.add_column(head, justify="right", no_wrap=True)
    if notes:
        table.add_column("note", overflow="fold")
    for one in some:
        line = [
            str(one.get("identity", "")),
            known(one),
            change(one),
            _from_to(before(one), claim(one) if one.get("alteration") is not None else None),
            "\n".join([interval(one), *([truth_interval(one)] if bounds_truth else [])]),
            *([cost_words.cost_cell(one)] if costs else []),
            *([cost_words.gain_cell(one)] if nets else []),
            *([tipping(one)] if weighed else []),
        ]
        if truth:
            score = one.get("score") or {}
            line.append(
                f"{_from_to(score.get('no_action'), score.get('probability'))} "
                f"({figure(score.get('oracle'))})"
            )
        table.add_row(
            *(
                Text(cell)
                for cell in [
                    *line,
                    *(["; ".join(text for text in _sentences(one) if text not in shared)] if notes else []),
                ]
            )
        )
    more = len(decisions) - len(some)
    below = [f"... and {more} more in table.csv"] if more > 0 else []
    below += [f"All cases: {text}" for text in shared]
    below += [text for text in (overall(decisions), graphs_overall(decisions)) if text]
    return "\n".join([title, printed(table), *below])


def methods(found: Mapping[str, MethodSummary], title: str) -> str:
    """Methods, one column each: see `method_rows`."""
    table = Table(title=title, title_justify="left", title_style="")
    table.add_column("")
    for name in found:
        table.add_column(name, justify="right", overflow="fold")
    for line in method_rows(found):
        table.add_row(*line)
    return printed(table)


def method_rows(found: Mapping[str, MethodSummary]) -> list[list[str]]:
    """What is known of methods, a row each: its name, then a cell for each method. Number of cases without
    action, true and claimed probabilities, and coverage of the claimed intervals.
    """
    lines: list[tuple[str, Callable[[MethodSummary], str]]] = [
        ("cases", lambda one: str(one.count)),
        ("cases without action", lambda one: str(one.no_action_count)),
    ]
    if any(one.auf.count for one in found.values()):
        lines += [
            ("true probability of a desired outcome", lambda one: figure(one.auf.mean)),
            ("  95% interval of that mean", lambda one: f"{figure(one.auf.low)} to {figure(one.auf.high)}"),
            ("  with no action", lambda one: figure(one.no_action)),
            ("  best possible", lambda one: figure(one.oracle)),
            ("  share of the possible gain", lambda one: percent(one.share)),
        ]
    lines.append(("estimated probability", lambda one: figure(one.claimed)))
    if any(one.present_count for one in found.values()):
        lines.append(("  where nothing is set, that of", _of_nothing))
    both = any(one.truth.intervals for one in found.values())
    if any(one.intervals for one in found.values()):
        which = "intervals of the posterior mean" if both else "intervals"
        lines.append(
            (f"  {which} that contain the truth", lambda one: f"{percent(one.covered)} of {one.intervals}")
        )
        lines.append(("  their mean width", lambda one: figure(one.width)))
    if both:
        lines += [
            (
                "  intervals of the truth that contain it",
                lambda one: f"{percent(one.truth.covered)} of {one.truth.intervals}",
            ),
            ("  their mean width", lambda one: figure(one.truth.width)),
            ("  one-sided lower bounds that it reaches", lambda one: percent(one.truth.least)),
        ]
    lines.append(
        ("median seconds per decision", lambda one: "-" if math.isnan(one.seconds) else f"{one.seconds:.2g}")
    )
    return [[head, *(cell(one) for one in found.values())] for head, cell in lines]


def _of_nothing(one: MethodSummary) -> str:
    """What the estimates of decisions without an alteration are of."""
    if not one.no_action_count:
        return "-"
    if one.present_count < one.no_action_count:
        return "the present values, or no action" if one.present_count else "no action"
    return "the present values"


def per_decision(decisions: Sequence[Decided], dataset: str, method: str, seed: int) -> list[dict[str, Any]]:
    """One row per decision, with its context and its settings, for CSV."""
    lines = []
    for one in decisions:
        base = row(dataset, method, seed, one)
        given = {f"given/{name}": value for name, value in one["given"].items()}
        setting = {f"set/{name}": value for name, value in (one.get("alteration") or {}).items()}
        own = {
            "before": number(before(one)),
            **({"usual": number(claim(one, of="baseline"))} if "unchanged" in one else {}),
            **{
                f"gain{end}": number(claim(one, part, "gain"))
                for end, part in (("", "point"), ("_lower", "lower"), ("_upper", "upper"))
                if "gain" in one
            },
            **(cost_words.cells(one) if cost_words.priced([one]) else {}),
            **{f"present/{name}": value for name, value in (one.get("present") or {}).items()},
            "share": number((one.get("score") or {}).get("share")),
            "support": number(effort(one, "support")),
            "distance": number(effort(one, "distance")),
        }
        weighed = sensitivity_of(one)
        if weighed is not None:
            own |= {"tipping": weighed.tipping}
            own |= {} if weighed.yardstick is None else {"yardstick": weighed.yardstick}
        weight = effort(one, "indicator_weight")
        if weight is not None:
            own["indicator_weight"] = number(weight)
        lines.append(
            base
            | truth_bounds(one)
            | own
            | given
            | setting
            | {
                "status": one.get("status", ""),
                "declined": one.get("alteration") is None,
                "reason": reason_of(one),
                "warnings": "; ".join(texts_of(one)),
            }
        )
    return lines


def known(one: Decided) -> str:
    """The context of a case, abbreviated."""
    return _pairs(one.get("given") or {}, MAX_NAMES)


def change(one: Decided) -> str:
    """The altered variables and their values; without an alteration "no action" or "refused"."""
    return _pairs(one.get("alteration") or {}, MAX_SETTINGS) or group_of(one)


def interval(one: Decided) -> str:
    """The interval of the estimate; a dash without an alteration or an interval."""
    lower, upper = interval_of(one)
    if one.get("alteration") is None or lower is None or upper is None:
        return "-"
    return f"{figure(lower)} to {figure(upper)}"


def tipping(one: Decided) -> str:
    """The strength of a hidden common cause that would overturn the decision; a dash if it is not known,
    and none where the interval contains no action already.
    """
    found = sensitivity_of(one)
    if found is None:
        return "-"
    return "none" if found.tipping == 1 else factor(found.tipping)


def truth_interval(one: Decided) -> str:
    """The interval for the true probability; a dash without one."""
    found = truth_bounds(one)
    if not found or math.isnan(found["truth_lower"]):
        return "-"
    return f"{figure(found['truth_lower'])} to {figure(found['truth_upper'])}"


def _sentences(one: Decided) -> list[str]:
    """The reason for no action with the alteration it replaces, or the warnings."""
    would = _pairs(effort(one, "would_set") or {}, MAX_SETTINGS)
    parts = (
        reason_of(one),
        f"would have set {would}" if would else "",
        *texts_of(one),
    )
    return [text for text in parts if text]


def figure(value: object) -> str:
    """A probability in three decimals; a dash if there is none."""
    found = number(value)
    return "-" if math.isnan(found) else f"{found:.3f}"


def percent(value: float) -> str:
    """A share in percent; a dash if there is none."""
    return "-" if math.isnan(value) else f"{round(100 * value):d}%"


def printed(table: Table) -> str:
    """A table as plain text."""
    text = StringIO()
    Console(file=text, width=WIDTH, color_system=None, force_terminal=False).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


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
