import gc
import math
import weakref
from dataclasses import replace

import pytest
import torch
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qUpperConfidenceBound
from botorch.acquisition.objective import GenericMCObjective

from rehearsal_torch.data.costs import ActionCost, ExperimentCosts
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.non_finite import NoFiniteValueError
from rehearsal_torch.objectives.monte_carlo import FUNCTIONS, MonteCarlo
from rehearsal_torch.objectives.upper_bounds import ConfidenceBound
from rehearsal_torch.surrogates.network.botorch_model import NetworkModel
from rehearsal_torch.surrogates.network.botorch_posterior import MemberSampler
from tests.toys.causal_toys import WrittenLaw, WrittenModel, linear_chain, one_case, plain
from tests.toys.fitted_pair import DOUBLE, PAIR, fitted_pair

POINTS = torch.tensor([[0.2, 0.1], [1.0, -0.3], [1.9, 0.9]], dtype=DOUBLE)
PENDING = torch.tensor([[0.7, 0.2], [1.5, -0.6]], dtype=DOUBLE)
every = pytest.mark.parametrize("function", FUNCTIONS)


def one_node(std=0.5, unit=1.0, offset=0.0):
    task = plain({"Y": ["a"]}, {"a": [0, 1]}, "Y")
    law = WrittenLaw(lambda w: unit * (w[..., 0] + offset), lambda w: unit * std + 0 * w[..., 0], 0.0)
    return WrittenModel(task, {"Y": law}, [[0.1], [0.4]])


def closed_form(mean, std, best):
    z = (mean - best) / std
    return std * (math.exp(-z * z / 2) / math.sqrt(2 * math.pi) + z * 0.5 * math.erfc(-z / math.sqrt(2)))


def in_sds(objective):
    """What BoTorch is given: rewards in standard deviations, from the largest posterior mean."""
    model = NetworkModel(fitted_pair(), members=16, draws=16, seed=objective.seed).tabulated()
    tried = model.train_inputs[0]
    means = model.posterior(tried.unsqueeze(-2)).mean
    rewards = GenericMCObjective(lambda samples, X=None: (samples[..., 0] - means.max()) / means.std())
    return model, tried, {"objective": rewards, "sampler": MemberSampler(torch.Size([16]))}


def test_an_improvement_counts_per_unit_of_cost():
    gain, model = MonteCarlo(fitted_pair(), one_case(PAIR), "qlognei"), fitted_pair()
    first = model.task.actions[0]
    costs = ExperimentCosts(model.task.actions, {first: ActionCost(3.0, 3.0)}, 2.0)
    model.task = replace(model.task, costs=costs)
    weighed = MonteCarlo(model, one_case(model.task))
    assert weighed.function == "qlognei"
    torch.testing.assert_close(weighed(POINTS), gain(POINTS) - (2 + 3 * POINTS[:, 0]).log())
    with pytest.raises(ValueError, match="no constraints on nodes and no costs: decide by excbo"):
        ConfidenceBound(model, one_case(model.task))
    # Where all experiments cost the same, nothing is weighed.
    model.task = replace(model.task, costs=replace(costs, actions={}))
    assert MonteCarlo(model, one_case(model.task)).function == "qucb"


@every
@pytest.mark.parametrize("pending", [None, PENDING])
def test_values_and_gradients_are_those_of_botorchs_class(function, pending):
    objective = MonteCarlo(fitted_pair(), one_case(PAIR), function, pending=pending)
    model, tried, given = in_sds(objective)
    made = {
        "qlognei": lambda: qLogNoisyExpectedImprovement(model, tried, X_pending=pending, **given),
        "qlogei": lambda: qLogExpectedImprovement(model, 0.0, X_pending=pending, **given),
        "qucb": lambda: qUpperConfidenceBound(model, 4.0, **given),
    }["qlognei" if function == "qucb" and pending is not None else function]()
    assert isinstance(objective.acquisition, type(made))
    found, wanted = (POINTS.clone().requires_grad_() for _ in range(2))
    values, others = objective(found), made(wanted.unsqueeze(-2))
    torch.testing.assert_close(values, others)
    values.sum().backward()
    others.sum().backward()
    torch.testing.assert_close(found.grad, wanted.grad)


@every
def test_what_is_dropped_is_freed_without_a_search_for_cycles(function):
    """In a large process, models of many rounds waited for one."""
    gc.disable()
    objective = MonteCarlo(fitted_pair(), one_case(PAIR), function)
    objective(POINTS)
    model = weakref.ref(objective.model)
    del objective
    freed = model() is None
    gc.enable()
    assert freed


def test_the_graph_carries_the_ignorance_of_the_nodes_before():
    model = linear_chain()
    objective = MonteCarlo(model, one_case(model.task), "qlogei", members=1024)
    std = math.hypot(1.5 * 0.3 * 1.5, 0.2 * 1.5)
    best, spread = objective.scale
    found = objective(torch.tensor([[0.5, 0.5]], dtype=DOUBLE)).exp().item() * spread
    assert found == pytest.approx(closed_form(1.0, std, best), rel=0.05)


def test_there_is_a_slope_where_improvement_is_unlikely():
    model = one_node(std=1e-3)
    at = torch.tensor([[0.0]], dtype=DOUBLE, requires_grad=True)
    (slope,) = torch.autograd.grad(MonteCarlo(model, one_case(model.task), "qlogei")(at).sum(), at)
    assert slope.item() > 1e-3


@pytest.mark.parametrize(
    ("function", "up_to", "expected"),
    [("qucb", 1, "qlognei"), ("qucb", 2, "qucb"), ("qucb", None, "qucb"), ("qlogei", 1, "qlogei")],
)
def test_with_many_free_actions_the_bound_gives_way_to_an_improvement(function, up_to, expected):
    assert MonteCarlo(fitted_pair(), one_case(PAIR), function, bound_up_to=up_to).function == expected
    held = replace(one_case(PAIR), levels={next(iter(PAIR.actions)): (0.5,)})
    assert MonteCarlo(fitted_pair(), held, "qucb", bound_up_to=1).function == "qucb"


def test_without_beta_the_bound_is_the_posterior_mean():
    objective = MonteCarlo(fitted_pair(), one_case(PAIR), beta=0.0)
    torch.testing.assert_close(objective(POINTS), objective.mean_reward()(POINTS.unsqueeze(-2)))


def test_a_pending_action_is_worth_trying_no_more():
    plain_, aware = (MonteCarlo(fitted_pair(), one_case(PAIR), "qlognei") for _ in range(2))
    region = plain_.region()
    points = region.units(region.spread(64, 0))
    best = points[plain_(points).argmax()]
    aware.pending = best.unsqueeze(0)
    assert float(plain_(best) - aware(best)) > 1


def test_the_incumbents_are_the_best_in_some_plausible_network_or_on_average():
    # E[r] = 3 a - b: 1, 1.02, 1 and 0, and the first and third depend on the draws the most differently.
    model = linear_chain(visited=((0.5, 0.5), (0.7, 1.08), (0.9, 1.7), (0.1, 0.3)))
    objective = MonteCarlo(model, one_case(model.task), "qlognei", members=2)
    rewards = objective.tried[1]
    best = {*rewards.argmax(-1).tolist(), int(rewards.mean(0).argmax())}
    assert 2 <= len(best) <= 3
    assert torch.equal(objective.acquisition.X_baseline, model.tried[sorted(best)])
    # They are evaluated once.
    objective(torch.tensor([[0.3, 0.3]], dtype=DOUBLE))
    known = objective.acquisition.baseline_obj
    objective(torch.tensor([[0.3, 0.4]], dtype=DOUBLE))
    assert objective.acquisition.baseline_obj is known


def test_the_incumbent_is_allowed_in_the_round_if_any_visited_action_is():
    model = linear_chain(visited=((0.2, 0.4), (0.9, 0.1)))
    best = [
        MonteCarlo(model, RehearsalCase("0", {}, {"a": (0.0, most), "b": (0.0, 2.0)})).scale[0]
        for most in (0.5, 1.0, 0.1)
    ]
    # E[r] = 3 a - b: of the first alone, of both, and of both since neither is allowed.
    assert best == pytest.approx([0.2, 2.6, 2.6], abs=0.1)


def test_without_a_visited_action_of_finite_reward_there_is_no_improvement():
    fresh = linear_chain(visited=())
    with pytest.raises(ValueError, match="at least one visited action; got"):
        MonteCarlo(fresh, one_case(fresh.task))
    undefined = one_node(offset=math.nan)
    with pytest.raises(NoFiniteValueError, match="expected a finite reward of some visited action"):
        MonteCarlo(undefined, one_case(undefined.task))(torch.tensor([[0.1]]).double())
