"""What is said of recovered noise: right for a model that knows the truth, and nothing for one without the
graph."""

import pytest
import torch

from rehearsal_torch.evaluation.noise_recovery import POINT, recovery_rows
from rehearsal_torch.problems.trials.benchmark_functions import Dropwave
from rehearsal_torch.problems.world_size import Rounds
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.surrogate_fit import fit

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows():
    world = Dropwave(size=Rounds(initial=200), seed=3)
    return recovery_rows(world, fit(ExogenousModel(world.task), world.observations()))


def measured(rows, node, part, quantity):
    (found,) = [row.value for row in rows if (row.node, row.part, row.quantity) == (node, part, quantity)]
    return found


@pytest.mark.parametrize("part", ["fitted", "held out"])
def test_the_noise_of_the_first_node_is_recovered(rows, part):
    assert measured(rows, "X", part, "correlation") > 0.9
    assert abs(measured(rows, "X", part, "mean")) < 0.3
    assert 0.8 < measured(rows, "X", part, "std") < 1.3
    assert measured(rows, "X", part, "dependence") < 0.15
    assert 0 < measured(rows, "X", part, "distance") < 0.4


def test_points_are_those_of_the_rows(rows):
    world = Dropwave(size=Rounds(initial=200), seed=3)
    _, noise = world.explained()
    noise_draws = world.noise["X"]
    true = torch.tensor(
        [row.true for row in rows if (row.node, row.part, row.quantity) == ("X", "fitted", POINT)],
        dtype=torch.float64,
    )
    torch.testing.assert_close(
        true, (noise[:, 0] - noise_draws.mean) / noise_draws.variance**0.5, rtol=0.02, atol=0.02
    )
