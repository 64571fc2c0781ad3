"""The outputs of a network model: the reward, and nodes, by name.

Source: Astudillo and Frazier (2019), Eq. 1 (a known function of what is modelled).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.known_reward import WeightedSum
from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.network.causal_model import CausalModel, CausalNetwork

REWARD = "reward"


@dataclass(frozen=True)
class NetworkOutputs:
    """m outputs of a network with N nodes: "reward", or names of nodes.

    Raises:
        ValueError: if a name is unknown or repeated, or means both the reward and a node.
    """

    network: CausalNetwork
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        known = {*self.nodes, REWARD}
        wrong = [name for name in self.names if name not in known]
        if wrong or not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(
                f"outputs: expected different names of {[REWARD, *self.nodes]}; got {list(self.names)}"
            )
        if REWARD in self.names and REWARD in self.nodes and not self._is_node(REWARD):
            raise ValueError(
                f"outputs: {REWARD!r} is a node of this task and not its reward: rename the node to have both"
            )

    @property
    def nodes(self) -> tuple[str, ...]:
        """The N nodes."""
        return self.network.task.nodes

    @property
    def all_nodes(self) -> bool:
        """Whether the outputs are all nodes, in any order."""
        return set(self.names) == set(self.nodes)

    def only(self, places: Sequence[int]) -> "NetworkOutputs":
        """Some of the outputs, by index."""
        return NetworkOutputs(self.network, tuple(self.names[index] for index in places))

    def read(self, values: Tensor) -> Tensor:
        """The outputs of node values, (..., N) -> (..., m)."""
        return torch.stack(
            [
                values[..., self.nodes.index(name)] if name in self.nodes else self.network.reward(values)
                for name in self.names
            ],
            -1,
        )

    def node_values(self, observations: Tensor) -> Tensor:
        """Node values in the network's order, (..., N), of observations: (..., N) in this order, or in that
        of the outputs if these are all nodes; ValueError if they do not hold the values of all nodes.
        """
        names = self.names if self.all_nodes else self.nodes
        alone = len(self.nodes) == 1 and self._is_node(self.nodes[0])
        if self.names == (REWARD,) and observations.shape[-1] == 1 and not (self.all_nodes or alone):
            raise ValueError(
                f"Y: expected the values of all nodes, {list(self.nodes)}; got one column: the reward alone "
                "does not say what its causes came out at: name the nodes in `outputs` and pass every one, "
                "or fit structure=black_box"
            )
        if observations.shape[-1] != len(self.nodes):
            raise ValueError(
                f"Y: expected {len(self.nodes)} columns, the values of the nodes {list(names)}; got "
                f"{observations.shape[-1]}"
            )
        return observations[..., [names.index(node) for node in self.nodes]]

    def _is_node(self, name: str) -> bool:
        """Whether the reward is this node."""
        reward = self.network.task.reward
        return isinstance(reward, WeightedSum) and reward.weights == {name: 1.0}


def observed(surrogate: CausalModel, nodes: Sequence[str], table: Table) -> Tensor:
    """The values of a network's nodes in a table, (n, N); of a network of the reward alone, the reward."""
    if set(nodes) <= set(surrogate.task.nodes):
        return table.columns(tuple(nodes)).double()
    return surrogate.task.reward_of(table).unsqueeze(-1).double()
