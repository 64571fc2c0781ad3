"""Trials as a page shows them: a row for each, and the best reward so far."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.trials.log import TrialLog
from rehearsal_torch.data.trials.trial import Trial

# Rows that are listed one by one; the picture has all.
MOST = 200


def shown_trials(task: CausalTask, trials: Sequence[Trial]) -> dict[str, Any]:
    """The trials of a task, as plain data.

    Args:
        trials: All trials by number.

    Returns:
        ``rows``: the last `MOST` ones, latest first; ``more``: how many earlier ones there are; ``pending``:
        those without a report; ``course``: the numbers of the completed ones, their rewards, and the best so
        far after each.
    """
    done = [trial for trial in trials if trial.state == "completed"]
    values = task.reward_of(TrialLog(task, tuple(trials)).table).tolist() if done else []
    rewards = dict(zip((trial.id for trial in done), values, strict=True))
    rows = [_row(trial, rewards.get(trial.id)) for trial in trials]
    return {
        "rows": rows[-MOST:][::-1],
        "more": max(0, len(rows) - MOST),
        "pending": [row for row in rows if row["state"] == "pending"],
        "course": course(list(rewards), values),
    }


def course(numbers: Sequence[int], rewards: Sequence[float]) -> dict[str, Any]:
    """The rewards of completed trials, and the best so far after each.

    Args:
        numbers: Their numbers.
        rewards: Their rewards.
    """
    return {"numbers": list(numbers), "rewards": list(rewards), "best": list(accumulate(rewards, max))}


def _row(trial: Trial, reward: float | None) -> dict[str, Any]:
    return {
        "id": trial.id,
        "state": trial.state,
        "settings": trial.settings,
        "asked": trial.asked if trial.ran is not None else None,
        "nodes": dict(trial.nodes),
        "reward": reward,
        "reason": trial.reason,
    }
