"""What objectives say of given decisions: the assessment of actions that were chosen elsewhere.

Models of other rows judge a choice by it (`claims`), and intervals of other levels are found for it
(`evaluation.interval_levels`).

Source: ours.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal


def estimates(
    objective: Candidates[AlterationObjective], decisions: Sequence[Decision]
) -> tuple[Tensor, list[int | None]]:
    """The objective's estimates for given decisions, (B,), NaN where nothing is altered, and how many draws
    each is a share of.
    """
    points = torch.full((len(decisions),), math.nan, dtype=torch.float64)
    draws: list[int | None] = [None] * len(decisions)
    for index, each in enumerate(appraisals(objective.sets, decisions)):
        if each is not None and each.estimate is not None:
            points[index], draws[index] = each.estimate.point, each.draws
    return points, draws


def appraisals(sets: Sequence[AlterationObjective], decisions: Sequence[Decision]) -> list[Appraisal | None]:
    """What objectives say of given decisions, each by that of its variables; None where nothing is altered.

    Args:
        sets: One objective per candidate set, for the B cases of the decisions.
        decisions: B decisions.
    """
    found: list[Appraisal | None] = [None] * len(decisions)
    for one in sets:
        mine = [
            index
            for index, each in enumerate(decisions)
            if each.alteration is not None and each.alteration.names == one.names
        ]
        if not mine:
            continue
        actions = one.starts(1)[0].to(torch.float64).clone()
        for index in mine:
            alteration = decisions[index].alteration
            assert alteration is not None
            actions[index] = alteration.values.to(actions)
        appraised = one.appraise(actions)
        for index in mine:
            found[index] = appraised[index]
    return found
