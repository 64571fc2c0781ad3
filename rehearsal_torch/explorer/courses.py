"""The course of an episode under a sequence of actions: rewards and states, step by step, as plain data.

    observed     what was recorded
    after        what the fitted model replays under the sequence, with the noise that it finds in the episode
    lower, upper the range over the models of an ensemble

Rewards are in the words of the run: minus a variable is told as that variable. Where the episode, or one
model's course under the sequence, leaves the range of the observations, the replay is an extrapolation:
`beyond` says so, and no number of it is given. A predicted state may lie beyond the range by a twentieth of
it: predictions for a state at its limit scatter around that limit.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.episode import Episode
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.reporting.style import Wording

RANGE = "range: "
# The share of its range by which a predicted state may leave it.
SLACK = 0.05
UNDEFINED = "the model has no finite number under these actions"


def beyond(objective: CounterfactualReturn, sequence: Tensor) -> list[str]:
    """Where a replay lies outside the data, a sentence each; empty if it does not.

    Args:
        sequence: The actions, (H,) long.
    """
    own = [text.removeprefix(RANGE) for text in objective.warnings() if text.startswith(RANGE)]
    if not bool((sequence != objective.observed).any()):
        return own
    states = _states(objective, sequence)
    if not bool(states.isfinite().all()):
        return [*own, UNDEFINED]
    surrogate, episode = objective.surrogate, objective.case.episode
    # One row for each step of each model's course.
    rows = episode.values.unsqueeze(1).repeat(1, states.shape[1], 1)
    rows[..., [episode.names.index(name) for name in surrogate.names]] = states.to(rows)
    found = surrogate.outside(Episode(episode.identity, episode.names, rows.flatten(0, 1)), SLACK)
    said = [text.removeprefix(RANGE) for text in found]
    return [*own, *(f"under these actions {text}" for text in said if text not in own)]


def course(
    objective: CounterfactualReturn, sequence: Tensor, record: Mapping[str, Any], words: Wording, shown: bool
) -> dict[str, Any]:
    """The rewards and the states at each step, as observed and under a sequence.

    Args:
        sequence: The actions, (H,) long.
        record: `CounterfactualReturn.trajectory_record` of the sequence.
        shown: Whether the replay may be shown.

    Returns:
        ``rewards`` and ``states``, lists of series with ``name``, ``observed``, ``after``, ``lower`` and
        ``upper`` (T numbers each; the last three None where nothing is shown, or there is one model alone).
    """
    changed = bool((sequence != objective.observed).any())
    replayed = shown and changed
    ends = [record.get(name) for name in ("rewards_lower", "rewards_upper")] if replayed else [None, None]
    if words.sign < 0:
        ends.reverse()
    names = objective.surrogate.names
    before = objective.case.episode.columns(names)
    states = _states(objective, sequence) if replayed else None
    several = states is not None and states.shape[1] > 1
    return {
        "rewards": {
            "name": words.level,
            "observed": signed(record["observed_rewards"], words),
            "after": signed(record["rewards"], words) if replayed else None,
            "lower": signed(ends[0], words),
            "upper": signed(ends[1], words),
        },
        "states": [
            {
                "name": name,
                "observed": before[:, place].tolist(),
                "after": None if states is None else states.mean(1)[:, place].tolist(),
                "lower": states.amin(1)[:, place].tolist() if states is not None and several else None,
                "upper": states.amax(1)[:, place].tolist() if states is not None and several else None,
            }
            for place, name in enumerate(names)
        ],
    }


def signed(values: Any, words: Wording) -> Any:
    """Rewards in the words of the run; None stays None."""
    if values is None:
        return None
    return (
        [words.sign * value + 0.0 for value in values]
        if isinstance(values, list)
        else (words.sign * values + 0.0)
    )


@torch.no_grad()
def _states(objective: CounterfactualReturn, sequence: Tensor) -> Tensor:
    """Each model's states in the variables' units, (T, M, D)."""
    return objective.surrogate.member_units(objective.replay(sequence.unsqueeze(0))[0])
