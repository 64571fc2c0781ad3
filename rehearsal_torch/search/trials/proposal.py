"""The next action to try: of the start design, from a search, or one of many space-filling points.

An action that is pending or has failed is never proposed again, and neither is one outside bounds or limits,
or at none of its levels.

Pending actions are passed to objectives that take them (`CausalObjective.takes_pending`). For others the
model of the search is conditioned on these trials, imputed with their posterior mean, which removes the
epistemic uncertainty near actions under way: several actions can be requested one after the other.

If the search finds a pending or failed action, the best of many space-filling points takes its place. Claims
and recommendations follow from the completed trials alone: an imputed outcome is no observation.

Source: Ginsbourger et al. (2010), Sec. 4.2 ("kriging believer"); Balandat et al. (2020), App. F (pending
points).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trials.trial import State
from rehearsal_torch.data.trials.trial_log import TrialLog
from rehearsal_torch.objectives.expected_reward import CausalObjective
from rehearsal_torch.objectives.objective import class_of
from rehearsal_torch.problems.trials.causal_world import experiment_rows
from rehearsal_torch.problems.trials.user_experiments import start_points
from rehearsal_torch.search.search import Budget, Search
from rehearsal_torch.search.trials.acquisition import TrialSearch, decided, recommend
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel

TRIES = 512  # Points of the start design that may be skipped; space-filling points for a new action


class NothingLeftError(ValueError):
    """All possible actions are pending or have failed."""


def designed_action(
    task: CausalTask,
    log: TrialLog,
    initial: int,
    seed: int,
    held: Mapping[str, Sequence[float]] | None = None,
) -> Tensor:
    """The next point of the start design for `initial` points, (k,), by the number of the trial; points that
    are already trials are skipped. If all are, as where actions have few levels, it is the one that was
    completed least often, and so where nodes arise; a NothingLeftError if all points are pending or failed.
    """
    number = log.next_id - 1
    points = start_points(task, max(initial, number + 1), seed, held)[number:]
    known: tuple[State, ...] = ("pending", "failed") if task.settable else ("completed", "pending", "failed")
    if len(points) and not bool(log.contains(points[0], *known)):
        return points[0]
    points = start_points(task, max(initial, number + TRIES), seed, held)
    points = points if len(points) < number + TRIES else points[number : number + TRIES]
    points = points[~log.contains(points, "pending", "failed")]
    if not len(points):
        raise NothingLeftError(_nothing_left_message(task, held))
    return points[log.times(points, "completed").argmin()]


def _nothing_left_message(task: CausalTask, held: Mapping[str, Sequence[float]] | None = None) -> str:
    grid = task.region(held).finite()
    points = f"{TRIES} space-filling points" if grid is None else f"{len(grid)} settings that there are"
    remedy = "tell, or fill in, the results of what waits, or abandon it, or offer other settings"
    return f"nothing is left to try: all {points} wait for their result or have failed; {remedy}"


def another_action(objective: CausalObjective, log: TrialLog, seed: int) -> Tensor:
    """The best of many space-filling points, (k,); if all are pending or failed, a NothingLeftError."""
    seed, spread = round_seed(seed, f"another {objective.case.identity}"), list[Tensor]()
    for region in (each.region() for each in objective.by_set()):
        settings = region.finite()
        spread.append(region.units(region.spread(TRIES, seed) if settings is None else settings))
    points = torch.cat(spread)
    points = points[~log.contains(points, "pending", "failed")]
    if not len(points):
        raise NothingLeftError(_nothing_left_message(objective.task, objective.levels))
    with torch.no_grad():
        best = objective(points).nan_to_num(nan=-torch.inf).argmax()
    action = points[best].to("cpu", torch.float64)
    check_settable(objective.task, action, "proposed")
    return action


def searched_action(objective: CausalObjective, search: Search[Any], log: TrialLog, seed: int) -> Tensor:
    """The action (k,) of a search, or `another_action` if it is pending or failed; ValueError without one."""
    if isinstance(search, TrialSearch):
        action = search.best(objective, Budget(search.budget_s)).action.detach().to("cpu", torch.float64)
    else:
        action = _action_of(search(objective), search, objective)
    check_settable(objective.task, action, "proposed")
    return another_action(objective, log, seed) if bool(log.contains(action, "pending", "failed")) else action


def _action_of(decision: Decision, search: Search[Any], objective: CausalObjective) -> Tensor:
    task = objective.task
    if decision.alteration is None:
        raise ValueError(
            "the search found no action to try: "
            f"{decision.reason or type(search).__name__ + ' gave no reason'}"
        )
    setting = dict(zip(decision.alteration.names, decision.alteration.values.tolist(), strict=True))
    missing = [name for name in task.required if name not in setting]
    if missing:
        raise ValueError(
            f"the search gave no value for {missing}: expected a value for each of {list(task.required)}; "
            f"got {setting}"
        )
    setting |= {name: objective.levels[name][0] for name in task.context}
    return torch.tensor([setting.get(name, math.nan) for name in task.settings], dtype=torch.float64)


def check_settable(task: CausalTask, action: Tensor, what: str) -> None:
    """A ValueError for settings (k,) outside bounds, levels or limits; `what`: proposed, for instance."""
    try:
        task.check_action(action[: len(task.actions)])
    except ValueError as error:
        raise ValueError(
            f"the action that was {what} cannot be set ({error}): does the table hold values of very "
            "different magnitude?"
        ) from error


def aware_of_pending(
    make: Callable[..., CausalObjective], model: CausalModel, case: RehearsalCase, log: TrialLog
) -> CausalObjective:
    """The objective of the next action, aware of pending and failed trials: `make` takes (model, case), and
    for ``pending``, (p, k), if it can; else the model is conditioned, in place, on imputed trials.
    """
    if not log.in_states("pending", "failed"):
        return make(model, case)
    kind = class_of(make)
    if kind is not None and issubclass(kind, CausalObjective) and kind.takes_pending:
        return make(model, case, pending=log.settings("pending", "failed"))
    impute_pending(model, log.task, log)
    return make(model, case)


def impute_pending(model: CausalModel, task: CausalTask, log: TrialLog) -> None:
    """Conditions a model, in place, on the completed trials, and the others at their expected outcomes."""
    rows = log.table + log.partial("stopped")
    model.condition(rows)
    model.condition(rows + expected_rows(model, task, log))


def expected_rows(model: CausalModel, task: CausalTask, log: TrialLog) -> Table:
    """Pending and failed actions with every node as measured, or at its posterior mean, under the mean of its
    noise.

    A node that the model does not represent takes the value of the nearest completed trial; this is used only
    if the model is one of the reward alone and the reward reads several nodes.
    """
    table, actions, width = log.table, log.settings("pending", "failed"), task.width
    asked, done = actions[:, : len(width)], task.settings_of(table)[:, : len(width)]
    nearest = torch.cdist(task.coordinates(asked) / width, task.coordinates(done) / width).argmin(-1)
    nodes = dict(zip(task.nodes, table.columns(task.nodes)[nearest].unbind(-1), strict=True))
    network, reward = model.network(), task.reward
    with torch.no_grad():
        noise = model.draws(1024, 0).mean(0, keepdim=True)
        node_means = network.propagate(actions.to(noise.device), noise)[0].to(actions.device)
        for row, trial in enumerate(log.in_states("pending", "failed")):
            if trial.state == "pending" and trial.nodes:
                fixed = {name: noise.new_tensor(value) for name, value in trial.nodes.items()}
                action = actions[row : row + 1].to(noise.device)
                node_means[row] = network.propagate(action, noise, fixed=fixed)[0][0].to(actions.device)
        predicted = dict(zip(network.task.nodes, node_means[:, 0].unbind(-1), strict=True))
        total = network.reward(node_means)[:, 0]
    nodes |= {name: value for name, value in predicted.items() if name in nodes}
    if isinstance(reward, WeightedSum) and len(reward.names) == 1 and reward.names[0] not in predicted:
        nodes[reward.names[0]] = total / reward.weights[reward.names[0]]
    return experiment_rows(task, actions, nodes)


def as_measured(case: RehearsalCase, log: TrialLog) -> RehearsalCase:
    """A case by whose name claims are drawn: that which it has if nothing waits and nothing has failed."""
    return replace(case, identity=f"experiment {len(log.in_states('completed')) + 1}")


def decided_beside(
    make: Callable[..., CausalObjective],
    search: Search[CausalObjective],
    model: CausalModel,
    case: RehearsalCase,
    log: TrialLog,
    seed: int,
) -> tuple[CausalObjective, Decision]:
    """The decision of a round, and the objective of the completed trials that claims it."""
    measured = as_measured(case, log)
    completed = make(model, measured)
    with_pending = aware_of_pending(make, deepcopy(model), case, log)
    if not isinstance(search, TrialSearch):
        return completed, search(with_pending)
    budget = Budget(search.budget_s)
    proposal = search.best(with_pending, budget)
    recommended = recommend(completed, round_seed(seed, measured.identity), budget)
    if bool(log.contains(proposal.action.to("cpu", torch.float64), "pending", "failed")):
        try:
            action = another_action(with_pending, log, seed).to(completed.visited)
        except NothingLeftError as error:
            advice = decided(completed, replace(proposal, action=recommended.action), recommended, budget)
            trace = {name: entry for name, entry in advice.trace.items() if name != "predicted_reward"}
            reason = Finding("nothing_left", str(error))
            return completed, replace(advice, alteration=None, reason=reason, trace=trace)
        with torch.no_grad():
            proposal = replace(proposal, action=action, value=float(with_pending(action.unsqueeze(0))[0]))
    decision = decided(completed, proposal, recommended, budget)
    return completed, replace(decision, trace={**decision.trace, "pending": len(log.in_states("pending"))})
