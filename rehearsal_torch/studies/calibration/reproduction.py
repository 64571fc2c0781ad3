"""The study of claims: one row per decision, with what was claimed and what is true.

In worlds of tables the quantity is the probability of a desired outcome, in the simulated cohort the relative
improvement of the score that the reward names, as a fraction. ``best`` is the best possible probability, or
the improvement that a greedy search finds under the true mechanism with the same number of changes. A refusal
claims nothing: its row has the claim and the truth of no action. In worlds of tables the same decisions also
have intervals at further levels (`evaluation.interval_levels`). The jobs of trials are those of `trials`.

Source: Dawid (1982) (calibration); the worlds' own sources stand in study.yaml.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from rehearsal_torch.cli.build import problem_of
from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.evaluation.claimed_truth import counterpart
from rehearsal_torch.evaluation.rehearsal_rows import (
    COLUMNS,
    FURTHER,
    LEVELS,
    NUMBERS,
    Row,
    further_intervals,
    number,
    row,
    typed,
)
from rehearsal_torch.evaluation.sepsis_truth import true_return
from rehearsal_torch.evaluation.trial_claims import claims_typed
from rehearsal_torch.problems.episodes.cohort import SepsisSimulated
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.studies.calibration import trials
from rehearsal_torch.studies.calibration.trials import TRIALS
from rehearsal_torch.studies.job import Protocol, attempted, configured, decided_cases
from rehearsal_torch.studies.plan import Job
from rehearsal_torch.studies.record import Layout, Log, Outcome, Record
from rehearsal_torch.studies.runner import Reproduction, Work
from rehearsal_torch.studies.study import Stage
from rehearsal_torch.studies.study_files import study

KEY = ("stage", "dataset", "method", "seed")
LOG = Log(KEY, ("fit_seconds", "decisions", "no_action", "seconds"), ("seed",))
# The stages of the simulated cohort.
EPISODES = ("episodes", "stays")
# The stage of conditional flows, and the largest number of its cases per seed.
FLOWS, FLOW_CASES = "flows", int(study("calibration").facts["flow_contexts"])
_OTHER_WORLD = "stage {stage} does not have the world {world}: name its own worlds"


def _layout(stage: Stage) -> Layout:
    if stage.name == TRIALS:
        return trials.layout(stage, KEY)
    optional = () if stage.name in EPISODES else FURTHER
    return Layout(stage.file, KEY, COLUMNS, NUMBERS, ("seed",), optional=optional)


# The record of the study in a folder.
record_in = partial(
    Record, layouts={name: _layout(stage) for name, stage in study("calibration").stages.items()}, log=LOG
)


def rows_of(protocol: Protocol, job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a job, one per decision, and the further columns of its line.

    Args:
        protocol: What all jobs have in common.
        job: The job.

    Raises:
        ValueError: if the stage is for other worlds.
    """
    options = protocol.options
    if (job.stage == TRIALS) != (job.world in study("calibration").groups["causal"]):
        raise ValueError(_OTHER_WORLD.format(stage=job.stage, world=job.world))
    if job.stage == TRIALS:
        return trials.rows_of(protocol, job)
    cases = min(options["contexts"], FLOW_CASES) if job.stage == FLOWS else options["contexts"]
    size = (
        f"+dataset.limit={options['patients']}" if job.stage in EPISODES else f"dataset.size.contexts={cases}"
    )
    config = configured(protocol.conf, [*job.overrides, size, "trainer.progress=false", *protocol.overrides])
    problem = problem_of(config)
    if (job.stage in EPISODES) != isinstance(problem, SepsisSimulated):
        raise ValueError(_OTHER_WORLD.format(stage=job.stage, world=job.world))
    levels = [] if job.stage in EPISODES else [level / 100 for level in LEVELS]
    lines, fit_seconds = decided_cases(config, problem, levels)
    rows = [
        _episode(problem, job, line) if isinstance(problem, SepsisSimulated) else _rehearsed(job, line)
        for line in lines
    ]
    declined = sum(line["alteration"] is None for line in lines)
    return rows, {"fit_seconds": fit_seconds, "decisions": len(lines), "no_action": declined}


def recorded_rows(record: Record, stage: str) -> list[Row]:
    """The rows of a stage, with numbers as numbers.

    Args:
        record: The study's record.
        stage: One of its stages.
    """
    rows = record.rows(stage)
    return claims_typed(rows) if stage == TRIALS else typed(rows)


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


class Calibration(Reproduction):
    """The study, stage by stage."""

    def works(self) -> Iterator[Work[Protocol, Job]]:
        """See `Reproduction.works`."""
        record, protocol = record_in(self.out.path), Protocol.of(self.request)
        for stage in self.request.working:
            jobs = self.request.jobs(stage)
            summary = trials.summary if stage == TRIALS else _summary
            yield Work(stage, record, jobs, partial(attempted, rows_of), protocol, summary)

    def documents(self) -> None:
        """See `Reproduction.documents`."""
        from rehearsal_torch.studies.calibration.documents import documents

        documents(self.out)


def _summary(outcome: Outcome[Job]) -> str:
    claimed, true = (
        sum(each[name] for each in outcome.rows) / len(outcome.rows) for name in ("estimate", "auf")
    )
    return f"claimed {claimed:.3f}, true {true:.3f}, fit {outcome.line['fit_seconds']:.1f} s"
