"""Report of a rehearsal run: recommended alterations case by case, and summaries of the methods."""

import math
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from rehearsal_torch.data.estimates.percent import percents
from rehearsal_torch.data.finding import findings_of, in_place, undecided
from rehearsal_torch.evaluation.online_rows import COLUMNS, Row, online, online_row
from rehearsal_torch.evaluation.overturning import sensitivity_of
from rehearsal_torch.evaluation.recorded_run import Decided, Recorded, claim, search_of
from rehearsal_torch.evaluation.rehearsal_rows import row, scored_by_world, truth_bounds, with_truth
from rehearsal_torch.evaluation.rehearsal_rows import written as rows_as_csv
from rehearsal_torch.evaluation.summaries import LAST, MethodSummary, TruthSummary, online_summary, summed
from rehearsal_torch.files.rows import as_csv
from rehearsal_torch.reporting import (
    claim_plot,
    decision_plot,
    decision_table,
    method_choice,
    untouched_score,
)
from rehearsal_torch.reporting.decision_frame import decision_frame, quantity
from rehearsal_torch.reporting.figures import (
    online_panels,
    overturning_strength,
    probability_claims,
    true_probability,
)

# The largest number of cases whose claims are drawn side by side.
MOST = 100


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
        for name, decisions in _groups(run).items()
        for line in decision_table.per_decision(decisions, _dataset(run), name, _seed(run))
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
            "refused": sum(map(undecided, _groups(run)[name])),
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


def figures(run: Recorded) -> dict[str, Figure]:
    """File name to figure: the claims of cases and over actions, what would overturn the recommendations, and
    comparisons with the truth where it is known. To be called within `drawing`.
    """
    drawn = _answers(run)
    if weighed := _those(run, lambda decision: sensitivity_of(decision) is not None):
        drawn["overturning"] = overturning_strength.draw(weighed)
    scored = _those(run, scored_by_world)
    if not scored:
        return drawn
    drawn["probability"] = true_probability.draw(scored)
    rounds = learnt(run)
    if rounds:
        drawn["rounds"] = online_panels.draw({_dataset(run): rounds})
    acted = {
        name: [_row(run, name, decision) for decision in decisions if decision.get("alteration") is not None]
        for name, decisions in scored.items()
    }
    claims = {
        name: rows for name, rows in acted.items() if any(not math.isnan(row["estimate"]) for row in rows)
    }
    return drawn | ({"calibration": probability_claims.draw(claims)} if claims else {})


def _those(run: Recorded, suits: Callable[[Decided], bool]) -> dict[str, list[Decided]]:
    """Method to those of its decisions that suit, for methods that have some."""
    suited = {name: list(filter(suits, decisions)) for name, decisions in _groups(run).items()}
    return {name: decisions for name, decisions in suited.items() if decisions}


def _answers(run: Recorded) -> dict[str, Figure]:
    """What is claimed of each case, and over each action for a few of them; the former for few cases alone,
    and not for rounds, whose claims are beside the truth of each.
    """
    drawn: dict[str, Figure] = {}
    groups = _groups(run)
    lines = next(iter(groups.values()), [])
    if len(groups) == 1 and len(lines) <= MOST and not learnt(run) and any(map(claim, lines)):
        drawn["decisions"] = decision_plot.in_panels(decision_frame(lines), quantity(lines))
    units = run.words.get("units_of")
    beyond = {str(line.get("identity", "")) for line in lines if in_place(findings_of(line))}
    curves = claim_plot.draw(run.claims, units if isinstance(units, dict) else None, run.codings, beyond)
    return drawn if curves is None else drawn | {"claims": curves}


def summaries(run: Recorded) -> dict[str, MethodSummary]:
    """Method to its summary."""
    summed_up = {}
    for name, decisions in _groups(run).items():
        left = [decision for decision in decisions if decision.get("alteration") is None]
        present = sum("unchanged" in decision for decision in left)
        summed_up[name] = summed([_row(run, name, decision) for decision in decisions], len(left), present)
    return summed_up


def learnt(run: Recorded) -> dict[str, list[Row]]:
    """Method to the rows of its rounds, for online runs; empty otherwise."""
    tau = str(run.config.get("search", {}).get("tau", ""))
    return {
        name: [
            online_row(_dataset(run), name, tau, _seed(run), decision) | truth_bounds(decision)
            for decision in decisions
        ]
        for name, decisions in _those(run, online).items()
    }


def _row(run: Recorded, method: str, decision: Decided) -> Row:
    return row(_dataset(run), method, _seed(run), decision) | truth_bounds(decision)


def _groups(run: Recorded) -> dict[str, list[Decided]]:
    """Decisions by method: the configured `decision`, or the name of the search if it was not recorded."""
    groups: dict[str, list[Decided]] = {}
    for decision in run.decisions:
        groups.setdefault(run.choices.get("decision", search_of(decision)), []).append(decision)
    return groups


def _dataset(run: Recorded) -> str:
    return run.choices.get("dataset", "data")


def _seed(run: Recorded) -> int:
    return int(run.config.get("seed", 0))
