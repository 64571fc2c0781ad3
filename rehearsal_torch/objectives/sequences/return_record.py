"""The record of a decision for an episode: its effect step by step, as plain data.

The rewards of the steps add up to the return. Where the worst member of an ensemble counts, they are those of
the member with the smallest return.
"""

from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, taken


@torch.no_grad()
def return_record(objective: CounterfactualReturn, decision: Decision) -> dict[str, Any]:
    """The effect of a decision step by step, as plain data.

    Returns:
        ``horizon`` T, ``changes`` k, ``actions`` and ``observed_actions``, ``rewards`` and
        ``observed_rewards`` (T numbers each); by step ``observed_doses``, as they were given,
        ``level_doses``, those of the observed actions' levels, and ``doses``, those of the actions, where a
        dose that keeps its level stays as it was given; the returns ``value`` and ``observed``, and
        ``improvement`` (value - observed) / |observed|. For an ensemble also
        ``member_gains`` (M), and ``rewards_lower`` and ``rewards_upper``, the range of the members' rewards
        at each step; for a reward with related ones (`Reward.related`) ``related``, the returns by each: name
        to ``value`` and ``observed``.
    """
    sequence, observed, outcome = objective.sequence(decision), objective.observed, objective.outcome()
    given, levels = given_doses(objective), objective.surrogate.doses(observed)
    chosen = objective.surrogate.doses(sequence)
    before = objective.trajectory.states
    changed = bool((sequence != observed).any())
    value = float(objective(sequence)) if changed else outcome
    states = objective.replay(sequence.unsqueeze(0))[0] if changed else before
    return {
        "horizon": objective.horizon,
        "changes": objective.changes,
        "actions": sequence.tolist(),
        "observed_actions": observed.tolist(),
        "rewards": _steps(objective, states, sequence),
        "observed_rewards": _steps(objective, before, observed),
        "doses": torch.where(chosen == levels, given, chosen).tolist(),
        "observed_doses": given.tolist(),
        "level_doses": levels.tolist(),
        "value": value,
        "observed": outcome,
        "improvement": (value - outcome) / abs(outcome) if outcome else 0.0,
        **_bands(objective, states, sequence),
        **_related(objective, states, sequence),
    }


def trajectory_record(objective: Any, decision: Decision) -> dict[str, Any]:
    """The same, or nothing for a decision that has no steps."""
    return return_record(objective, decision) if isinstance(objective, CounterfactualReturn) else {}


def given_doses(objective: CounterfactualReturn) -> Tensor:
    """The doses that were given with each action that may be changed, (H, p) in their units; those of the
    actions' levels if the episode lacks the columns.
    """
    names, episode = objective.surrogate.dose_names, objective.case.episode
    levels = objective.surrogate.doses(objective.observed)
    if not names or not all(name in episode.names for name in names):
        return levels
    return episode.columns(names)[: len(levels)].to(levels)


def _steps(objective: CounterfactualReturn, states: Tensor, actions: Tensor) -> list[float]:
    """The reward at each step, T numbers."""
    if objective.worst:
        every = objective.by_member(states, actions)
        rewards = every[int(every.sum(-1).argmin())]
    else:
        rewards = taken(objective.rewards(states), actions)
    found: list[float] = rewards.tolist()
    return found


def _bands(objective: CounterfactualReturn, states: Tensor, actions: Tensor) -> dict[str, Any]:
    """The members' gains, and the range of their rewards at each step; empty for a single model."""
    if objective.surrogate.members == 1:
        return {}
    every = objective.by_member(states, actions)
    return {
        "member_gains": (every.sum(-1) - objective.member_returns(objective.observed)).tolist(),
        "rewards_lower": every.amin(0).tolist(),
        "rewards_upper": every.amax(0).tolist(),
    }


def _related(objective: CounterfactualReturn, states: Tensor, actions: Tensor) -> dict[str, Any]:
    """The returns by the related rewards; empty if there are none, or the surrogate lacks their doses."""
    before, observed = objective.trajectory.states, objective.trajectory.observed
    whole = torch.cat([actions, observed[len(actions) :]])
    found = {}
    for name, each in objective.related.items():
        ends = {"value": (states, whole), "observed": (before, observed)}
        returns = {end: objective.by_member(*path, each).sum(-1) for end, path in ends.items()}
        found[name] = {
            end: float(every.amin() if objective.worst else every.mean()) for end, every in returns.items()
        }
    return {"related": found} if found else {}
