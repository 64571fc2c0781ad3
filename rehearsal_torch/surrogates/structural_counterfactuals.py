"""Queries of a fitted structural model: abducted noise, samples and counterfactuals.

For a causal network the observation is a table of n rows with its N nodes; for a transition model, an episode
of T time steps with D varying features:

    recover          the noise u = g^-1(w, x) of each row, or u_t = g^-1(s_t, a_t; s_{t+1}) of each step
    sample           rows under given actions, or trajectories from an episode's first state, with fresh u
    counterfactual   the same rows, or the same episode, under other actions, with the abducted u

Nodes and varying features may also be set directly (`fixed`, a hard intervention): they take the given value
and their mechanism is ignored; their descendants change, their ancestors do not.

Source: Ren et al. (2025), Sec. 2.2 and 4.1; Tsirtsis and Gomez-Rodriguez (2023), Eq. 6-7 (abduction, action,
prediction).
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rehearsal_torch.data.decision import action_step
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.mechanisms.sparse_effects import SparseEffects
from rehearsal_torch.seeding import seeded
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.network.causal_surrogate import CausalModel, CausalNetwork, inputs_in
from rehearsal_torch.surrogates.transition import SingleTransition, TransitionModel
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble

Values = Mapping[str, float]
Actions = Tensor | Mapping[str, Any] | Alteration | None
_ACTION = "action["  # actions are named ``action[t]``, as in a decision


@torch.no_grad()
def recover(model: CausalModel | CausalNetwork | TransitionModel, observed: Table | Episode) -> Tensor:
    """Abduction: the exogenous noise (n, N) of a table with every action and node of a causal network, or
    (T - 1, D), in double precision, of an episode with the columns of a transition model, row t that of the
    step from t to t + 1. ValueError if model and observation are of different kinds, or the model is not
    fitted; KeyError if a column is missing.
    """
    if isinstance(model, TransitionModel):
        episode = _episode(observed)
        mechanism, features, width = _double(model), _scaled(model, episode), len(model.varying)
        numbers, _ = _actions(model, episode, None)
        parents = torch.cat([features[:-1], model.levels.encoded(numbers).to(features)], -1)
        return mechanism.abduct(parents, features[1:, :width]).to(episode.values.device)
    network, table = _network(model), _table(observed)
    return _noise(network, table.to(network.device)).to(table.values.device)


@torch.no_grad()
def sample(
    model: CausalModel | TransitionModel,
    actions: Actions,
    count: int,
    seed: int = 0,
    fixed: Values | None = None,
    observed: Episode | None = None,
) -> Tensor:
    """Samples from interventional distributions: fresh noise under the given actions.

    Args:
        actions: For a causal model, (..., k) in their units. For a transition model, action numbers (..., T -
            1), or names to values as for `counterfactual`, or None for the observed ones.
        count: Samples per action; the noise is shared by all actions (common random numbers).
        fixed: Nodes, or varying features after the first step, that are set directly, name to value.
        observed: Transition models only: the episode with the first state, static and contextual features.

    Returns:
        For a causal model (..., count, N), in the order of the network's nodes; for a transition model
            trajectories (..., count, T, D) in the features' units, in the order of ``model.names``.

    Raises:
        ValueError: for a model and observation of different kinds, unknown names, or a model that is not
        fitted.
    """
    if not isinstance(model, TransitionModel):
        if not isinstance(model, CausalModel):
            raise ValueError(f"expected a CausalModel or a TransitionModel; got a {type(model).__name__}")
        if observed is not None:
            raise ValueError("a causal model draws rows, not trajectories: leave `observed` out")
        if not isinstance(actions, Tensor):
            raise ValueError(
                f"expected actions as a tensor (..., {len(model.task.settings)}), in the order of "
                f"{list(model.task.settings)}; got {type(actions).__name__}"
            )
        network = model.network()
        inputs, node_values = actions.to(network.device), _node_settings(network, fixed)
        return network.propagate(inputs, model.draws(count, seed), fixed=node_values)[0].to(actions.device)
    episode = _episode(observed)
    numbers, _ = _actions(model, episode, actions)
    settings, mechanism, width = _settings(model, episode, fixed), _double(model), len(model.varying)
    features = _scaled(model, episode)
    with seeded(seed):
        noise = mechanism.noise((count, episode.horizon - 1))
    shape = (*numbers.shape[:-1], count)
    states = [features[0, :width].expand(*shape, width)]
    for time in range(episode.horizon - 1):
        encoded = model.levels.encoded(numbers[..., time]).to(features).unsqueeze(-2)
        constant = features[time, width:].expand(*shape, -1)
        parents = torch.cat([states[-1], constant, encoded.expand(*shape, -1)], -1)
        states.append(_intervened(mechanism(parents, noise[:, time]), settings))
    return model.units(torch.stack(states, -2)).to(episode.values.device)


@torch.no_grad()
def counterfactual(
    model: CausalModel | CausalNetwork | SingleTransition | TransitionEnsemble,
    observed: Table | Episode,
    actions: Actions = None,
    fixed: Values | None = None,
) -> Table | Episode:
    """Counterfactuals: what would have been observed under other actions, with the noise of the observation;
    of an ensemble the mean over its members, each with its own noise.

    Args:
        observed: A table with every action and node of a network, or an episode of a transition model.
        actions: Changed actions; others stay as observed. For a causal network, name to value. For an
            episode, all action numbers, integers (T - 1,), or name to value: ``action[t]`` to an action
            number, as in a decision's alteration, or a dose to one number, or T - 1 of them, in its unit.
        fixed: Nodes, or varying features after the first step, that are set directly, name to value.

    Returns:
        For a table: actions and nodes, row by row, with the cells that were set marked as altered. For an
            episode: its columns (T, d) with counterfactual varying features and doses.

    Raises:
        ValueError: as `sample`.
        KeyError: if a column is missing.
    """
    if isinstance(model, TransitionEnsemble):
        answers = [counterfactual(member, observed, actions, fixed) for member in model.each]
        mean = torch.stack([answer.values for answer in answers]).mean(0)
        first = answers[0]
        return first.changed(values=mean) if isinstance(first, Episode) else replace(first, values=mean)
    if not isinstance(model, SingleTransition):
        network, table = _network(model), _table(observed)
        if actions is not None and not isinstance(actions, Mapping):
            raise ValueError(f"expected actions as name to value; got a {type(actions).__name__}")
        return _replayed(network, table, actions or {}, fixed)
    episode = _episode(observed)
    numbers, doses = _actions(model, episode, actions)
    if numbers.ndim != 1:
        raise ValueError(f"expected one sequence of actions, (T - 1,); got shape {tuple(numbers.shape)}")
    settings, trajectory = _settings(model, episode, fixed), model.trajectory(episode)
    states = [trajectory.states[:1]]
    for time in range(episode.horizon - 1):
        states.append(_intervened(trajectory.step(states[-1], time, numbers[time]), settings))
    values = episode.values.to(torch.float64, copy=True)
    replayed = model.units(torch.cat(states[1:])).to(values)
    values[1:, [episode.names.index(name) for name in model.varying]] = replayed
    values[:-1, [episode.names.index(name) for name in model.levels.names]] = doses.to(values)
    return episode.changed(values=values)


def _noise(network: CausalNetwork, table: Table) -> Tensor:
    """The noise of every node in every row, (n, N); KeyError if a node has no column."""
    if network.task.graph.bidirected or network.task.settable:
        raise ValueError("what would have been is not known where nodes share hidden causes or are settable")
    columns = []
    for node, mechanism in zip(network.task.nodes, network.mechanisms, strict=True):
        inputs, values = inputs_in(network.task, node, table), table.columns([node]).double()
        columns.append(mechanism.abduct(mechanism.scaled(inputs), values).squeeze(-1))
    return torch.stack(columns, -1)


def _replayed(network: CausalNetwork, table: Table, actions: Values, fixed: Values | None) -> Table:
    names, nodes = network.task.settings, network.task.nodes
    unknown = [name for name in actions if name not in names]
    if unknown:
        raise ValueError(
            f"{unknown} are not actions of this model; it has {list(names)}: set nodes with `fixed`"
        )
    device, table = table.values.device, table.to(network.device)
    noise, actions_after = _noise(network, table), table.columns(names).double().clone()
    for name, value in actions.items():
        actions_after[:, names.index(name)] = value
    settings = _node_settings(network, fixed)
    replayed = network.propagate(actions_after, noise.unsqueeze(-2), fixed=settings)[0][..., 0, :]
    values = torch.cat([actions_after, replayed], -1).to(device)
    altered = torch.tensor([name in names or name in (fixed or {}) for name in (*names, *nodes)])
    return Table((*names, *nodes), values, altered.expand(values.shape).to(device).clone())


def _node_settings(network: CausalNetwork, fixed: Values | None) -> dict[str, Tensor] | None:
    unknown = [name for name in fixed or {} if name not in network.task.nodes]
    if unknown:
        raise ValueError(f"{unknown} are not nodes of this model; it has {list(network.task.nodes)}")
    if fixed is None:
        return None
    device = network.device
    return {name: torch.tensor([float(fixed[name])], dtype=torch.float64, device=device) for name in fixed}


def _network(model: object) -> CausalNetwork:
    if isinstance(model, TransitionEnsemble):
        expected = f"expected a single model; got a {type(model).__name__} of {len(model.each)}"
        raise ValueError(f"{expected}: ask one of them, such as model.each[0]")
    if isinstance(model, CausalModel):
        return model.network()
    if not isinstance(model, CausalNetwork):
        raise ValueError(f"expected a causal model or a TransitionModel; got a {type(model).__name__}")
    return model


def _table(observed: object) -> Table:
    if not isinstance(observed, Table):
        expected = "expected a Table, as the model is a causal network"
        raise ValueError(f"{expected}; got a {type(observed).__name__}")
    return observed


def _episode(observed: object) -> Episode:
    if not isinstance(observed, Episode):
        expected = "expected `observed` to be an Episode, as the model is a transition model"
        raise ValueError(f"{expected}; got a {type(observed).__name__}")
    return observed


def _double(model: TransitionModel) -> LocationScale | SparseEffects:
    model.require_fitted()
    return deepcopy(model.mechanism).to(torch.float64)


def _scaled(model: TransitionModel, episode: Episode) -> Tensor:
    """The episode's scaled features, (T, D + static + contextual), in double precision."""
    return model.rescale.scale(episode.columns(model.rescale.names).to(model.levels.medians)).double()


def _settings(model: SingleTransition, episode: Episode, fixed: Values | None) -> dict[int, Tensor]:
    """Index of each varying feature that is set to its scaled value."""
    unknown = [name for name in fixed or {} if name not in model.varying]
    if unknown:
        raise ValueError(f"{unknown} are not varying features of this model; it has {list(model.varying)}")
    row = episode.columns(model.rescale.names)[:1].to(torch.float64, copy=True)
    for name, value in (fixed or {}).items():
        row[0, model.rescale.names.index(name)] = float(value)
    scaled = model.rescale.scale(row.to(model.levels.medians)).double()[0]
    return {model.varying.index(name): scaled[model.varying.index(name)] for name in fixed or {}}


def _intervened(states: Tensor, settings: Mapping[int, Tensor]) -> Tensor:
    """States (..., D) after hard interventions."""
    if not settings:
        return states
    changed = states.clone()
    for column, value in settings.items():
        changed[..., column] = value
    return changed


def _actions(model: SingleTransition, episode: Episode, actions: Actions) -> tuple[Tensor, Tensor]:
    """Action numbers (..., T - 1) and their doses (..., T - 1, p), as observed where unchanged."""
    names, steps = model.levels.names, episode.horizon - 1
    doses = episode.columns(names)[:-1].to(model.levels.medians, copy=True)
    observed = model.levels.digitise(doses)
    if isinstance(actions, Alteration):
        actions = dict(zip(actions.names, actions.values.tolist(), strict=True))
    if isinstance(actions, Tensor):
        if actions.ndim < 1 or actions.shape[-1] != steps or actions.is_floating_point():
            expected = f"expected action numbers (..., {steps}) long, one for each time step but the last"
            raise ValueError(f"{expected}; got {tuple(actions.shape)} {actions.dtype}")
        numbers = actions.to(observed)
    else:
        requested = dict(actions or {})
        unknown = [name for name in requested if name not in names and not name.startswith(_ACTION)]
        if unknown:
            raise ValueError(
                f"{unknown} are not actions: expected action[0] ... action[{steps - 1}], or {list(names)}"
            )
        for name in names:
            if name in requested:
                doses[:, names.index(name)] = _dose(name, requested[name], steps).to(doses)
        observed = model.levels.digitise(doses)
        numbers = observed.clone()
        for name, value in requested.items():
            if name not in names:
                step = action_step(name)
                if not 0 <= step < steps or float(value) != int(value):
                    raise ValueError(
                        f"{name} = {value}: expected a whole number for a time step 0 ... {steps - 1}; the "
                        "last action affects no state"
                    )
                numbers[step] = int(value)
    if bool(((numbers < 0) | (numbers >= model.levels.actions)).any()):
        expected = f"expected action numbers 0 ... {model.levels.actions - 1}"
        raise ValueError(f"{expected}; got {int(numbers.min())} to {int(numbers.max())}")
    unchanged = (numbers == observed).unsqueeze(-1)
    return numbers, torch.where(unchanged, doses, model.levels.doses(numbers).to(doses))


def _dose(name: str, value: float | Tensor, steps: int) -> Tensor:
    """Doses of one drug, (T - 1,) or ()."""
    doses = torch.as_tensor(value, dtype=torch.float64)
    if doses.shape not in ((), (steps,)) or not bool(doses.isfinite().all()):
        raise ValueError(
            f"{name}: expected a dose, or {steps} of them, as finite numbers; got {tuple(doses.shape)}"
        )
    return doses
