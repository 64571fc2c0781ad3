"""Claims and truths: one row per decision, with what was claimed and what is true.

In worlds of tables the quantity is the probability of a desired outcome, in the simulated cohort the relative
improvement of the score that the reward names, as a fraction. ``best`` is the best possible probability, or
the improvement that a greedy search finds under the true mechanism with the same number of changes. A refusal
claims nothing: its row has the claim and the truth of no action. In worlds of tables the same decisions also
have intervals at further levels (`interval_levels`). The jobs of trials are those of `network_claims`.

Source: Dawid (1982) (calibration); the worlds of Du et al. (2026), Sec. 4, and of Ren et al. (2025), Sec. 7;
the simulated cohort, Tsirtsis and Gomez-Rodriguez (2023), Sec. 5.
"""

import math
from collections.abc import Mapping
from typing import Any

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.evaluation.claim_rows import COLUMNS, Row, number, row, typed
from rehearsal_torch.evaluation.run_record import counterpart
from rehearsal_torch.methods.instantiate import problem_of
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from reproduction.calibration import drawn_claims, network_claims, sequence_claims
from reproduction.calibration.drawn_claims import DRAWN
from reproduction.calibration.interval_levels import FURTHER, LEVELS, further_intervals
from reproduction.calibration.network_claims import TRIALS
from reproduction.calibration.sequence_claims import STAGES
from reproduction.calibration.true_returns import true_return
from reproduction.job import configured, decided_cases
from reproduction.plan import Job, study
from reproduction.record import Layout, Record

KEY = ("stage", "dataset", "method", "seed")
LOG = (*KEY, "state", "fit_seconds", "decisions", "no_action", "seconds", "commit", "message")
# The stages of the simulated cohort.
EPISODES = ("episodes", "stays")
# The stage of conditional flows, and the largest number of its cases per seed.
FLOWS, FLOW_CASES = "flows", int(study("calibration")["facts"]["flow_contexts"])


def layouts(options: Mapping[str, Any]) -> dict[str, Layout]:  # noqa: ARG001
    """Stage to the file of its rows."""
    columns = dict.fromkeys(EPISODES, COLUMNS) | {TRIALS: network_claims.COLUMNS, DRAWN: drawn_claims.COLUMNS}
    columns |= dict.fromkeys(STAGES, sequence_claims.COLUMNS)
    return {
        name: Layout(stage["file"], KEY, columns.get(name, (*COLUMNS, *FURTHER)))
        for name, stage in study("calibration")["stages"].items()
    }


def rows_of(options: Mapping[str, Any], job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a job, one per decision, and the further cells of its line."""
    if job.stage == TRIALS:
        return network_claims.rows_of(options, job)
    if job.stage == DRAWN:
        return drawn_claims.rows_of(options, job)
    if job.stage in STAGES:
        return sequence_claims.rows_of(options, job)
    cases = min(options["contexts"], FLOW_CASES) if job.stage == FLOWS else options["contexts"]
    size = (
        f"+dataset.limit={options['patients']}" if job.stage in EPISODES else f"dataset.size.contexts={cases}"
    )
    config = configured([*job.overrides, size, "trainer.progress=false", *options["overrides"]])
    problem = problem_of(config)
    levels = [] if job.stage in EPISODES else [level / 100 for level in LEVELS]
    lines, fit_seconds = decided_cases(config, problem, levels)
    rows = [
        _episode(problem, job, line) if isinstance(problem, SepsisSimulated) else _rehearsed(job, line)
        for line in lines
    ]
    declined = sum(line["alteration"] is None for line in lines)
    return rows, {"fit_seconds": fit_seconds, "decisions": len(lines), "no_action": declined}


def recorded_rows(record: Record, stage: str) -> list[Row]:
    """The rows of a stage, with numbers as numbers."""
    rows = record.rows(stage)
    if stage == TRIALS:
        return network_claims.typed(rows)
    if stage == DRAWN:
        return drawn_claims.typed(rows)
    if stage in STAGES:
        return sequence_claims.typed(rows)
    further = [{name: number(line.get(name, "")) for name in FURTHER} for line in rows]
    return [one | levels for one, levels in zip(typed(rows), further, strict=True)]


def _rehearsed(job: Job, line: Mapping[str, Any]) -> Row:
    return row(job.world, job.method, job.seed, dict(line)) | further_intervals(dict(line))


def _episode(problem: SepsisSimulated, job: Job, line: Mapping[str, Any]) -> Row:
    """The row of an episode; every number but the seconds is a relative improvement."""
    case = problem.case(int(line["index"]))
    assert isinstance(case, EpisodeCase)
    trajectory, score = line["trajectory"], line["score"]
    name = counterpart(trajectory, score)
    best = math.nan
    if name is not None:
        objective = true_return(
            problem.cohort, problem.levels, case.episode, int(trajectory["changes"]), organs=name != "true"
        )
        best = GreedyChanges()(objective).improvement
    return {
        "dataset": job.world,
        "method": job.method,
        "seed": job.seed,
        "context": line["identity"],
        "auf": number(score.get(f"{name}_improvement")),
        "oracle": best,
        "no_action": 0.0,
        "estimate": float(trajectory["improvement"]),
        "lower": math.nan,
        "upper": math.nan,
        "seconds": number(line["seconds"]),
    }
