"""Curves of the learnt surrogate of a run of trials: rewards along actions, nodes along an input, and noise.

    reward   E[r | a] along each action, the other actions as recommended: the posterior mean and the
             epistemic standard deviation over plausible networks
    node     E_u[x_i | w] along one input of a node (its first parent that is a node, else its first action),
             the other inputs as under the recommended action: the mean over the noise of the mechanism's
             posterior mean, and of its posterior standard deviation
    noise    the density of a node's learnt noise u_hat (mean 0, variance 1 in theory), and the noise that was
             recovered from the trials; draws that a model holds at the ends of its range
             (`estimators.noise_models`) lie beyond what is shown

A causal world adds the true curves: E[r | a], the mean of the node's equation over its noise, and the density
of the standardised identifiable part of the noise, with the sign of u_hat. Trials are points; those whose
other settings differ from the curve's by at most a tenth of their range are marked as near.

Source: Ren et al. (2024, version 4), Fig. 13 (Y given X on Dropwave, with trials).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.mechanism import NodeMechanism
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.problems.problem import CausalProblem, Problem
from rehearsal_torch.problems.trials.causal_world import CausalWorld
from rehearsal_torch.round_record import answered
from rehearsal_torch.seeding import numpy_generator
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel, CausalNetwork, inputs_of
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.surrogates.structural_counterfactuals import recover
from rehearsal_torch.surrogates.surrogate import Surrogate

REWARD, NODE, NOISE = "reward", "node", "noise"
LEARNT, TRUE, NEAR, FAR, CHOSEN = "learnt", "true", "trial", "trial elsewhere", "recommended"
# Points of the curves along all actions together, and of one of them; noise draws of a mean, and of a part
# of its points.
POINTS, FEWEST, MOST, MEAN_DRAWS, CHUNK = 360, 25, 161, 256, 16_384
MAX_NODES, NOISE_DRAWS, BINS, TRUE_DRAWS = 4, 8192, 64, 100_000
NEARBY = 0.1


@dataclass(frozen=True)
class CurveRow:
    """One point of a curve, or one trial.

    Attributes:
        panel: "reward", "node" or "noise".
        name: The node; "reward" for the reward.
        along: The action or parent on the horizontal axis; empty for noise.
        series: "learnt", "true", "trial", "trial elsewhere" or "recommended".
        x: The place on the horizontal axis; for noise in standard deviations.
        value: The mean, with epistemic ``std`` if learnt, the density, or the observed value; empty for none.
    """

    panel: str
    name: str
    along: str
    series: str
    x: float
    value: float | str = ""
    std: float | str = ""


def curve_table(
    problem: Problem, surrogate: Surrogate, lines: Sequence[Mapping[str, Any]], seed: int = 0
) -> list[dict[str, Any]]:
    """The rows of ``surrogate.csv``: curves through the last recommendation of a run, else its last action,
    with all trials, which the surrogate was fitted to; none without trials or a single recommended action.
    """
    if not (lines and isinstance(problem, CausalProblem) and isinstance(surrogate, CausalModel)):
        return []
    recommendation = lines[-1].get("recommendation") or lines[-1].get("alteration") or {}
    settings = [{**lines[-1].get("given", {}), **recommendation}.get(name) for name in problem.task.settings]
    if not all(isinstance(value, int | float) for value in settings):
        return []
    trials = problem.observations()
    for line in lines:
        trials = trials + answered(line) if "answer" in line else trials
    action = torch.tensor(settings, dtype=torch.float64)
    rows = curve_rows(problem, surrogate, trials, action, int(lines[-1]["index"]), seed)
    return [asdict(row) for row in rows]


@torch.no_grad()
def curve_rows(
    problem: CausalProblem, model: CausalModel, trials: Table, action: Tensor, index: int = 0, seed: int = 0
) -> list[CurveRow]:
    """The curves of a fitted model through settings (k,), with a world's truth, as of round `index`."""
    case = problem.case(index)
    assert isinstance(case, RehearsalCase)
    # Trials and worlds lie on the CPU, as do the curves.
    model = model.on_cpu()
    objective = PosteriorMean(model, case, seed=seed)
    action = action.to(objective.visited)
    world = problem if isinstance(problem, CausalWorld) else None
    rows = list[CurveRow]()
    for name in problem.task.actions:
        rows += _action_rows(objective, world, trials, action, name)
    network, noise = objective.network, model.draws(MEAN_DRAWS, seed)
    for position in range(len(network.task.nodes))[-MAX_NODES:]:
        rows += _input_rows(network, world, trials, action, position, noise)
        rows += _noise_rows(model, network, world, trials, position, seed)
    return rows


def _action_rows(
    objective: PosteriorMean, world: CausalWorld | None, trials: Table, action: Tensor, name: str
) -> Iterator[CurveRow]:
    task = objective.task
    column = task.actions.index(name)
    points = _slice(task, action, column)
    rewards = objective.plausible(points)
    means, stds = rewards.mean(-1), rewards.std(-1)
    yield from _points(REWARD, REWARD, name, LEARNT, points[:, column], means, stds)
    if world is not None:
        yield from _points(REWARD, REWARD, name, TRUE, points[:, column], world.expected(points))
    yield CurveRow(REWARD, REWARD, name, CHOSEN, float(action[column]))
    tests = trials.columns(task.settings).double()
    away = (tests - action) / objective.claimed.bounds.diff(dim=0)[0].clamp_min(1e-300)
    yield from _marks(REWARD, REWARD, name, tests[:, column], task.reward_of(trials), away, column)


def _slice(task: CausalTask, action: Tensor, column: int) -> Tensor:
    """Actions (n, k) within limits that differ from one in a coordinate: its levels, or a grid."""
    name = task.actions[column]
    count = max(FEWEST, min(MOST, POINTS // len(task.actions)))
    grid = task.grid(name, task.box.bounds()[name], count)
    if name in task.box.levels:
        grid = torch.tensor(task.box.levels[name], dtype=torch.float64)
    grid = torch.cat([grid, action[column].unsqueeze(0)]).unique(sorted=True)
    points = action.repeat(len(grid), 1)
    points[:, column] = grid
    if task.limits is None:
        return points
    allowed = task.limits.contains(points[:, : len(task.actions)])
    return points[allowed | (points == action).all(-1)]


def _input_rows(
    network: CausalNetwork,
    world: CausalWorld | None,
    trials: Table,
    action: Tensor,
    position: int,
    noise: Tensor,
) -> Iterator[CurveRow]:
    """The mean of a node along one input; none without inputs, or where it is the reward along an action."""
    task, node, mechanism = network.task, network.task.nodes[position], network.mechanisms[position]
    names = task.inputs(node)
    reward_alone = isinstance(task.reward, WeightedSum) and set(task.reward.weights) == {node}
    if not names or (reward_alone and set(names) == set(task.settings)):
        return
    along = next((name for name in names if name in task.nodes), names[0])
    column = names.index(along)
    values = network.propagate(action, noise)[0].mean(0)
    settings = dict(zip(task.settings, action, strict=True)) | dict(zip(task.nodes, values, strict=True))
    trials = trials.rows(~trials.columns((node, *names)).isnan().any(-1))
    cells = trials.columns(names).double()
    lower, upper = cells.amin(0), cells.amax(0)
    if along in task.actions:
        grid = _slice(task, action, task.actions.index(along))[:, task.actions.index(along)]
    else:
        ends = (torch.minimum(lower[column], settings[along]), torch.maximum(upper[column], settings[along]))
        grid = torch.linspace(float(ends[0]), float(ends[1]), MOST, dtype=torch.float64)
    inputs = torch.stack([settings[name] for name in names]).repeat(len(grid), 1)
    inputs[:, column] = grid
    known = dict(zip(names, inputs.unbind(-1), strict=True))
    means, stds = _average_belief(mechanism, inputs_of(task, node, known, inputs.shape), noise[:, position])
    yield from _points(NODE, node, along, LEARNT, grid, means, stds)
    if world is not None and node in world.task.nodes and world.task.inputs(node) == names:
        true = world.mean_of(node, known)
        if true is not None:
            yield from _points(NODE, node, along, TRUE, grid, true)
    yield CurveRow(NODE, node, along, CHOSEN, float(settings[along]))
    free = ~trials.altered[:, trials.names.index(node)]
    away = (cells - inputs[0]) / (upper - lower).clamp_min(1e-300)
    values_of_node = trials.columns([node])[:, 0]
    yield from _marks(NODE, node, along, cells[free, column], values_of_node[free], away[free], column)


def _average_belief(mechanism: NodeMechanism, inputs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Posterior mean and standard deviation of a mechanism over the noise (S,): (n, p) -> (n,) each."""
    means, stds = list[Tensor](), list[Tensor]()
    for part in mechanism.scaled(inputs).split(max(1, CHUNK // len(noise))):
        shape = (len(part), len(noise), 1)
        mean, std = mechanism.belief(part.unsqueeze(-2), noise.unsqueeze(-1))
        means.append(mean.expand(shape).mean((1, 2)))
        stds.append(std.expand(shape).mean((1, 2)))
    return torch.cat(means), torch.cat(stds)


def _noise_rows(
    model: CausalModel,
    network: CausalNetwork,
    world: CausalWorld | None,
    trials: Table,
    position: int,
    seed: int,
) -> Iterator[CurveRow]:
    node = network.task.nodes[position]
    learnt = model.draws(NOISE_DRAWS, seed)[:, position]
    true = _true_noise(network, world, position)
    inside = _within_range(learnt)
    pooled = inside if true is None else torch.cat([inside, true])
    lower, upper = (float(pooled.quantile(level)) for level in (0.001, 0.999))
    if not lower < upper:
        return
    edges = torch.linspace(lower, upper, BINS + 1, dtype=torch.float64)
    for series, draws, count in ((LEARNT, inside, len(learnt)), (TRUE, true, TRUE_DRAWS)):
        if draws is not None:
            density = torch.histogram(draws, edges).hist / (count * (edges[1] - edges[0]))
            yield from _points(NOISE, node, "", series, (edges[1:] + edges[:-1]) / 2, density)
    for value in _recovered(model, network, trials, position).tolist():
        yield CurveRow(NOISE, node, "", NEAR, value)


def _within_range(draws: Tensor) -> Tensor:
    """The draws without those at the ends of a range: several equal ones, where draws differ otherwise."""
    values, counts = draws.unique(return_counts=True)
    if 2 * len(values) < len(draws):
        return draws
    ends = values[[0, -1]][counts[[0, -1]] > 1]
    return draws[~torch.isin(draws, ends)]


def _true_noise(network: CausalNetwork, world: CausalWorld | None, position: int) -> Tensor | None:
    """Draws of the identifiable noise of a node, standardised, with its sign in the start design; or None."""
    node = network.task.nodes[position]
    if world is None or network.task.nodes != world.task.nodes:
        return None
    draws = world.recoverable(node, world.noise_rows(TRUE_DRAWS, numpy_generator(0))[:, position])
    if not float(draws.std()) > 0:
        return None
    table, noise = world.explained()
    pairs = torch.stack([recover(network, table)[:, position], world.recoverable(node, noise[:, position])])
    sign = -1.0 if float(torch.corrcoef(pairs)[0, 1]) < 0 else 1.0
    return sign * (draws - draws.mean()) / draws.std()


def _recovered(model: CausalModel, network: CausalNetwork, trials: Table, position: int) -> Tensor:
    """The noise of a node in the trials in which it was not set, as the model fits or recovers it."""
    if isinstance(model, ExogenousModel):
        return model.noise_of_rows()[position][model.complete[position]]
    node = network.task.nodes[position]
    if not {*network.task.nodes, *network.task.settings} <= set(trials.names):
        return torch.zeros(0, dtype=torch.float64)
    return recover(network, trials)[~trials.altered[:, trials.names.index(node)], position]


def _points(
    panel: str, name: str, along: str, series: str, x: Tensor, values: Tensor, stds: Tensor | None = None
) -> Iterator[CurveRow]:
    spreads: list[float | str] = [""] * len(x) if stds is None else stds.tolist()
    for along_x, value, std in zip(x.tolist(), values.tolist(), spreads, strict=True):
        yield CurveRow(panel, name, along, series, along_x, value, std)


def _marks(
    panel: str, name: str, along: str, x: Tensor, values: Tensor, away: Tensor, column: int
) -> Iterator[CurveRow]:
    """Trials, by whether the inputs other than `column` are near those of the curve."""
    columns = [k for k in range(away.shape[-1]) if k != column]
    near = (away[:, columns].abs() <= NEARBY).all(-1)
    for along_x, value, close in zip(x.tolist(), values.tolist(), near.tolist(), strict=True):
        yield CurveRow(panel, name, along, NEAR if close else FAR, along_x, value)
