"""Report of a rehearsal run: recommended alterations case by case, and summaries of the methods."""

from collections.abc import Callable
from pathlib import Path

from rehearsal_torch.data.estimate import percents
from rehearsal_torch.data.finding import undecided
from rehearsal_torch.evaluation.online_rows import COLUMNS, Row, online, online_row
from rehearsal_torch.evaluation.recorded_run import Decided, Recorded, search_of
from rehearsal_torch.evaluation.rehearsal_rows import row, truth_bounds, with_truth
from rehearsal_torch.evaluation.rehearsal_rows import written as rows_as_csv
from rehearsal_torch.evaluation.summaries import LAST, MethodSummary, TruthSummary, online_summary, summed
from rehearsal_torch.files.rows import as_csv
from rehearsal_torch.reporting import (
    decision_table,
    method_choice,
    untouched_score,
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
    lines = [
        decision_table.cases(run.decisions, title),
        decision_table.methods(summaries(run), "Summary"),
        *online_sentences(run),
    ]
    if score := untouched_score.line(run):
        lines.append(score)
    lines += method_choice.text(run)
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
        for line in decision_table.per_decision(decisions, dataset_of(run), name, _seed(run))
    ]
    files = [run.path / "table.csv", run.path / "summary.csv"]
    for path, content in zip(files, (lines, summary_rows(run)), strict=True):
        path.write_text(as_csv(content), encoding="utf-8")
    rounds = [row for rows in learnt(run).values() for row in rows]
    if rounds:
        files.append(run.path / "rounds.csv")
        files[-1].write_text(rows_as_csv(rounds, with_truth(COLUMNS, rounds)), encoding="utf-8")
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
            **_of_truth(summary.truth),
            "seconds_median": summary.seconds,
        }
        for name, summary in summaries(run).items()
    ]


def _of_truth(truth: TruthSummary) -> dict[str, float | int | str]:
    """The columns of the bounds on the true probability; empty if there are none."""
    if not truth.intervals:
        return {}
    return {
        "truth_coverage": truth.covered,
        "truth_least_coverage": truth.least,
        "truth_interval_width": truth.width,
    }


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
