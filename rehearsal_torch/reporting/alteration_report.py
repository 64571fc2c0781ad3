"""Report of a rehearsal run: recommended alterations case by case, and summaries of the methods."""

from pathlib import Path

from matplotlib.figure import Figure

from rehearsal_torch.data.estimates.outside import in_place
from rehearsal_torch.data.estimates.percent import percents
from rehearsal_torch.data.finding import findings_of, undecided
from rehearsal_torch.evaluation.online_rows import COLUMNS, Row, online, online_row
from rehearsal_torch.evaluation.overturning import sensitivity_of
from rehearsal_torch.evaluation.recorded_run import Decided, Recorded, claim, search_of
from rehearsal_torch.evaluation.rehearsal_rows import row, scored_by_world, truth_bounds, with_truth
from rehearsal_torch.evaluation.rehearsal_rows import written as rows_as_csv
from rehearsal_torch.evaluation.summaries import LAST, MethodSummary, online_summary, summed
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
    kept = ["unchanged" in one for one in run.decisions]
    left = "present values" if all(kept) else "present values, or no action" if any(kept) else "no action"
    shown = decision_table.cases(
        run.decisions,
        f"{len(run.decisions)} decisions in {run.path}; probability of a desired outcome: {left} -> decision",
    )
    lines = [shown, decision_table.methods(summaries(run), "Summary")]
    for name, rows in learnt(run).items():
        one = online_summary(rows)
        mean, best = percents([one.late, one.late + one.left])
        late = f"mean true chance {mean} in the last {min(LAST, one.rounds)}, best possible {best}"
        lines.append(f"{name}: {one.rounds} online rounds, {one.successes:.0f} of them successful; {late}")
    if score := untouched_score.line(run):
        lines.append(score)
    lines += method_choice.text(run)
    # What is said of the graph, every decision says itself.
    lines += [f"caution: {each}" for each in run.findings if each.kind != "refuted_graph"]
    return "\n".join(lines)


def written(run: Recorded) -> list[Path]:
    """Writes ``table.csv``, one row per decision, and ``summary.csv``, one row per method; for online runs
    also ``rounds.csv``, one row per round.
    """
    lines = [
        line
        for name, decided in _groups(run).items()
        for line in decision_table.per_decision(decided, _dataset(run), name, _seed(run))
    ]
    files = [run.path / "table.csv", run.path / "summary.csv"]
    for path, content in zip(files, (lines, summary_rows(run)), strict=True):
        path.write_text(as_csv(content), encoding="utf-8")
    rounds = [one for rows in learnt(run).values() for one in rows]
    if rounds:
        files.append(run.path / "rounds.csv")
        files[-1].write_text(rows_as_csv(rounds, with_truth(COLUMNS, rounds)), encoding="utf-8")
    return files


def summary_rows(run: Recorded) -> list[dict[str, float | int | str]]:
    """The rows of ``summary.csv``, one per method."""
    return [
        {
            "method": name,
            "cases": one.count,
            "declined": one.no_action_count,
            "refused": sum(map(undecided, _groups(run)[name])),
            "probability": one.auf.mean,
            "probability_low": one.auf.low,
            "probability_high": one.auf.high,
            "no_action": one.no_action,
            "oracle": one.oracle,
            "share": one.share,
            "claimed": one.claimed,
            "coverage": one.covered,
            "intervals": one.intervals,
            "interval_width": one.width,
            **_of_truth(one),
            "seconds_median": one.seconds,
        }
        for name, one in summaries(run).items()
    ]


def figures(run: Recorded) -> dict[str, Figure]:
    """File name to figure: the claims of cases and over actions, what would overturn the recommendations, and
    comparisons with the truth where it is known. To be called within `drawing`.
    """
    found = _answers(run)
    weighed = {
        name: [one for one in decided if sensitivity_of(one)] for name, decided in _groups(run).items()
    }
    weighed = {name: decided for name, decided in weighed.items() if decided}
    found |= {"overturning": overturning_strength.draw(weighed)} if weighed else {}
    scored = {
        name: [one for one in decided if scored_by_world(one)] for name, decided in _groups(run).items()
    }
    scored = {name: decided for name, decided in scored.items() if decided}
    if not scored:
        return found
    found["probability"] = true_probability.draw(scored)
    rows = {
        name: [
            row(_dataset(run), name, _seed(run), one) | truth_bounds(one)
            for one in decided
            if one.get("alteration") is not None
        ]
        for name, decided in scored.items()
    }
    claims = {
        name: some
        for name, some in rows.items()
        if any(each["estimate"] == each["estimate"] for each in some)
    }
    rounds = learnt(run)
    if rounds:
        found["rounds"] = online_panels.draw({_dataset(run): rounds})
    return found | ({"calibration": probability_claims.draw(claims)} if claims else {})


def _answers(run: Recorded) -> dict[str, Figure]:
    """What is claimed of each case, and over each action for a few of them; the former for few cases alone,
    and not for rounds, whose claims are beside the truth of each.
    """
    found: dict[str, Figure] = {}
    groups = _groups(run)
    lines = next(iter(groups.values()), [])
    if len(groups) == 1 and len(lines) <= MOST and not learnt(run) and any(map(claim, lines)):
        found["decisions"] = decision_plot.in_panels(decision_frame(lines), quantity(lines))
    units = run.words.get("units_of")
    beyond = {str(one.get("identity", "")) for one in lines if in_place(findings_of(one))}
    curves = claim_plot.draw(run.claims, units if isinstance(units, dict) else None, run.codings, beyond)
    return found if curves is None else found | {"claims": curves}


def summaries(run: Recorded) -> dict[str, MethodSummary]:
    """Method to its summary."""
    return {
        name: summed(
            [row(_dataset(run), name, _seed(run), one) | truth_bounds(one) for one in decided],
            sum(one.get("alteration") is None for one in decided),
            sum(one.get("alteration") is None and "unchanged" in one for one in decided),
        )
        for name, decided in _groups(run).items()
    }


def learnt(run: Recorded) -> dict[str, list[Row]]:
    """Method to the rows of its rounds, for online runs; empty otherwise."""
    tau = str(run.config.get("search", {}).get("tau", ""))
    found = {
        name: [
            online_row(_dataset(run), name, tau, _seed(run), one) | truth_bounds(one)
            for one in decided
            if online(one)
        ]
        for name, decided in _groups(run).items()
    }
    return {name: rows for name, rows in found.items() if rows}


def _of_truth(one: MethodSummary) -> dict[str, float | int | str]:
    """The columns of the bounds on the true probability; empty if there are none."""
    found = one.truth
    if not found.intervals:
        return {}
    return {
        "truth_coverage": found.covered,
        "truth_least_coverage": found.least,
        "truth_interval_width": found.width,
    }


def _groups(run: Recorded) -> dict[str, list[Decided]]:
    """Decisions by method: the configured `decision`, or the name of the search if it was not recorded."""
    found: dict[str, list[Decided]] = {}
    for one in run.decisions:
        found.setdefault(run.choices.get("decision", search_of(one)), []).append(one)
    return found


def _dataset(run: Recorded) -> str:
    return run.choices.get("dataset", "data")


def _seed(run: Recorded) -> int:
    return int(run.config.get("seed", 0))
