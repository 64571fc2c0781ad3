"""Rows of claims about trials: expected rewards with their epistemic standard deviation, beside the truth.

A model of trials claims, at an action a, the posterior mean m of E[r | a] and the epistemic standard
deviation s, that of E[r | a] over plausible networks. In a world that knows E[r | a] the claim holds where

    |m - E[r | a]| <= 2 s,

which a normal belief expects of 95.4 % of the actions. The actions are those that matter for what is tried
next and what is kept (`near_best`): the five visited actions with the largest posterior mean, and 15
neighbours of each, a + .05 (upper - lower) z with z ~ N(0, I), clipped to the box; neighbours that may not be
tried are left out.

The recommendation has a row of its own, with the claimed chance that it is better than the best other visited
action, and the true expected reward of that action (`runner_up`). ``start`` and ``optimum`` are the best
expected reward of the start design and the largest one.

Source: Dawid (1982) (calibration); Frazier (2018), Sec. 4.2 (recommendation). The choice of actions is ours.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from rehearsal_torch.data.finite import ranked
from rehearsal_torch.evaluation.rows import Row, number
from rehearsal_torch.objectives.expected_reward import CausalObjective, PosteriorMean
from rehearsal_torch.problems.causal.world import CausalWorld
from rehearsal_torch.search.trials.acquisition import recommend, sureness
from rehearsal_torch.seeding import generator, round_seed
from rehearsal_torch.surrogates.network.causal_model import CausalModel

COLUMNS = (
    "dataset",
    "method",
    "seed",
    "round",
    "point",
    "claimed",
    "std",
    "true",
    "held",
    "chance",
    "runner_up",
    "start",
    "optimum",
)
NUMBERS = COLUMNS[5:]
# The point of the recommendation.
RECOMMENDED = "recommended"
# Number of visited actions, of neighbours of each, and their standard deviation in widths of the box.
BEST, NEIGHBOURS, SPREAD = 5, 15, 0.05
# Number of standard deviations within which a claim holds.
WITHIN = 2.0


def claim_rows(model: CausalModel, world: CausalWorld, done: int, seed: int) -> list[Row]:
    """What a model claims after some rounds, beside the truth; without the columns of the run.

    Objective and recommendation are those of the round that follows.

    Args:
        model: Fitted to the start design and the trials of the rounds.
        world: The world that knows the truth.
        done: The number of rounds.
        seed: The seed of the run.

    Returns:
        One row per action near the best trials, then that of the recommendation.
    """
    case = replace(world.case(0), identity=str(done))
    objective = PosteriorMean(model, case, seed=seed)
    names, actions = near_best(objective, generator(round_seed(seed, f"{done}, neighbours")))
    with torch.no_grad():
        claimed = objective.expected(actions, objective.other).tolist()
        std = objective.plausible(actions).std(-1).tolist()
    true = world.expected(actions.cpu()).tolist()
    points = zip(names, claimed, std, true, strict=True)
    return [_row(done, *point) for point in points] + [_recommended(objective, world, done, seed)]


def near_best(objective: CausalObjective, draws: torch.Generator) -> tuple[list[str], Tensor]:
    """The visited actions with the largest posterior mean and neighbours of each, with their names.

    Args:
        objective: The posterior mean.
        draws: The generator of the neighbours.

    Returns:
        Names, "tried 1" for the best action and "near 1" for its neighbours, and actions (n, k).
    """
    visited = objective.visited[objective.allowed(objective.visited)]
    with torch.no_grad():
        means = ranked(objective.expected(visited, objective.other))
    best = visited[means.argsort(descending=True, stable=True)[:BEST]]
    lower, upper, width = (
        each.to(best) for each in (objective.box.lower, objective.box.upper, objective.box.width)
    )
    steps = torch.randn(len(best), NEIGHBOURS, best.shape[-1], generator=draws, dtype=torch.float64)
    near = (best.unsqueeze(1) + SPREAD * width * steps.to(best)).clamp(lower, upper).flatten(0, 1)
    kept = objective.allowed(near)
    names = [f"near {place + 1}" for place in range(len(best)) for _ in range(NEIGHBOURS)]
    names = [name for name, allowed in zip(names, kept.tolist(), strict=True) if allowed]
    return [*(f"tried {place + 1}" for place in range(len(best))), *names], torch.cat([best, near[kept]])


def claims_typed(rows: Iterable[Mapping[str, str]]) -> list[Row]:
    """Rows read from CSV, with texts converted to numbers."""
    return [
        {
            **line,
            **{key: int(line[key]) for key in ("seed", "round")},
            **{key: number(line[key]) for key in NUMBERS},
        }
        for line in rows
    ]


def at_points(rows: Sequence[Row]) -> list[Row]:
    """The rows of the actions near the best trials."""
    return [row for row in rows if row["point"] != RECOMMENDED]


def of_recommendations(rows: Sequence[Row]) -> list[Row]:
    """The rows of the recommendations."""
    return [row for row in rows if row["point"] == RECOMMENDED]


def _recommended(objective: CausalObjective, world: CausalWorld, done: int, seed: int) -> Row:
    found = recommend(objective, round_seed(seed, objective.case.identity))
    sure = sureness(objective, found)
    true = float(world.expected(found.action.cpu()))
    other = math.nan if sure.runner_up is None else float(world.expected(sure.runner_up.cpu()))
    row = _row(done, RECOMMENDED, found.predicted, sure.std, true)
    start = float(world.expected(world.observations().columns(world.task.actions)).max())
    return row | {
        "chance": sure.chance,
        "runner_up": other,
        "start": start,
        "optimum": float(world.optimal_value),
    }


def _row(done: int, point: str, claimed: float, std: float, true: float) -> Row:
    return {
        "round": done,
        "point": point,
        "claimed": claimed,
        "std": std,
        "true": true,
        "held": float(abs(claimed - true) <= WITHIN * std),
        **dict.fromkeys(("chance", "runner_up", "start", "optimum"), math.nan),
    }
