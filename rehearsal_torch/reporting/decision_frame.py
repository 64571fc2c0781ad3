"""Data frame of decisions, one row per case, with its summary and its HTML for notebooks.

    case               the name of the case
    status             do, may or leave
    set/NAME           the value to set, NaN where the variable is left alone
    estimate           the estimate after the decision: with the alteration, or, where nothing is set, for no
                       action or for leaving the present values as they are
    lower, upper       the interval of the estimate, and
    level              its coverage probability; NaN where there is none
    no_action          the estimate for no action
    present/NAME       where cases have present values of actions: these,
    unchanged          the estimate if they stay, for the variables that the decision sets, and
    gain, gain_lower,  the difference to it, with its interval
    gain_upper
    cost               where actions have costs: that of the alteration, 0 where nothing is altered,
    net_value,         the worth of a desired outcome times its probability, minus the cost, and
    net_gain           the same minus that of changing nothing, each with _lower and _upper; NaN without worth
    warnings, reason   sentences, separated by "; ", and
    findings,          their kinds (`data.finding`)
    reason_kind
    given/NAME         the context of the case

A variable that has texts has these in its columns. The names of context and actions have a prefix, as in a
run's table.csv, so that no variable's name can hide another column. In HTML, everything that comes from the
data, names of variables included, is escaped: a table may hold columns called ``<script>``.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from html import escape
from itertools import chain
from types import MappingProxyType
from typing import Any

import pandas as pd

from rehearsal_torch.data.estimate import CHANCE, Intervals, alike, decimals, ends_of, in_words, is_chance
from rehearsal_torch.data.finding import (
    MISFITS,
    NOTHING_BETTER,
    OUTSIDE,
    Finding,
    doubted,
    findings_of,
    reason_of,
    texts_of,
    undecided,
)
from rehearsal_torch.data.mean_gain import Answer, GainDraws, Overall, overall
from rehearsal_torch.evaluation.claim_rows import number
from rehearsal_torch.evaluation.run_record import ACTS, NOTHING, REFUSED, Decided, before, claim
from rehearsal_torch.spaces.box import setting_text

GIVEN, SET, PRESENT = "given/", "set/", "present/"
NO_COUNTS: Mapping[str, int] = MappingProxyType({})
# Decisions, and characters of their notes, in HTML, at most.
SHOWN, LONGEST = 10, 160


def decision_frame(
    lines: Sequence[Decided], actions: Sequence[str] = (), index: pd.Index | None = None
) -> pd.DataFrame:
    """One row per decision: lines with the facts of each case, as in ``decisions.jsonl``. `actions` have a
    column even if no decision sets them; an `index` of None numbers the rows from 0.
    """
    settable = dict.fromkeys([*actions, *(name for line in lines for name in line.get("alteration") or {})])
    context_names = dict.fromkeys(name for line in lines for name in line.get("given") or {})
    present_names = dict.fromkeys(name for line in lines for name in line.get("present") or {})
    has_costs = priced(lines)
    # Without present values, only cross-fitted claims have a gain, over no action.
    has_gain = bool(present_names) or any("gain" in line for line in lines)

    def row(line: Decided) -> dict[str, Any]:
        setting, present, given = (line.get(key) or {} for key in ("alteration", "present", "given"))
        ends = {part: number(claim(line, part)) for part in ("lower", "upper", "level")}
        cells: dict[str, Any] = {"case": str(line.get("identity", "")), "status": line.get("status", "")}
        cells |= {f"{SET}{name}": _cell(setting.get(name)) for name in settable}
        cells["estimate"] = number(claim(line) if setting else before(line))
        cells |= ends if setting else dict.fromkeys(ends, math.nan)
        cells["no_action"] = number(claim(line, of="baseline"))
        if present_names:
            cells |= {f"{PRESENT}{name}": _cell(present.get(name)) for name in present_names}
            cells["unchanged"] = number(claim(line, of="unchanged"))
        cells |= gain_cells(line) if has_gain else {}
        cells |= cost_cells(line) if has_costs else {}
        return cells | {
            "warnings": "; ".join(texts_of(line)),
            "reason": reason_of(line),
            "findings": "; ".join(finding["kind"] for finding in line.get("findings") or ()),
            "reason_kind": (line.get("reason") or {}).get("kind", ""),
            **{f"{GIVEN}{name}": _cell(given.get(name)) for name in context_names},
        }

    return pd.DataFrame(list(map(row, lines)), columns=list(row({})), index=index)


def _cell(value: object) -> Any:
    return value if isinstance(value, str) else number(value)


def quantity(lines: Sequence[Decided]) -> str:
    """The quantity that is estimated, in words; "value" if no decision has an estimate."""
    quantities = (claim(line, "of", part) for line in lines for part in ("estimate", "baseline"))
    return next((str(name) for name in quantities if name), "value")


def beyond(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Whether each decision lies outside the data, so that sentences and figures have no number for it."""
    outside = [bool(set(OUTSIDE) & set(kinds.split("; "))) for kinds in frame["findings"]]
    return pd.Series(outside, index=frame.index, dtype=bool)


def refused(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Whether the method cannot tell what to do, by case."""
    decided = frame["reason_kind"].isin(("", *NOTHING_BETTER))
    return (frame["status"] == "leave") & ~decided


def summary(frame: pd.DataFrame, of: str, wanted: str = "") -> str:
    """One sentence on a `decision_frame`: how many cases have which status, and the mean estimates of those
    within the data. `of` names the estimated quantity, `wanted` the desired region (empty if too long).
    """
    acts, refusals = frame["status"] != "leave", refused(frame)
    counts = {ACTS: acts.sum(), NOTHING: (~acts & ~refusals).sum(), REFUSED: refusals.sum()}
    parts = [f"{words} in {count}" for words, count in counts.items() if count]
    sentence = f"{len(frame)} case{'' if len(frame) == 1 else 's'}: {', '.join(parts) or 'none'}."
    inside = frame[acts & ~beyond(frame)]
    if acts.any() and inside.empty:
        return f"{sentence} Where one is recommended, it lies outside the data."
    after, before = inside["estimate"].mean(), inside["no_action"].mean()
    if math.isnan(after):
        return sentence
    reference = "no action"
    if "unchanged" in inside and not inside["unchanged"].isna().any():
        before, reference = inside["unchanged"].mean(), "the present values"
    intervals, fine = Intervals(), alike(before, after)
    number = intervals.chance if is_chance(of) else intervals.plain
    comparison = "" if math.isnan(before) else f", {number(before, fine=fine)} with {reference}"
    scope = "" if len(inside) == acts.sum() else " within the data"
    estimate = f"the estimated {in_words(of, wanted)} is {number(after, fine=fine)} on average{comparison}."
    return f"{sentence} Where one is recommended{scope}, {estimate}{_average_cost(inside)}"


def overall_of(lines: Sequence[Decided]) -> Overall | None:
    """Recorded decisions in all cases together; None where their gain has no draws."""
    return overall(list(map(_answer, lines)))


def _answer(line: Decided) -> Answer:
    draws, reference = line.get("draws"), number(before(line))
    return Answer(
        line["status"],
        tuple(line.get("alteration") or ()),
        None if math.isnan(reference) else reference,
        doubted(findings_of(line), bool(draws and draws["untouched"])),
        GainDraws.of(draws) if draws else None,
    )


def doubts(decisions: Iterable[Iterable[Finding]]) -> list[str]:
    """Warnings that come first, by the findings of each decision: that a model is not one to act on alone,
    and that what is compared with is not what cases have now.
    """
    cases = list(map(tuple, decisions))
    misfits = dict.fromkeys(finding.text for finding in chain(*cases) if finding.kind in MISFITS)
    texts = [f"{text[0].upper()}{text[1:]}." for text in misfits]
    unused = sum(any("unused" in finding.numbers for finding in findings) for findings in cases)
    if unused:
        texts.append(
            f"In {unused} of {len(cases)} case{'s' * (len(cases) > 1)}, before and after are those of a case "
            "that is usual in the actions that are not set, not of one with their present values: offer "
            "these actions in one set (candidates), or make those that stay context."
        )
    return texts


def counts_of(lines: Sequence[Decided]) -> Counter[str]:
    """How many recorded decisions are do, may and leave, and in how many cases the method cannot tell."""
    return Counter("cannot tell" if undecided(line) else line["status"] for line in lines)


def in_all(whole: Overall, wanted: str = "", counts: Mapping[str, int] = NO_COUNTS) -> str:
    """All cases together in one sentence: the mean chances without and with the decisions; counts."""
    gain, intervals = whole.gain, Intervals()
    ends = ends_of(gain)
    fine = decimals([whole.before], [whole.after], [gain.point, *(ends or ())])
    before, after = (intervals.chance(value, fine=fine) for value in (whole.before, whole.after))
    order = ("do", "may", "leave", "cannot tell")
    statuses = ", ".join(f"{status} in {counts[status]}" for status in order if counts.get(status))
    several = "both" if whole.cases == 2 else f"all {whole.cases}"
    scope = f"In {several} cases together" if whole.cases > 1 else "In this case"
    verb = "rises" if gain.point > 0 else "falls" if gain.point < 0 else "goes"
    counted = f" ({statuses})" if statuses else ""
    return (
        f"{scope}{counted}, the estimated {in_words(CHANCE, wanted)} {verb} from {before} to {after} on "
        f"average: {intervals.difference(gain.point, ends, gain.level, fine)}."
    )


def decision_html(frame: pd.DataFrame, sentences: Sequence[str]) -> str:
    """HTML of sentences above a table of the first decisions of a `decision_frame`."""
    actions = [name for name in frame.columns if name.startswith(SET)]
    heads = ["case", "status", *(name.removeprefix(SET) for name in actions)]
    has_present = "unchanged" in frame.columns
    heads += ["claimed", "interval", *(["present values"] if has_present else []), "no action", "notes"]
    head_rows = frame.head(SHOWN)
    rows = [
        [
            str(row["case"]),
            str(row["status"]),
            *(row[name] if isinstance(row[name], str) else _number(row[name]) for name in actions),
            _number(row["estimate"]),
            "" if math.isnan(row["lower"]) else f"{row['lower']:.3g} to {row['upper']:.3g}",
            *([_number(row["unchanged"])] if has_present else []),
            _number(row["no_action"]),
            _notes(row),
        ]
        for row in head_rows.to_dict("records")
    ]
    more = len(frame) - len(head_rows)
    below = [f"... and {more} more: to_frame() has all of them"] if more else []
    before, after = ("".join(f"<p>{escape(text)}</p>" for text in texts) for texts in (sentences, below))
    return f"<div>{before}{table_html(heads, rows)}{after}</div>"


def table_html(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of plain texts."""
    head = "".join(f"<th>{escape(head)}</th>" for head in heads)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _number(value: float) -> str:
    return "" if math.isnan(value) else setting_text(value)


def _notes(row: Mapping[Hashable, Any]) -> str:
    text = "; ".join(str(row[name]) for name in ("reason", "warnings") if row[name])
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rsplit(' ', 1)[0]} ..."


def priced(lines: Sequence[Decided]) -> bool:
    """Whether any decision has a cost."""
    return any(not math.isnan(number(decision.get("cost"))) for decision in lines)


def weighed(lines: Sequence[Decided]) -> bool:
    """Whether any decision was weighed against the worth of a desired outcome."""
    return any(not math.isnan(number(decision.get("worth"))) for decision in lines)


def gain_cells(decision: Decided, of: str = "gain") -> dict[str, float]:
    """The gain of a decision, or another estimate, with its interval, by column; NaN where there is none."""
    ends = {f"{of}_{end}": number(claim(decision, end, of)) for end in ("lower", "upper")}
    return {of: number(claim(decision, of=of)), **ends}


def cost_cells(decision: Decided) -> dict[str, float]:
    """Costs and net values of a decision by column, NaN where there is none."""
    values = gain_cells(decision, "net_value") | gain_cells(decision, "net_gain")
    return {"cost": number(decision.get("cost")), **values}


def cost_cell(decision: Decided) -> str:
    """The cost as text; a dash without one."""
    return _amount(decision.get("cost"))


def gain_cell(decision: Decided) -> str:
    """The net gain as text, with its interval if it has one; a dash without one."""
    point, lower, upper = (number(claim(decision, part, "net_gain")) for part in ("point", "lower", "upper"))
    if math.isnan(point):
        return "-"
    return f"{point:+.4g}" if math.isnan(lower) else f"{point:+.4g} [{lower:+.4g}, {upper:+.4g}]"


def cost_sentence(decision: Decided) -> str:
    """The cost and the net value of a decision in a sentence; empty if no cost is known."""
    if math.isnan(number(decision.get("cost"))):
        return ""
    value = f"the net value is {_amount(claim(decision, of='net_value'))}"
    if decision.get("alteration") is None:
        return f"It costs nothing; {value}." if weighed([decision]) else "It costs nothing."
    if not weighed([decision]):
        unknown = "which is not weighed: what a desired outcome is worth is not stated"
        return f"It costs {cost_cell(decision)}, {unknown}."
    gain = gain_cell(decision)
    nets = "" if gain == "-" else f" and nets {gain} above changing nothing; {value}"
    return f"It costs {cost_cell(decision)}{nets}."


def _average_cost(frame: pd.DataFrame) -> str:
    """The mean cost and net gain of the recommended alterations, in words; empty without."""
    cost, gain = (number(frame[name].mean()) if name in frame else math.nan for name in ("cost", "net_gain"))
    nets = "" if math.isnan(gain) else f" and nets {gain:+.3g}"
    return "" if math.isnan(cost) else f" It costs {setting_text(cost, 3)}{nets} on average."


def _amount(value: object) -> str:
    amount = number(value)
    return "-" if math.isnan(amount) else setting_text(amount)
