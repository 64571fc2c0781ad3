"""The jobs of trials in the study of claims: what models claim of expected rewards near the best trials.

A job runs a method through all rounds of a world, as ``scripts/decide.py`` does, and compares claims with
truths (`trial_claims`) after an early round and after the last one. The comparison changes no
round.

Source: Ren et al. (2025), Sec. 7 (the runs).
"""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.evaluation.rows import Row
from rehearsal_torch.methods.build import problem_of
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.surrogates.network.causal_model import CausalModel
from reproduction.calibration.trial_claims import claim_rows
from reproduction.job import configured, learning_rounds
from reproduction.plan import Job, study

# The stage of trials, and the round after which claims are compared with truths for the first time.
TRIALS, EARLY = "trials", int(study("calibration")["facts"]["early_round"])


def rows_of(options: Mapping[str, Any], job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a job, one per claim, and the further columns of its line.

    Raises:
        TypeError: if the world is not a causal one, or the method has no causal model.
    """
    rounds = options["rounds"]
    config = configured([*job.overrides, f"dataset.size.rounds={rounds}", *options["overrides"]])
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
