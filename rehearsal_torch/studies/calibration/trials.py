"""The jobs of trials in the study of claims: what models claim of expected rewards near the best trials.

A job runs a method through all rounds of a world, as ``scripts/decide.py`` does, and compares claims with
truths (`evaluation.trial_claims`) after an early round and after the last one. The comparison changes no
round.

Source: Ren et al. (2025), Sec. 7 (the runs).
"""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.cli.build import problem_of
from rehearsal_torch.evaluation.rehearsal_rows import Row
from rehearsal_torch.evaluation.summaries import mean
from rehearsal_torch.evaluation.trial_claims import (
    COLUMNS,
    NUMBERS,
    WHOLE,
    at_points,
    claim_rows,
    of_recommendations,
)
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.studies.job import Protocol, configured, learning_rounds
from rehearsal_torch.studies.plan import Job
from rehearsal_torch.studies.record import Layout, Outcome
from rehearsal_torch.studies.study import Stage
from rehearsal_torch.studies.study_files import study
from rehearsal_torch.surrogates.network.causal_model import CausalModel

# The stage of trials, and the round after which claims are compared with truths for the first time.
TRIALS, EARLY = "trials", int(study("calibration").facts["early_round"])


def layout(stage: Stage, key: tuple[str, ...]) -> Layout:
    """The format of the rows of trials.

    Args:
        stage: The stage.
        key: The columns that identify a job.
    """
    return Layout(stage.file, key, COLUMNS, NUMBERS, WHOLE)


def rows_of(protocol: Protocol, job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a job, one per claim, and the further columns of its line.

    Args:
        protocol: What all jobs have in common.
        job: The job.

    Raises:
        TypeError: if the world is not a causal one, or the method has no causal model.
    """
    rounds = protocol.options["rounds"]
    config = configured(protocol.conf, [*job.overrides, f"dataset.size.rounds={rounds}", *protocol.overrides])
    world = problem_of(config)
    model, decisions = learning_rounds(config, world)
    if not isinstance(world, CausalWorld) or not isinstance(model, CausalModel):
        raise TypeError(
            f"expected a CausalWorld and a CausalModel; got {type(world).__name__} and {type(model).__name__}"
        )
    named = {"dataset": job.world, "method": job.method, "seed": job.seed}
    rows: list[Row] = []
    for each in decisions:
        # The model that made this round was fitted to the rounds before it.
        if each.index == EARLY:
            rows += [named | row for row in claim_rows(model, world, EARLY, job.seed)]
    rows += [named | row for row in claim_rows(model, world, rounds, job.seed)]
    return rows, {"decisions": rounds, "no_action": 0}


def summary(outcome: Outcome[Job]) -> str:
    """How many claims hold after the last round, and what the recommendation is worth.

    Args:
        outcome: A successful outcome.
    """
    last = [row for row in outcome.rows if row["round"] == outcome.rows[-1]["round"]]
    (best,) = of_recommendations(last)
    held = mean([row["held"] for row in at_points(last)])
    return (
        f"{100 * held:.0f}% hold, recommended {best['true']:.4g} of {best['optimum']:.4g}, "
        f"{outcome.line['seconds']:.1f} s"
    )
