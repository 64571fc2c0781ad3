"""Random episodes under step scores whose limits lie among the states that sequences reach."""

from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.objectives.task_reward import StepScore
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble
from rehearsal_torch.surrogates.transition_ridge import HALVES
from tests.toys.curved_episodes import curved_episode
from tests.toys.episodes import transition_episode, transition_model


def scored_episode(
    seed: int,
    horizon: int = 5,
    changes: int = 2,
    levels: int = 3,
    members: int = 1,
    effects: str = "sparse",
    dosed: bool = False,
    spread: float = 3.0,
    fixed: tuple[int, ...] = (),
    use: str = "mean",
) -> CounterfactualReturn:
    """An episode of random transition models of three states and one drug."""
    drawn = transition_episode(
        seed,
        horizon,
        changes,
        3,
        levels,
        spread=spread,
        effects=effects,
        fixed=[t for t in fixed if t < horizon],
    )
    model: EpisodeSurrogate = drawn.surrogate
    if members > 1:
        # Both halves have the same members, whichever of them chooses.
        seeds = (seed + place // HALVES for place in range(HALVES * members))
        made = (transition_model(each, 3, levels, 1, 8, spread, effects) for each in seeds)
        model = TransitionEnsemble(lambda: next(made), HALVES * members)
    return scored_as(model, drawn, seed, dosed, use)


def scored_curve(seed: int, horizon: int, changes: int, bent: float) -> CounterfactualReturn:
    """An episode of known, curved equations."""
    drawn = curved_episode(seed, horizon, changes, 3, 3, bent)
    return scored_as(drawn.surrogate, drawn, seed, False)


def scored_as(
    model: EpisodeSurrogate, drawn: CounterfactualReturn, seed: int, dosed: bool, use: str = "mean"
) -> CounterfactualReturn:
    generator = torch.Generator().manual_seed(seed)
    plain = CounterfactualReturn(model, drawn.case, drawn.reward, drawn.changes)
    actions = torch.randint(plain.actions, (40, len(plain.observed)), generator=generator)
    states = model.member_units(plain.replay(actions)).reshape(-1, 3)
    near = states[torch.randint(len(states), (4,), generator=generator)]
    score: dict[str, dict[str, dict[str, float]]] = {
        "first": {"x0": {_rule(">", near[0, 0]): 1, _rule(">=", near[1, 0]): 2}},
        "second": {"x1": {_rule("<", near[0, 1]): 2, _rule(">", near[1, 1]): 1}},
        "third": {"x2": {_rule("<=", near[2, 2]): 1}, "x0 / x2": {_rule("<", near[3, 0] / near[3, 2]): 3}},
    }
    if dosed:
        score["second"]["drug0"] = {"> 0": 1, "> 0.5": 1.5}
    reward = StepScore(score, ["drug0"])
    return CounterfactualReturn(model, drawn.case, reward, drawn.changes, use)


def weighed_episode(seed: int, members: int = 2, use: str = "worst", **drawn: Any) -> CounterfactualReturn:
    """The same with a linear reward."""
    scored = scored_episode(seed, members=members, **drawn)
    reward = LinearReward({"x0": -1.0, "x1": 0.5})
    return CounterfactualReturn(scored.surrogate, scored.case, reward, scored.changes, use)


def _rule(sign: str, limit: Tensor) -> str:
    return f"{sign} {float(limit):.4f}"
