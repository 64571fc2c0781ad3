"""Which problems know a truth, and in which rows it is told."""

import pytest

from rehearsal_torch.evaluation.counterfactual_errors import truth_table
from rehearsal_torch.problems.trials.benchmark_functions import Dropwave
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.surrogate_fit import fit


@pytest.fixture(scope="module")
def world():
    return Dropwave(size=Rounds(initial=20))


@pytest.fixture(scope="module")
def model(world):
    return fit(ExogenousModel(world.task), world.observations())


def test_a_causal_world_knows_the_noise_of_each_node(world, model):
    rows = truth_table(world, model, [])
    assert {row["node"] for row in rows} == set(world.task.nodes)
    found = [row["value"] for row in rows if row["quantity"] == "correlation"]
    assert len(found) == 4
    assert all(0 <= value <= 1 for value in found)
