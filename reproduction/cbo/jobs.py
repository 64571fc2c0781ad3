"""Causal Bayesian optimisation: each repeat runs a method through all rounds of a problem.

``traces.csv`` has one row per round, ``jobs.csv`` one line per repeat. A repeat is identified by problem,
setting, method and seed; several stages may plan the same repeat.

Source: Ren et al. (2025), Sec. 7 and 11, Fig. 4-7, 10, 12-14 and Tab. 2-3.
"""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.evaluation.claim_rows import TRIAL_COLUMNS, Row, trial_rows
from reproduction.job import configured, decided_rounds
from reproduction.plan import Job, study
from reproduction.record import Layout

KEY = TRIAL_COLUMNS[:4]
LOG = (*KEY, "state", "rounds", "seconds", "commit", "message")


def layouts(options: Mapping[str, Any]) -> dict[str, Layout]:  # noqa: ARG001
    """Stage to the file of its rows, which all stages share."""
    return dict.fromkeys(study("cbo")["stages"], Layout("traces.csv", KEY, TRIAL_COLUMNS))


def rows_of(options: Mapping[str, Any], job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a repeat, one per round; seconds are processor time, including the world's."""
    rounds = min(study("cbo")["worlds"][f"{job.world} {job.setting}"]["rounds"], options["rounds"])
    config = configured([*job.overrides, f"dataset.size.rounds={rounds}", *options["overrides"]])
    return trial_rows(job.world, job.setting, job.method, job.seed, list(decided_rounds(config))), {}
