import math

import pytest
import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.objectives.feasibility import Constrained, outcomes
from rehearsal_torch.objectives.monte_carlo import FUNCTIONS, MonteCarlo
from rehearsal_torch.objectives.upper_bounds import ConfidenceBound
from rehearsal_torch.search.trials.acquisition import recommend
from rehearsal_torch.surrogates.network.botorch_model import NetworkModel
from tests.toys.causal_toys import WrittenLaw, WrittenModel, one_case

GRAPH = {"X": ["a"], "Y": ["a"]}
ACTIONS = torch.linspace(0, 1, 11, dtype=torch.float64).unsqueeze(-1)


def limited(*constraints, epistemic=0.05, noise=0.1, visited=((0.1,), (0.4,), (0.9,))):
    """X and Y are the action, X with noise; the best Y is at 1."""
    task = CausalTask.of(
        {"graph": {"parents": GRAPH}, "actions": {"a": [0, 1]}, "reward": "Y", "constraints": constraints}
    )
    laws = {
        "X": WrittenLaw(lambda w: w[..., 0], lambda w: epistemic + 0 * w[..., 0], noise),
        "Y": WrittenLaw(lambda w: w[..., 0], lambda w: 0.01 + 0 * w[..., 0], 0.0),
    }
    return WrittenModel(task, laws, [list(row) for row in visited])


def normal(z):
    return 0.5 * math.erfc(-z / math.sqrt(2))


def test_a_constraint_holds_in_a_network_just_if_its_share_of_experiments_keeps_it():
    model = limited("X <= 0.5 with 80 %", "X >= 0 and X <= 2")
    network = NetworkModel(model, members=512, draws=512)
    task = model.task
    values = Constrained(network, task.constraints, ACTIONS).posterior(ACTIONS.unsqueeze(-2)).values
    claimed = outcomes(network, task.constraints, ACTIONS)
    shares = claimed[..., 2:]
    clear = (shares[..., 0] - 0.8).abs() > 0.01
    torch.testing.assert_close((values[..., 0, 1] <= 0)[clear], (shares[..., 0] >= 0.8)[clear])
    spread = math.hypot(0.05, 0.1)
    expected = [normal((0.5 - a) / spread) for a in ACTIONS[:, 0].tolist()]
    assert shares[..., 0].mean(0).tolist() == pytest.approx(expected, abs=0.01)
    assert bool((claimed[..., 1] <= shares.amin(-1)).all())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_best_setting_that_is_known_to_keep_a_limit_is_recommended(function):
    model = limited("X <= 0.5 with 90 %")
    objective = MonteCarlo(model, one_case(model.task), function)
    best = recommend(objective, 0)
    # In 95 % of the networks 90 % of the noise is below the limit.
    assert float(best.action) == pytest.approx(0.5 - 1.645 * 0.05 - 1.2816 * 0.1, abs=0.03)
    (claim,) = best.constraints
    assert claim.kept
    assert 0.9 <= claim.low <= claim.probability
    assert not objective.seeks_feasibility
    values = objective(ACTIONS)
    assert 0.25 <= float(ACTIONS[values.argmax()]) <= 0.5


def test_where_nothing_is_feasible_the_most_probable_comes_first():
    model = limited("X <= -0.1 with 90 %")
    objective = MonteCarlo(model, one_case(model.task), "qucb")
    best = recommend(objective, 0)
    assert objective.seeks_feasibility
    assert not best.constraints[0].kept
    assert float(best.action) == pytest.approx(0.0, abs=1e-3)
    assert int(objective(ACTIONS).argmax()) == 0


def test_an_objective_that_cannot_count_constraints_refuses_them():
    model = limited("X <= 0.5")
    with pytest.raises(ValueError, match="ConfidenceBound takes no constraints"):
        ConfidenceBound(model, one_case(model.task))
