"""Report of a rehearsal run: alterations case by case, summaries of the methods, the choice of one.

The row of a case holds its context, the alteration, the method's own estimate of the probability of a desired
outcome (no action, or the present values where they are known -> decision, with its interval), the strength
of a hidden common cause that would overturn it, the true probabilities and the largest possible one if the
world knows them, and a note: why nothing is recommended, or warnings. If a certificate bounds both the
posterior mean and the true probability, the two intervals stand below each other, and the head names both.

The reasons of a method that was chosen from the rows are in ``method_choice.json`` and ``method_choice.csv``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal_torch.data.estimate import percents
from rehearsal_torch.data.finding import reason_of, texts_of, undecided
from rehearsal_torch.evaluation.claim_rows import (
    ONLINE_COLUMNS,
    Row,
    number,
    online,
    online_row,
    row,
    truth_bounds,
    with_truth,
)
from rehearsal_torch.evaluation.claim_rows import written as rows_as_csv
from rehearsal_torch.evaluation.method_summaries import (
    LAST,
    MethodSummary,
    TruthSummary,
    online_summary,
    summed,
)
from rehearsal_torch.evaluation.overturning_sentences import sensitivity_of
from rehearsal_torch.evaluation.run_record import Decided, Recorded, before, claim, effort, search_of
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.files.bounded_yaml import TEXTS, checked, read_json
from rehearsal_torch.files.csv_rows import as_csv, read_rows
from rehearsal_torch.reporting.decision_frame import cost_cells, gain_cells, priced

CHOICE_NUMBERS = (
    *("value", "gain", "gain_error", "behind", "behind_error", "brier", "brier_context", "brier_constant"),
    *("gain_lower", "gain_upper", "worse", "worse_error", "judges", "seconds"),
)
CHOICE_HEADS = (
    *("method", "value", "above nothing", "behind the best", "Brier", "context only", "constant"),
    *("judges", ""),
)
CHOICE_WORDS = (0, len(CHOICE_HEADS) - 1)
CHOICE_CAPTION = (
    "The methods that were compared, simplest first; above nothing: 95% intervals of what each gains; "
    "other differences with one standard error"
)


def online_sentences(run: Recorded) -> list[str]:
    """The success of an online run, a sentence for each method; empty for other runs."""
    sentences = []
    for name, rows in learnt(run).items():
        summary = online_summary(rows)
        late, best = percents([summary.late, summary.late + summary.left])
        sentences.append(
            f"{name}: {summary.rounds} online rounds, {summary.successes:.0f} of them successful; mean true "
            f"chance {late} in the last {min(LAST, summary.rounds)}, best possible {best}."
        )
    return sentences


def written(run: Recorded) -> list[Path]:
    """Writes ``table.csv`` (by decision), ``summary.csv`` (by method), online ``rounds.csv`` (by round)."""
    lines = [
        line
        for name, decisions in by_method(run).items()
        for line in per_decision(decisions, dataset_of(run), name, _seed(run))
    ]
    contents = {"table.csv": as_csv(lines), "summary.csv": as_csv(summary_rows(run))}
    if rounds := [row for rows in learnt(run).values() for row in rows]:
        contents["rounds.csv"] = rows_as_csv(rounds, with_truth(ONLINE_COLUMNS, rounds))
    return [write_text(run.path / name, content) for name, content in contents.items()]


def summary_rows(run: Recorded) -> list[dict[str, float | int | str]]:
    """The rows of ``summary.csv``, one per method."""
    return [
        {
            "method": name,
            "cases": summary.count,
            "declined": summary.no_action_count,
            "refused": sum(map(undecided, by_method(run)[name])),
            "probability": summary.auf.mean,
            "probability_low": summary.auf.low,
            "probability_high": summary.auf.high,
            "no_action": summary.no_action,
            "oracle": summary.oracle,
            "share": summary.share,
            "claimed": summary.claimed,
            "coverage": summary.covered,
            "intervals": summary.intervals,
            "interval_width": summary.width,
            **(_truth_columns(summary.truth) if summary.truth.intervals else {}),
            "seconds_median": summary.seconds,
        }
        for name, summary in summaries(run).items()
    ]


def _truth_columns(truth: TruthSummary) -> dict[str, float | int | str]:
    """The columns of the bounds on the true probability."""
    names = ("truth_coverage", "truth_least_coverage", "truth_interval_width")
    return dict(zip(names, (truth.covered, truth.least, truth.width), strict=True))


def decisions_that(run: Recorded, suits: Callable[[Decided], bool]) -> dict[str, list[Decided]]:
    """The decisions that suit, by method, for methods that have some."""
    suited = {name: list(filter(suits, decisions)) for name, decisions in by_method(run).items()}
    return {name: decisions for name, decisions in suited.items() if decisions}


def summaries(run: Recorded) -> dict[str, MethodSummary]:
    """Method to its summary."""
    by_name = {}
    for name, decisions in by_method(run).items():
        passive = [decision for decision in decisions if decision.get("alteration") is None]
        present = sum("unchanged" in decision for decision in passive)
        by_name[name] = summed([row_of(run, name, decision) for decision in decisions], len(passive), present)
    return by_name


def learnt(run: Recorded) -> dict[str, list[Row]]:
    """The rows of the rounds of an online run, by method; empty otherwise."""
    tau, seed = str(run.config.get("search", {}).get("tau", "")), _seed(run)
    return {
        name: [online_row(dataset_of(run), name, tau, seed, line) | truth_bounds(line) for line in decisions]
        for name, decisions in decisions_that(run, online).items()
    }


def row_of(run: Recorded, method: str, decision: Decided) -> Row:
    """The row of a decision, with the bounds on the true probability where there are some."""
    return row(dataset_of(run), method, _seed(run), decision) | truth_bounds(decision)


def by_method(run: Recorded) -> dict[str, list[Decided]]:
    """Decisions by method: the configured `decision`, or the name of the search if it was not recorded."""
    groups: dict[str, list[Decided]] = {}
    for decision in run.decisions:
        groups.setdefault(run.choices.get("decision", search_of(decision)), []).append(decision)
    return groups


def dataset_of(run: Recorded) -> str:
    """The name of the data set; "data" if it was not recorded."""
    return run.choices.get("dataset", "data")


def _seed(run: Recorded) -> int:
    return int(run.config.get("seed", 0))


def method_rows(summaries: Mapping[str, MethodSummary]) -> list[list[str]]:
    """A row for each quantity that is known of methods: its name, then a cell for each method."""
    methods = summaries.values()
    truth = any(summary.auf.count for summary in methods)
    bounds = any(summary.truth.intervals for summary in methods)
    covered = any(summary.intervals for summary in methods)
    present = any(summary.present_count for summary in methods)
    label = "intervals of the posterior mean" if bounds else "intervals"
    lines: list[tuple[bool, str, Callable[[MethodSummary], str]]] = [
        (True, "cases", lambda m: str(m.count)),
        (True, "cases without action", lambda m: str(m.no_action_count)),
        (truth, "true probability of a desired outcome", lambda m: figure(m.auf.mean)),
        (truth, "  95% interval of that mean", lambda m: f"{figure(m.auf.low)} to {figure(m.auf.high)}"),
        (truth, "  with no action", lambda m: figure(m.no_action)),
        (truth, "  best possible", lambda m: figure(m.oracle)),
        (truth, "  share of the possible gain", lambda m: percent(m.share)),
        (True, "estimated probability", lambda m: figure(m.claimed)),
        (present, "  where nothing is set, that of", _unaltered_quantity),
        (covered, f"  {label} that contain the truth", lambda m: f"{percent(m.covered)} of {m.intervals}"),
        (covered, "  their mean width", lambda m: figure(m.width)),
        (
            bounds,
            "  intervals of the truth that contain it",
            lambda m: f"{percent(m.truth.covered)} of {m.truth.intervals}",
        ),
        (bounds, "  their mean width", lambda m: figure(m.truth.width)),
        (bounds, "  one-sided lower bounds that it reaches", lambda m: percent(m.truth.least)),
        (True, "median seconds per decision", lambda m: "-" if math.isnan(m.seconds) else f"{m.seconds:.2g}"),
    ]
    return [[head, *map(cell, methods)] for shown, head, cell in lines if shown]


def truth_in_short(summary: MethodSummary) -> str:
    """The mean true chance after the decisions, where a world knows it; else empty."""
    if not summary.auf.count:
        return ""
    after, before, best = percents([summary.auf.mean, summary.no_action, summary.oracle])
    chances = f"{after} after the decisions, {before} with no action, {best} at best"
    return f"The truth, which this simulated world knows: {chances}"


def _unaltered_quantity(summary: MethodSummary) -> str:
    """The quantity that decisions without an alteration estimate."""
    if not summary.no_action_count:
        return "-"
    if summary.present_count < summary.no_action_count:
        return "the present values, or no action" if summary.present_count else "no action"
    return "the present values"


def per_decision(decisions: Sequence[Decided], dataset: str, method: str, seed: int) -> list[dict[str, Any]]:
    """One row per decision, with its context and its settings, for CSV."""
    lines = []
    for decision in decisions:
        cells = {"before": number(before(decision))}
        if "unchanged" in decision:
            cells["usual"] = number(claim(decision, of="baseline"))
        if "gain" in decision:
            cells |= gain_cells(decision)
        cells |= cost_cells(decision) if priced([decision]) else {}
        cells |= {f"present/{name}": value for name, value in (decision.get("present") or {}).items()}
        cells["share"] = number((decision.get("score") or {}).get("share"))
        cells |= {name: number(effort(decision, name)) for name in ("support", "distance")}
        sensitivity = sensitivity_of(decision)
        if sensitivity is not None:
            cells["tipping"] = sensitivity.tipping
            cells |= {} if sensitivity.yardstick is None else {"yardstick": sensitivity.yardstick}
        if (beyond := effort(decision, "beyond")) is not None:
            cells["beyond"] = number(beyond)
        lines.append(
            row(dataset, method, seed, decision)
            | truth_bounds(decision)
            | cells
            | {f"given/{name}": value for name, value in decision["given"].items()}
            | {f"set/{name}": value for name, value in (decision.get("alteration") or {}).items()}
            | {
                "status": decision.get("status", ""),
                "declined": decision.get("alteration") is None,
                "reason": reason_of(decision),
                "warnings": "; ".join(texts_of(decision)),
            }
        )
    return lines


def figure(value: object, digits: int = 3) -> str:
    """A number with some decimals; a dash if there is none."""
    known = number(value)
    return "-" if math.isnan(known) else f"{known:.{digits}f}"


def percent(value: float) -> str:
    """A share in percent; a dash if there is none."""
    return "-" if math.isnan(value) else f"{round(100 * value):d}%"


def choice_reasons(run: Recorded) -> list[str]:
    """The sentences of the choice of the method; empty if there was none. PlainFileError if it is damaged."""
    path = run.path / "method_choice.json"
    if not path.exists():
        return []
    record = checked(read_json(path), str(path), {"sentences": TEXTS}, ("sentences",))
    return list(record["sentences"])


def choice_rows(run: Recorded) -> list[list[str]]:
    """The cells of the methods that were compared; empty if the method was not chosen."""
    columns = ("method", "compared", "chosen", *CHOICE_NUMBERS)
    lines = read_rows(run.path / "method_choice.csv", columns, CHOICE_NUMBERS)
    rows = []
    for line in lines:
        if line["compared"] == "yes":
            ends = [figure(line[f"gain_{end}"], 2) for end in ("lower", "upper")]
            behind = f"{figure(line['behind'])} ± {figure(line['behind_error'])}" if line["behind"] else "-"
            scores = [figure(line[name], 4) for name in ("brier", "brier_context", "brier_constant")]
            gain = f"[{', '.join(ends)}]" if line["gain_lower"] else "-"
            mark = "taken" if line["chosen"] == "yes" else ""
            value, judges = figure(line["value"]), figure(line["judges"], 2)
            rows.append([line["method"], value, gain, behind, *scores, judges, mark])
    return rows
