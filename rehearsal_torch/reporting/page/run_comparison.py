"""Page that compares several runs: their questions, their answers case by case, their claims.

Where data, kinds or commits of runs differ, so that numbers answer other questions, the page says so first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal_torch.evaluation.run_record import Decided
from rehearsal_torch.reporting import no_action_score
from rehearsal_torch.reporting.alteration_report import method_rows
from rehearsal_torch.reporting.page.data_card import question
from rehearsal_torch.reporting.page.html import name_of, render, sentence, words
from rehearsal_torch.reporting.page.page_content import Material, counted
from rehearsal_torch.reporting.page.reasons import FindingGroup, by_kind, warnings_of_run
from rehearsal_torch.reporting.page.run_page import Facts, TableView, origin, sequence_tables, tally
from rehearsal_torch.reporting.page.views import Reading, Verdict, case_of, episode_of, trials_of, verdict_of

Labelled = Sequence[tuple[str, Material]]


@dataclass(frozen=True)
class Compared:
    """A run on the page: what it was asked, how many decisions came to what, and its findings."""

    label: str
    question: list[str]
    tally: list[tuple[Verdict, int]]
    total: int
    nouns: tuple[str, str]
    facts: Facts
    findings: list[FindingGroup]
    warnings: list[str]
    origin: Facts


def comparing_page(runs: Sequence[Material], cases: int) -> str:
    """The page of several runs with decisions; `cases` of them are compared one by one."""
    pairs = list(zip(labelled(runs), runs, strict=True))
    table, more = _case_table(pairs, cases)
    return render(
        "comparison.html",
        title="Report: several runs",
        differences=differences(runs),
        runs=[_compared(label, run) for label, run in pairs],
        cases=table,
        more=more,
        tables=_summary_tables(pairs),
        scores=[f"{label}: {line}" for label, run in pairs if (line := no_action_score.line(run.run))],
    )


def _compared(label: str, run: Material) -> Compared:
    choices = [(name, run.run.choices.get(name, "")) for name in ("dataset", "decision")]
    return Compared(
        label,
        question(run),
        [] if run.trials else tally(run.run.decisions),
        len(run.run.decisions),
        run.nouns,
        [*choices, ("seed", str(run.record.get("seed", "")))],
        by_kind(run.decisions),
        warnings_of_run(run),
        origin(run),
    )


def labelled(runs: Sequence[Material]) -> list[str]:
    """A short name for each run, all different: decision, data set and seed as needed, else its number."""
    names = [""] * len(runs)
    for parts in (
        [run.run.choices.get("decision", run.run.path.name) for run in runs],
        [run.run.choices.get("dataset", "") for run in runs],
        [f"seed {run.record.get('seed')}" for run in runs],
    ):
        names = [f"{name} {part}".lstrip() if name else part for name, part in zip(names, parts, strict=True)]
        if len(set(names)) == len(names):
            return names
    return [f"{number}: {name}" for number, name in enumerate(names, 1)]


def differences(runs: Sequence[Material]) -> list[str]:
    """Why the numbers of the runs may not be comparable, a sentence each."""
    compared: dict[str, list[Any]] = {
        "The runs are of different kinds, which answer different questions.": [run.run.kind for run in runs],
        "The runs learnt from different data (their fingerprints differ).": [
            run.record.get("data_fingerprint") for run in runs
        ],
        "The runs were asked different questions, or their data cards differ.": list(map(question, runs)),
        "The runs were made by different versions of the code (their commits differ).": [
            str(run.record.get("commit")) for run in runs
        ],
    }
    return [sentence for sentence, values in compared.items() if any(value != values[0] for value in values)]


def _case_table(pairs: Labelled, limit: int) -> tuple[TableView, int]:
    """Each case with the answer of each run, and how many more there are; trials have one recommendation."""
    if any(run.trials for _, run in pairs):
        rows = [
            [label, sentence("settings", trials.keep, "at"), trials.reward.text if trials.reward else "-"]
            for label, run in pairs
            if run.trials and (trials := trials_of(run))
        ]
        heads = ["run", "setting", "predicted"]
        return TableView("What each run recommends to keep", heads, rows, (0, 1)), 0
    by_case: dict[str, dict[str, Decided]] = {}
    for label, run in pairs:
        for decision in run.run.decisions:
            by_case.setdefault(name_of(decision), {})[label] = decision
    rows = [
        [name, label, *_cells(answers[label], run)]
        for name, answers in list(by_case.items())[:limit]
        for label, run in pairs
        if label in answers
    ]
    totals = {run.words.total for _, run in pairs if run.sequences}
    # One quantity of all runs is the heading, in its own sign.
    total = totals.pop() if len(totals) == 1 and all(run.sequences for _, run in pairs) else ""
    heads = ["case", "run", "answer", f"{total}: as observed" if total else "before", "with this answer"]
    caption = "What each run recommends in each case, and its own estimates"
    return TableView(caption, heads, rows, range(len(heads))), max(0, len(by_case) - limit)


def _summary_tables(pairs: Labelled) -> list[TableView]:
    summaries = {label: next(iter(run.methods.values())) for label, run in pairs if run.alterations}
    rows = method_rows(summaries) if summaries else []
    tables = [TableView("Claims and, where a world knows it, the truth", ["", *summaries], rows)]
    for label, run in pairs:
        if not run.alterations and not run.trials:
            tables += sequence_tables(run, f"{label}: ")
    return tables


def _cells(decision: Decided, run: Material) -> list[str]:
    """The answer, and the estimates before and, of a recommendation, after it."""
    if run.sequences:
        episode = episode_of(decision, run.words)
        answer = f"change {counted(len(episode.changes), 'action')}" if episode.acts else ""
        estimates: list[Reading | None] = [episode.before, episode.after]
    else:
        case = case_of(decision, run.units)
        answer, estimates = (
            sentence("changes", case.changes),
            [case.before, case.after if case.acts else None],
        )
        if case.outside:
            estimates = [None, None]
    numbers = ["-" if reading is None else sentence("number", reading, reading) for reading in estimates]
    return [answer or words("verdicts")[verdict_of(decision)], *numbers]
