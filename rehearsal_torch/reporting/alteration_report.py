"""Report of a rehearsal run: alterations case by case, summaries of the methods, and which one was taken.

The row of a case holds its context, the alteration, the method's own estimate of the probability of a desired
outcome (no action, or the present values where they are known -> decision, with its interval), the strength
of a hidden common cause that would overturn it, the true probabilities and the largest possible one if the
world knows them, and a note: why nothing is recommended, or warnings. If a certificate bounds both the
posterior mean and the true probability, the two intervals stand below each other, and the head names both.

Why a run used its method, where it was chosen from the rows, is read from ``method_choice.json`` and
``method_choice.csv`` of its folder; other runs have neither.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal_torch.data.estimate import percents
from rehearsal_torch.data.finding import reason_of, texts_of, undecided
from rehearsal_torch.data.sensitivity import factor
from rehearsal_torch.evaluation.claim_rows import (
    ONLINE_COLUMNS,
    Row,
    interval_of,
    number,
    online,
    online_row,
    row,
    scored_by_world,
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
from rehearsal_torch.evaluation.overturning_sentences import graphs_overall, overall, sensitivity_of
from rehearsal_torch.evaluation.run_record import (
    Decided,
    Recorded,
    before,
    claim,
    effort,
    group_of,
    search_of,
)
from rehearsal_torch.files.bounded_yaml import TEXTS, checked, read_json
from rehearsal_torch.files.csv_rows import as_csv, read_rows
from rehearsal_torch.reporting import no_action_score
from rehearsal_torch.reporting.decision_frame import (
    cost_cell,
    cost_cells,
    gain_cell,
    gain_cells,
    priced,
    weighed,
)
from rehearsal_torch.reporting.page.html import Markup, joined, paragraphs
from rehearsal_torch.reporting.page.html import table as table_of
from rehearsal_torch.reporting.text_table import text_table
from rehearsal_torch.spaces.box import setting_text

# Cases, names of a context, and settings that a table for a terminal shows.
SHOWN, MAX_NAMES, MAX_SETTINGS = 10, 4, 5
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


def concerns(run: Recorded) -> bool:
    """Whether a run holds rehearsal decisions."""
    return bool(run.decisions) and run.kind == "rehearse"


def tables(run: Recorded) -> str:
    """The first cases and a summary of each method, for a terminal."""
    kept = ["unchanged" in decision for decision in run.decisions]
    left = "present values" if all(kept) else "present values, or no action" if any(kept) else "no action"
    claims = f"probability of a desired outcome: {left} -> decision"
    title = f"{len(run.decisions)} decisions in {run.path}; {claims}"
    methods = summaries(run)
    lines = [
        table_of_cases(run.decisions, title),
        text_table(["", *methods], method_rows(methods), "Summary"),
    ]
    lines += online_sentences(run)
    if score := no_action_score.line(run):
        lines.append(score)
    if rows := _compared(run):
        lines += [text_table(CHOICE_HEADS, rows, CHOICE_CAPTION, texts=CHOICE_WORDS), *choice_reasons(run)]
    # What is said of the graph, every decision says itself.
    lines += [f"caution: {finding}" for finding in run.findings if finding.kind != "refuted_graph"]
    return "\n".join(lines)


def online_sentences(run: Recorded) -> list[str]:
    """What an online run has come to, a sentence for each method; empty for other runs."""
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
    """Writes ``table.csv``, one row per decision, and ``summary.csv``, one row per method; for online runs
    also ``rounds.csv``, one row per round.
    """
    lines = [
        line
        for name, decisions in by_method(run).items()
        for line in per_decision(decisions, dataset_of(run), name, _seed(run))
    ]
    files = [run.path / "table.csv", run.path / "summary.csv"]
    for path, content in zip(files, (lines, summary_rows(run)), strict=True):
        path.write_text(as_csv(content), encoding="utf-8")
    rounds = [row for rows in learnt(run).values() for row in rows]
    if rounds:
        files.append(run.path / "rounds.csv")
        files[-1].write_text(rows_as_csv(rounds, with_truth(ONLINE_COLUMNS, rounds)), encoding="utf-8")
    return files


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
            **(_of_truth(summary.truth) if summary.truth.intervals else {}),
            "seconds_median": summary.seconds,
        }
        for name, summary in summaries(run).items()
    ]


def _of_truth(truth: TruthSummary) -> dict[str, float | int | str]:
    """The columns of the bounds on the true probability."""
    names = ("truth_coverage", "truth_least_coverage", "truth_interval_width")
    return dict(zip(names, (truth.covered, truth.least, truth.width), strict=True))


def decisions_that(run: Recorded, suits: Callable[[Decided], bool]) -> dict[str, list[Decided]]:
    """Method to those of its decisions that suit, for methods that have some."""
    suited = {name: list(filter(suits, decisions)) for name, decisions in by_method(run).items()}
    return {name: decisions for name, decisions in suited.items() if decisions}


def summaries(run: Recorded) -> dict[str, MethodSummary]:
    """Method to its summary."""
    summed_up = {}
    for name, decisions in by_method(run).items():
        left = [decision for decision in decisions if decision.get("alteration") is None]
        present = sum("unchanged" in decision for decision in left)
        summed_up[name] = summed([row_of(run, name, decision) for decision in decisions], len(left), present)
    return summed_up


def learnt(run: Recorded) -> dict[str, list[Row]]:
    """Method to the rows of its rounds, for online runs; empty otherwise."""
    tau = str(run.config.get("search", {}).get("tau", ""))
    return {
        name: [
            online_row(dataset_of(run), name, tau, _seed(run), decision) | truth_bounds(decision)
            for decision in decisions
        ]
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


def table_of_cases(decisions: Sequence[Decided], title: str) -> str:
    """The first decisions, one row per case."""
    shown, every = decisions[:SHOWN], [_sentences(decision) for decision in decisions]
    shared = [text for text in every[0] if all(text in other for other in every)] if len(every) > 1 else []
    columns: list[tuple[str, Callable[[Decided], str]]] = [
        ("case", lambda decision: str(decision.get("identity", ""))),
        ("context", _context),
        ("alteration", change),
        ("probability,\nestimated", _estimated),
        ("intervals:\nposterior mean,\ntruth", _both_intervals)
        if any(map(truth_bounds, shown))
        else ("interval of the\nposterior mean" if any(map(_counted, shown)) else "interval", _interval),
    ]
    columns += [("cost", cost_cell)] if priced(shown) else []
    columns += [("net gain", gain_cell)] if weighed(shown) else []
    if any(sensitivity_of(decision) for decision in shown):
        columns.append(("strength of hidden\ncause to overturn", _tipping))
    if any(map(scored_by_world, shown)):
        columns.append(("probability, true\n(best possible)", _true))
    words = [0, 1, 2]
    if any(len(sentences) > len(shared) for sentences in every):
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


def method_rows(summaries: Mapping[str, MethodSummary]) -> list[list[str]]:
    """What is known of methods, a row each: its name, then a cell for each method. Number of cases without
    action, true and claimed probabilities, and coverage of the claimed intervals.
    """
    every = summaries.values()
    truth = any(summary.auf.count for summary in every)
    bounds = any(summary.truth.intervals for summary in every)
    covered = any(summary.intervals for summary in every)
    present = any(summary.present_count for summary in every)
    which = "intervals of the posterior mean" if bounds else "intervals"
    lines: list[tuple[bool, str, Callable[[MethodSummary], str]]] = [
        (True, "cases", lambda of: str(of.count)),
        (True, "cases without action", lambda of: str(of.no_action_count)),
        (truth, "true probability of a desired outcome", lambda of: figure(of.auf.mean)),
        (truth, "  95% interval of that mean", lambda of: f"{figure(of.auf.low)} to {figure(of.auf.high)}"),
        (truth, "  with no action", lambda of: figure(of.no_action)),
        (truth, "  best possible", lambda of: figure(of.oracle)),
        (truth, "  share of the possible gain", lambda of: percent(of.share)),
        (True, "estimated probability", lambda of: figure(of.claimed)),
        (present, "  where nothing is set, that of", _of_nothing),
        (covered, f"  {which} that contain the truth", lambda of: f"{percent(of.covered)} of {of.intervals}"),
        (covered, "  their mean width", lambda of: figure(of.width)),
        (
            bounds,
            "  intervals of the truth that contain it",
            lambda of: f"{percent(of.truth.covered)} of {of.truth.intervals}",
        ),
        (bounds, "  their mean width", lambda of: figure(of.truth.width)),
        (bounds, "  one-sided lower bounds that it reaches", lambda of: percent(of.truth.least)),
        (
            True,
            "median seconds per decision",
            lambda of: "-" if math.isnan(of.seconds) else f"{of.seconds:.2g}",
        ),
    ]
    return [[head, *map(cell, every)] for known, head, cell in lines if known]


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
        own = {"before": number(before(decision))}
        if "unchanged" in decision:
            own["usual"] = number(claim(decision, of="baseline"))
        if "gain" in decision:
            own |= gain_cells(decision)
        own |= cost_cells(decision) if priced([decision]) else {}
        own |= {f"present/{name}": value for name, value in (decision.get("present") or {}).items()}
        own["share"] = number((decision.get("score") or {}).get("share"))
        own |= {name: number(effort(decision, name)) for name in ("support", "distance")}
        sensitivity = sensitivity_of(decision)
        if sensitivity is not None:
            own["tipping"] = sensitivity.tipping
            own |= {} if sensitivity.yardstick is None else {"yardstick": sensitivity.yardstick}
        if (beyond := effort(decision, "beyond")) is not None:
            own["beyond"] = number(beyond)
        lines.append(
            row(dataset, method, seed, decision)
            | truth_bounds(decision)
            | own
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


def _context(decision: Decided) -> str:
    """The context of a case, abbreviated."""
    return _pairs(decision.get("given") or {}, MAX_NAMES)


def change(decision: Decided) -> str:
    """The altered variables and their values; without an alteration "no action" or "refused"."""
    return _pairs(decision.get("alteration") or {}, MAX_SETTINGS) or group_of(decision)


def _interval(decision: Decided) -> str:
    """The interval of the estimate; a dash without an alteration or an interval."""
    return _ends(*interval_of(decision)) if decision.get("alteration") is not None else "-"


def _counted(decision: Decided) -> bool:
    """Whether the interval is that of a certificate, which bounds the posterior mean."""
    return claim(decision, "lower") is None and "lower" in (decision.get("certificate") or {})


def _ends(lower: object, upper: object) -> str:
    if math.isnan(number(lower)) or math.isnan(number(upper)):
        return "-"
    return f"{figure(lower)} to {figure(upper)}"


def _tipping(decision: Decided) -> str:
    """The strength of a hidden common cause that would overturn the decision; a dash if it is not known, and
    none where the interval contains no action already.
    """
    sensitivity = sensitivity_of(decision)
    if sensitivity is None:
        return "-"
    return "none" if sensitivity.tipping == 1 else factor(sensitivity.tipping)


def _sentences(decision: Decided) -> list[str]:
    """The reason for no action with the alteration it replaces, or the warnings."""
    would = _pairs(effort(decision, "would_set") or {}, MAX_SETTINGS)
    parts = (reason_of(decision), f"would have set {would}" if would else "", *texts_of(decision))
    return list(filter(None, parts))


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
    bounds = truth_bounds(decision)
    return f"{_interval(decision)}\n{_ends(bounds.get('truth_lower'), bounds.get('truth_upper'))}"


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


def choice_reasons(run: Recorded) -> list[str]:
    """The sentences of the choice; empty if the method of the run was not chosen from its rows.

    Raises:
        PlainFileError: if the record is damaged.
    """
    path = run.path / "method_choice.json"
    if not path.exists():
        return []
    record = checked(read_json(path), str(path), {"sentences": TEXTS}, ("sentences",))
    return list(record["sentences"])


def choice_as_markup(run: Recorded) -> Markup:
    """Sentences and table for the page; empty if the method was not chosen."""
    rows = _compared(run)
    if not rows:
        return Markup()
    compared = table_of(CHOICE_CAPTION, CHOICE_HEADS, rows, CHOICE_WORDS)
    return joined([paragraphs(choice_reasons(run)), compared])


def _compared(run: Recorded) -> list[list[str]]:
    """The methods that were compared, as cells; empty if the method was not chosen."""
    columns = ("method", "compared", "chosen", *CHOICE_NUMBERS)
    lines = read_rows(run.path / "method_choice.csv", columns, CHOICE_NUMBERS)
    rows = []
    for line in lines:
        if line["compared"] == "yes":
            ends = [_cell(line[f"gain_{end}"], 2) for end in ("lower", "upper")]
            behind = f"{_cell(line['behind'])} ± {_cell(line['behind_error'])}" if line["behind"] else "-"
            scores = [_cell(line[name], 4) for name in ("brier", "brier_context", "brier_constant")]
            gain = f"[{', '.join(ends)}]" if line["gain_lower"] else "-"
            taken = "taken" if line["chosen"] == "yes" else ""
            rows.append(
                [line["method"], _cell(line["value"]), gain, behind, *scores, _cell(line["judges"], 2), taken]
            )
    return rows


def _cell(written: str, digits: int = 3) -> str:
    value = number(written)
    return "-" if math.isnan(value) else f"{value:.{digits}f}"
