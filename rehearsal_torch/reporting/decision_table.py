"""Decisions in foresight as tables a person can read: case by case, and summed up for each method.

A line of a case gives what is known of it, what to set to what, how probable a desired outcome becomes by the
method's own estimate (nothing altered -> altered, with the interval), where a world knows it the truth of
both and the largest possible probability, and, in words, why nothing is recommended or what to beware of.
"""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rehearsal_torch.evaluation.recorded_run import Decided, claim, effort
from rehearsal_torch.evaluation.rehearsal_rows import interval_of, number, row, scored_by_world
from rehearsal_torch.evaluation.summaries import MethodSummary
from rehearsal_torch.spaces.box import setting_text

SHOWN, WIDTH = 10, 110
FEW_NAMES, FEW_SETTINGS = 4, 5


def cases(decisions: Sequence[Decided], title: str, shown: int = SHOWN) -> str:
    """The first decisions, a line a case.

    Args:
        decisions: In foresight.
        title: Over the table.
        shown: How many of them at most.
    """
    some, every = decisions[:shown], [_sentences(one) for one in decisions]
    shared = [text for text in every[0] if all(text in each for each in every)] if len(every) > 1 else []
    truth, notes = any(scored_by_world(one) for one in some), any(len(each) > len(shared) for each in every)
    table = Table()
    for head in ("case", "known", "set"):
        table.add_column(head, overflow="fold")
    for head in ("chance,\nas claimed", "interval", *(["chance, true\n(best possible)"] if truth else [])):
        table.add_column(head, justify="right", no_wrap=True)
    if notes:
        table.add_column("note", overflow="fold")
    for one in some:
        line = [
            str(one.get("identity", "")),
            known(one),
            change(one),
            _from_to(claim(one, of="baseline"), claim(one) if one.get("alteration") is not None else None),
            interval(one),
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
    return "\n".join([title, printed(table), *below])


def methods(found: Mapping[str, MethodSummary], title: str) -> str:
    """Methods, a column each: how often they declined, what was reached and claimed, and whether the
    intervals hold.
    """
    lines: list[tuple[str, Callable[[MethodSummary], str]]] = [
        ("cases", lambda one: str(one.count)),
        ("nothing altered in", lambda one: str(one.no_action_count)),
    ]
    if any(one.auf.count for one in found.values()):
        lines += [
            ("true probability of a desired outcome", lambda one: figure(one.auf.mean)),
            ("  95% interval of that mean", lambda one: f"{figure(one.auf.low)} to {figure(one.auf.high)}"),
            ("  with nothing altered", lambda one: figure(one.no_action)),
            ("  best possible", lambda one: figure(one.oracle)),
            ("  share of the possible gain", lambda one: percent(one.share)),
        ]
    lines.append(("probability claimed", lambda one: figure(one.claimed)))
    if any(one.intervals for one in found.values()):
        lines.append(
            ("  claimed intervals that hold", lambda one: f"{percent(one.covered)} of {one.intervals}")
        )
        lines.append(("  their mean width", lambda one: figure(one.width)))
    lines.append(
        ("median seconds a decision", lambda one: "-" if math.isnan(one.seconds) else f"{one.seconds:.2g}")
    )
    table = Table(title=title, title_justify="left", title_style="")
    table.add_column("")
    for name in found:
        table.add_column(name, justify="right", overflow="fold")
    for head, cell in lines:
        table.add_row(head, *(cell(one) for one in found.values()))
    return printed(table)


def per_decision(decisions: Sequence[Decided], dataset: str, method: str, seed: int) -> list[dict[str, Any]]:
    """A row for each decision, with all that was known and set, for CSV."""
    lines = []
    for one in decisions:
        base = row(dataset, method, seed, one)
        given = {f"given/{name}": value for name, value in one["given"].items()}
        setting = {f"set/{name}": value for name, value in (one.get("alteration") or {}).items()}
        own = {
            "before": number(claim(one, of="baseline")),
            "share": number((one.get("score") or {}).get("share")),
            "support": number(effort(one, "support")),
        }
        lines.append(
            base
            | own
            | given
            | setting
            | {
                "status": one.get("status", ""),
                "declined": one.get("alteration") is None,
                "reason": one.get("reason", ""),
                "warnings": "; ".join(one.get("warnings") or ()),
            }
        )
    return lines


def with_all_columns(lines: Sequence[Mapping[str, Any]]) -> str:
    """Rows with different columns as one CSV, numbers in full, what is missing left empty."""
    columns = list(dict.fromkeys(name for line in lines for name in line))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: "" if isinstance(value, float) and math.isnan(value) else value for key, value in line.items()}
        for line in lines
    )
    return text.getvalue()


def known(one: Decided) -> str:
    """What is known of a case, in short."""
    return _pairs(one.get("given") or {}, FEW_NAMES)


def change(one: Decided) -> str:
    """What to set to what, or that nothing is altered: by choice, or because the method refused."""
    return _pairs(one.get("alteration") or {}, FEW_SETTINGS) or str(one.get("status", "-")).replace("_", " ")


def interval(one: Decided) -> str:
    """The interval of the claim, where something is altered and the method has one."""
    lower, upper = interval_of(one)
    if one.get("alteration") is None or lower is None or upper is None:
        return "-"
    return f"{figure(lower)} to {figure(upper)}"


def note(one: Decided) -> str:
    """Why nothing is altered and what would have been, or what to beware of."""
    return "; ".join(_sentences(one))


def _sentences(one: Decided) -> list[str]:
    would = _pairs(effort(one, "would_set") or {}, FEW_SETTINGS)
    parts = (str(one.get("reason") or ""), f"else: {would}" if would else "", *(one.get("warnings") or ()))
    return [text for text in parts if text]


def figure(value: object) -> str:
    """A probability in three decimals; a dash for none."""
    found = number(value)
    return "-" if math.isnan(found) else f"{found:.3f}"


def percent(value: float) -> str:
    """A share in percent; a dash for none."""
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


def _pairs(values: Mapping[str, Any], few: int) -> str:
    """Name and value of the first few; how many more there are."""
    shown = [
        f"{name}={setting_text(value)}" if isinstance(value, float | int) else f"{name}={value}"
        for name, value in values.items()
    ]
    more = [f"+{len(shown) - few} more"] if len(shown) > few + 1 else []
    return ", ".join([*(shown[:few] if more else shown), *more])
