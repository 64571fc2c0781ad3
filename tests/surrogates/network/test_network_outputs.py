import pytest
import torch

from rehearsal_torch.surrogates.network.network_outputs import NetworkOutputs, observed
from tests.toys.causal_toys import linear_chain
from tests.toys.fitted_pair import DOUBLE, PAIR, fitted_pair, pair_table

NETWORK = linear_chain().network()
VALUES = torch.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=DOUBLE)


def test_outputs_are_read_from_node_values_by_name():
    made = NetworkOutputs(NETWORK, ("Y", "reward", "X"))
    assert made.read(VALUES).tolist() == [[2.0, 2.0, 1.0], [5.0, 5.0, 3.0]]
    assert made.only([2]).read(VALUES).tolist() == [[1.0], [3.0]]
    assert not made.all_nodes


def test_observations_hold_all_nodes_in_the_order_of_the_network_or_of_the_outputs():
    assert torch.equal(NetworkOutputs(NETWORK, ("reward",)).node_values(VALUES), VALUES)
    turned = NetworkOutputs(NETWORK, ("Y", "X"))
    assert turned.all_nodes
    assert torch.equal(turned.node_values(VALUES.flip(-1)), VALUES)
    with pytest.raises(ValueError, match=r"values of all nodes, \['X', 'Y'\]; got one column"):
        NetworkOutputs(NETWORK, ("reward",)).node_values(VALUES[:, :1])
    with pytest.raises(ValueError, match=r"2 columns, the values of the nodes \['Y', 'X'\]; got 1"):
        turned.node_values(VALUES[:, :1])


def test_a_table_holds_the_nodes_or_the_reward_of_a_model_that_has_no_other_node():
    table = pair_table(6)
    assert torch.equal(observed(fitted_pair(), ("X", "Y"), table), table.columns(("X", "Y")))
    assert torch.equal(observed(fitted_pair(), ("reward",), table), PAIR.reward_of(table).unsqueeze(-1))
