"""Questions to a fitted causal network: what would come out, and what would have come out.

    recover          u = g^-1(w, x)                                    the noise that each row had
    sample           x_i = g_i(w_i, u_i), u fresh                      under any actions (soft interventions on their children)
    counterfactual   x_i' = g_i(w_i', u_i), u recovered                the same row under other actions, or with nodes set by hand

A node that is set by hand (a hard intervention) takes its value and leaves its law out; what follows from it changes, what it
follows from does not.

Source: Ren et al. (2025), Sec. 2.2 and 4.1; Tsirtsis and Gomez-Rodriguez (2023), Eq. 6 (abduction, action, prediction).
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.causal_model import CausalModel, CausalNetwork


@torch.no_grad()
def recover(network: CausalNetwork, table: Table) -> Tensor:
    """The noise of every node in every row, (n, N).

    Raises:
        KeyError: if a node has no column.
    """
    found = []
    for node, law in zip(network.task.nodes, network.laws, strict=True):
        inputs, values = table.columns(network.task.inputs(node)).double(), table.columns([node])[:, 0].double()
        found.append(law.abduct(law.scaled(inputs), values))
    return torch.stack(found, -1)


@torch.no_grad()
def sample(model: CausalModel, actions: Tensor, count: int, seed: int = 0, fixed: Mapping[str, float] | None = None) -> Tensor:
    """Draws of all nodes under actions (..., k), (..., count, N) in the order of the network's nodes: interventions' distributions.

    Args:
        model: Fitted.
        actions: In their units.
        count: Draws for each action; the same noise for all actions.
        seed: Decides the noise.
        fixed: Nodes that are set by hand, name to value.

    Raises:
        ValueError: if something is set by hand that is no node.
    """
    network = model.network()
    return network.propagate(actions, model.draws(count, seed), fixed=_set(network, fixed, actions))[0]


@torch.no_grad()
def counterfactual(network: CausalNetwork, table: Table, actions: Mapping[str, float] | None = None, fixed: Mapping[str, float] | None = None) -> Table:
    """What the rows would have been: abduction of their noise, then other actions or hard interventions, then prediction.

    Args:
        network: Of a fitted model.
        table: What was observed, every node and action.
        actions: Actions that change, name to value; the others stay as they were.
        fixed: Nodes that are set by hand, name to value.

    Returns:
        The actions and nodes of the network, one row for each row of `table`; what was set by hand is marked.

    Raises:
        ValueError: if a name is no action or no node.
    """
    strange = [name for name in actions or {} if name not in network.task.actions]
    if strange:
        raise ValueError(f"{strange} are no actions; there are {list(network.task.actions)}: set nodes by hand with `fixed`")
    noise, other = recover(network, table), table.columns(network.task.actions).double().clone()
    for name, value in (actions or {}).items():
        other[:, network.task.actions.index(name)] = value
    nodes = network.propagate(other, noise.unsqueeze(-2), fixed=_set(network, fixed, other))[0][..., 0, :]
    names = (*network.task.actions, *network.task.nodes)
    values = torch.cat([other, nodes], -1)
    altered = torch.tensor([name in network.task.actions or name in (fixed or {}) for name in names]).expand(values.shape)
    return Table(names, values, altered.to(values.device).clone())


def _set(network: CausalNetwork, fixed: Mapping[str, float] | None, like: Tensor) -> dict[str, Tensor] | None:
    strange = [name for name in fixed or {} if name not in network.task.nodes]
    if strange:
        raise ValueError(f"{strange} are no nodes of this model; it has {list(network.task.nodes)}")
    return None if fixed is None else {name: torch.full((1,), float(value), dtype=torch.float64, device=like.device) for name, value in fixed.items()}
