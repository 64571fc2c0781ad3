import copy

import pytest
import torch
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qUpperConfidenceBound
from botorch.acquisition.multi_objective import logei
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.objective import (
    ExpectationPosteriorTransform,
    LinearMCObjective,
    ScalarizedPosteriorTransform,
)
from botorch.models.transforms.input import InputPerturbation, Normalize
from botorch.models.transforms.outcome import Standardize
from botorch.optim.optimize import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler

from rehearsal_torch.estimators.hyper_draws import repeated
from rehearsal_torch.surrogates.network import exogenous_model
from rehearsal_torch.surrogates.network.botorch_model import (
    NetworkModel,
    NetworkOutputs,
    at_distinct,
    observed,
)
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.causal_toys import linear_chain, plain
from tests.toys.fitted_pair import DOUBLE, PAIR, fitted_pair, pair_table

BOTH = ("X", "Y")
STREAM = torch.Generator().manual_seed(5)
LOWER, WIDTH = torch.tensor([0.0, -1.0], dtype=DOUBLE), 2.0
POINTS = LOWER + WIDTH * torch.rand(3, 4, 2, generator=STREAM, dtype=DOUBLE)
MORE = pair_table(3, seed=9)


def sobol(count):
    return SobolQMCNormalSampler(torch.Size([count]), seed=0)


def acquisitions():
    model, two = NetworkModel(fitted_pair()), NetworkModel(fitted_pair(), BOTH)
    tried = model.train_inputs[0]
    best = model.posterior(tried).mean.max() - 0.2
    second = LinearMCObjective(torch.tensor([0.0, 1.0], dtype=DOUBLE))
    return {
        "qLogEI": lambda: (qLogExpectedImprovement(model, best_f=best), 1),
        "qLogEI, pending": lambda: (qLogExpectedImprovement(model, best_f=best, X_pending=tried[:2]), 1),
        "qUCB": lambda: (qUpperConfidenceBound(model, beta=4.0), 2),
        "qLogNEI": lambda: (qLogNoisyExpectedImprovement(model, tried), 1),
        "qLogEI, constrained": lambda: (
            qLogExpectedImprovement(
                two, best_f=best, objective=second, constraints=[lambda samples: samples[..., 0] - 0.7]
            ),
            1,
        ),
        "qLogNEHVI": lambda: (
            qLogNoisyExpectedHypervolumeImprovement(two, [-1.0, -1.0], tried, prune_baseline=True),
            1,
        ),
        "qKG": lambda: (qKnowledgeGradient(model, num_fantasies=4, sampler=sobol(4)), 1),
        "qKG, pending": lambda: (
            qKnowledgeGradient(model, num_fantasies=3, sampler=sobol(3), X_pending=tried[:1]),
            2,
        ),
    }


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch):
    """BoTorch compiles a kernel of qLogNEHVI on first use, in half a minute; here it stays Python."""
    monkeypatch.setattr(logei, "_load_attempted", True)


@pytest.mark.slow
@pytest.mark.parametrize("name", acquisitions())
def test_acquisition_functions_of_botorch_run_on_it(name):
    torch.manual_seed(0)
    function, q = acquisitions()[name]()
    bounds = torch.stack([LOWER, LOWER + WIDTH])
    best, value = optimize_acqf(
        function, bounds, q=q, num_restarts=2, raw_samples=16, options={"seed": 0, "maxiter": 15}
    )
    assert best.shape == (q, 2)
    assert bool(((best >= bounds[0]) & (best <= bounds[1])).all())
    assert bool(value.isfinite().all())
    # As wide as the function takes it: a one-shot function also has a point for each fantasy.
    wide = function.get_augmented_q_batch_size(q) if isinstance(function, qKnowledgeGradient) else q
    point = (LOWER + WIDTH * torch.rand(1, wide, 2, generator=STREAM, dtype=DOUBLE)).requires_grad_()
    (gradient,) = torch.autograd.grad(function(point).sum(), point)
    step = 1e-6 * torch.eye(2 * wide, dtype=DOUBLE).reshape(-1, wide, 2)
    with torch.no_grad():
        apart = torch.stack([function(point + each) - function(point - each) for each in step]).squeeze(-1)
    torch.testing.assert_close(gradient.flatten(), apart / 2e-6, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["qUCB", "qLogNEI", "qLogNEHVI"])
def test_a_candidate_has_one_value_wherever_it_stands_in_a_batch(name):
    function, _ = acquisitions()[name]()
    values = function(POINTS.flatten(0, 1)[[0, 1, 0, 2], None])
    assert values.shape == (4,)
    torch.testing.assert_close(values[0], values[2])
    torch.testing.assert_close(values[1], function(POINTS[0, 1, None, None])[0])


def test_a_candidate_that_was_tried_is_no_improvement_over_itself():
    model = NetworkModel(fitted_pair())
    tried = model.train_inputs[0]
    best = tried[model.posterior(tried).mean.argmax()]
    for sampler in (None, sobol(64)):
        function = qLogNoisyExpectedImprovement(model, tried, sampler=sampler)
        # The logarithm of the smooth positive part at 0.
        assert float(function(best.expand(5, 1, 2)).max()) < -13


def test_shapes_follow_batches_points_and_outputs():
    model = NetworkModel(fitted_pair(), ("reward", *BOTH))
    assert (model.num_outputs, model.batch_shape) == (3, ())
    assert model.posterior(POINTS[0]).mean.shape == (4, 3)
    assert model.posterior(POINTS.expand(5, 3, 4, 2)).variance.shape == (5, 3, 4, 3)
    whole = model.posterior(POINTS).mean
    torch.testing.assert_close(whole[..., 0], whole[..., 2])
    for part in (model.subset_output([2, 1]), NetworkModel(fitted_pair(), ("Y", "X"))):
        torch.testing.assert_close(part.posterior(POINTS).mean, whole[..., [2, 1]])
    torch.testing.assert_close(model.posterior(POINTS, output_indices=[1]).mean, whole[..., [1]])
    fantasy = model.fantasize(POINTS[:, :2], sobol(6))
    assert fantasy.batch_shape == (6, 3)
    assert fantasy.posterior(POINTS[0]).mean.shape == (6, 3, 4, 3)
    assert fantasy.posterior(POINTS.expand(7, 6, 3, 4, 2)).mean.shape == (7, 6, 3, 4, 3)
    assert fantasy.train_inputs[0].shape == (6, 3, 18, 2)
    twice = fantasy.fantasize(POINTS[:, :1], sobol(2))
    assert twice.posterior(POINTS[:, :1]).mean.shape == (2, 6, 3, 1, 3)
    nothing = model.fantasize(POINTS[:, :0], sobol(5))
    assert nothing.posterior(POINTS).mean.shape == (5, 3, 4, 3)
    torch.testing.assert_close(nothing.posterior(POINTS).mean[0], nothing.posterior(POINTS).mean[4])


def test_fantasies_leave_the_mean_and_narrow_the_posterior_where_they_are(monkeypatch):
    # Hyper-parameters that are drawn are not weighed anew after further rows.
    monkeypatch.setattr(exogenous_model, "hyper_draws", repeated)
    model = NetworkModel(fitted_pair(), members=128, fantasy_members=128)
    tried = torch.tensor([[1.2, -0.9], [0.1, 0.7]], dtype=DOUBLE)
    before, after = model.posterior(tried), model.fantasize(tried, sobol(128)).posterior(tried)
    std = before.variance.sqrt()
    assert float(((after.mean.mean(0) - before.mean) / std).abs().max()) < 0.1
    assert float((after.variance.mean(0) / before.variance).max()) < 0.9
    # What is learnt and what remains make up the variance before.
    total = after.variance.mean(0) + after.mean.var(0)
    torch.testing.assert_close(total, before.variance, rtol=0.15, atol=0)


def test_the_gradients_of_fantasies_are_finite_where_two_experiments_coincide():
    model = NetworkModel(fitted_pair())
    twice = POINTS[:1, [0, 0]].clone().requires_grad_()
    model.fantasize(twice, sobol(4)).posterior(POINTS[0]).mean.sum().backward()
    assert bool(twice.grad.isfinite().all())


def test_rows_of_the_table_are_the_training_data():
    table = pair_table(16)
    model = NetworkModel(fitted_pair(), table=table)
    assert torch.equal(model.train_inputs[0], table.columns(PAIR.actions))
    assert torch.equal(model.train_targets, table.columns(("Y",))[:, 0])
    assert torch.equal(NetworkModel(fitted_pair(), BOTH, table=table).train_targets, table.columns(BOTH).mT)
    assert NetworkModel(fitted_pair()).train_targets is None


def test_input_and_outcome_transforms_are_honoured():
    bounds = torch.stack([-LOWER / WIDTH, (1 - LOWER) / WIDTH])
    model, unit = (
        NetworkModel(fitted_pair(), BOTH),
        NetworkModel(fitted_pair(), BOTH, input_transform=Normalize(2, bounds=bounds)),
    )
    cube = (POINTS - LOWER) / WIDTH
    torch.testing.assert_close(unit.posterior(cube).values, model.posterior(POINTS).values)
    tried = unit.train_inputs[0]
    assert float(tried.amin()) >= 0
    assert float(tried.amax()) <= 1
    values = MORE.columns(BOTH)
    torch.testing.assert_close(
        unit.condition_on_observations((MORE.columns(PAIR.actions) - LOWER) / WIDTH, values)
        .posterior(cube)
        .values,
        model.condition_on_observations(MORE.columns(PAIR.actions), values).posterior(POINTS).values,
    )
    standardised = Standardize(m=2)
    standardised(5 + 3 * torch.randn(50, 2, generator=STREAM, dtype=DOUBLE))
    scaled = NetworkModel(fitted_pair(), BOTH, outcome_transform=standardised)
    centre, scale = standardised.means, standardised.stdvs
    torch.testing.assert_close(
        scaled.posterior(POINTS).values, centre + scale * model.posterior(POINTS).values
    )
    second = scaled.subset_output([1]).posterior(POINTS).values
    torch.testing.assert_close(second, scaled.posterior(POINTS).values[..., [1]])
    assert scaled.num_outputs == 2
    actions, told = MORE.columns(PAIR.actions), MORE.columns(BOTH)
    conditioned = model.condition_on_observations(actions, told).posterior(POINTS)
    again = scaled.condition_on_observations(actions, centre + scale * told).posterior(POINTS)
    torch.testing.assert_close(again.values, centre + scale * conditioned.values)


def test_posterior_transforms_are_applied_to_samples():
    model = NetworkModel(fitted_pair(), BOTH)
    weights = torch.tensor([0.5, -2.0], dtype=DOUBLE)
    scalar = ScalarizedPosteriorTransform(weights, offset=1.0)
    found = model.posterior(POINTS, posterior_transform=scalar)
    torch.testing.assert_close(found.values, 1 + model.posterior(POINTS).values @ weights.unsqueeze(-1))
    noisy = model.posterior(POINTS, observation_noise=True, posterior_transform=scalar)
    torch.testing.assert_close(noisy.mean, found.mean)
    assert sobol(8)(noisy).shape == (8, 3, 4, 1)
    steps = 0.05 * torch.randn(3, 2, generator=STREAM, dtype=DOUBLE)
    around = NetworkModel(fitted_pair(), input_transform=InputPerturbation(steps))
    assert around.posterior(POINTS).mean.shape == (3, 12, 1)
    mean = around.posterior(POINTS, posterior_transform=ExpectationPosteriorTransform(3)).mean
    torch.testing.assert_close(mean, around.posterior(POINTS).mean.reshape(3, 4, 3, 1).mean(-2))


def test_a_node_with_the_name_of_the_reward_is_refused_as_such():
    task = plain({"reward": ["a"], "Y": ["reward"]}, {"a": [0, 1]}, {"weights": {"Y": 1.0, "reward": 1.0}})
    chain = linear_chain()
    chain.task, chain.laws = task, chain.laws
    with pytest.raises(ValueError, match="'reward' is a node of this task and not its reward"):
        NetworkModel(chain)


def test_what_cannot_be_done_is_said():
    model, tried = NetworkModel(fitted_pair()), MORE.columns(PAIR.actions)
    with pytest.raises(ValueError, match=r"expected the values of all nodes, \['X', 'Y'\]; got one column"):
        model.condition_on_observations(tried, MORE.columns(("Y",)))
    with pytest.raises(ValueError, match="expected 2 columns"):
        model.condition_on_observations(tried, MORE.columns(("X", "Y", "Y")))
    with pytest.raises(ValueError, match=r"expected the shape \(\.\.\., q, 2\)"):
        model.posterior(tried[:, :1])
    with pytest.raises(ValueError, match="expected True or False; got a tensor"):
        model.posterior(tried, observation_noise=tried)
    with pytest.raises(ValueError, match="expected None; got a tensor"):
        model.fantasize(tried, sobol(2), observation_noise=tried)
    with pytest.raises(TypeError, match="written law cannot be conditioned"):
        NetworkModel(linear_chain()).fantasize(tried, sobol(2))
    assert model.double() is model
    with pytest.raises(TypeError, match="move the surrogate, and build the model of that"):
        model.to("meta")
    with pytest.raises(TypeError, match="tables cannot be conditioned"):
        NetworkModel(fitted_pair()).tabulated().fantasize(tried, sobol(2))


DRAWN = torch.rand(3, 4, 2, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)


def waves(points):
    """(P, 2) -> (3, P, 2)."""
    both = torch.stack([points.prod(-1).sin(), points.square().sum(-1)], -1)
    return torch.stack([both, both.exp(), both + 1])


def test_values_and_gradients_are_those_of_the_function():
    for size in (1, 5, 100):
        assert torch.allclose(
            at_distinct(waves, DRAWN, size), waves(DRAWN.reshape(-1, 2)).reshape(3, 3, 4, 2)
        )
        assert torch.autograd.gradcheck(
            lambda points, size=size: at_distinct(waves, points, size), DRAWN.clone().requires_grad_()
        )


def test_a_point_that_comes_often_is_evaluated_once_and_again_only_for_a_gradient():
    asked = []

    def counted(points):
        asked.append(len(points))
        return waves(points)

    points = torch.cat([DRAWN[:1].expand(3, 4, 2), DRAWN[1:, :1].new_tensor([[[0.1, 0.2]]] * 3)], 1)
    points = points.clone().requires_grad_()
    values = at_distinct(counted, points, 6)
    assert asked == [5]
    values[:, 1, 2].sum().backward()
    assert asked == [5, 1]
    assert (points.grad != 0).any(-1).nonzero().tolist() == [[1, 2]]


def test_few_points_are_evaluated_once_with_their_graph():
    asked = []

    def counted(points):
        asked.append(len(points))
        return waves(points)

    points = DRAWN[0].clone().requires_grad_()
    at_distinct(counted, points, 2).sum().backward()
    assert asked == [4]
    at_distinct(counted, points, 1).sum().backward()
    assert asked == [4, 1, 1, 1, 1, 1, 1, 1, 1]


NETWORK = linear_chain().plausible(2)
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


def test_the_mean_of_a_network_that_is_known_is_that_of_its_laws():
    a, b = POINTS.abs().unbind(-1)
    mean = NetworkModel(linear_chain(), members=512, draws=64).posterior(POINTS.abs()).mean.squeeze(-1)
    torch.testing.assert_close(mean, 3 * a - b, rtol=0, atol=0.01)


def test_sets_of_observations_are_conditioned_on_in_one_batch():
    model = NetworkModel(fitted_pair(), BOTH, table=pair_table(16))
    actions, values = MORE.columns(PAIR.actions).unsqueeze(-2), MORE.columns(BOTH).unsqueeze(-2)
    batch = model.condition_on_observations(actions, torch.stack([values, values + 0.3]))
    assert batch.batch_shape == (2, 3)
    assert batch.train_targets.shape == (2, 3, 2, 17)
    before, after = model.posterior(actions), batch.posterior(actions)
    assert bool((after.variance[0, ..., 1] < before.variance[..., 1]).all())
    # X moves towards what was observed, and further where that is larger.
    assert bool((after.mean[1, ..., 0] > after.mean[0, ..., 0]).all())
    apart = (after.mean[0, ..., 0] - values[..., 0]).abs()
    assert float(apart.mean()) < float((before.mean[..., 0] - values[..., 0]).abs().mean())


def test_a_conditioned_model_agrees_with_one_that_is_conditioned_on_the_table():
    surrogate = fitted_pair(phi="homoskedastic")
    again = copy.deepcopy(surrogate)
    again.condition(pair_table(16) + MORE)
    # Up to the hyper-parameters, which are drawn anew given all rows; those of X stay nearly alike.
    model, whole = (NetworkModel(each, ("X",), members=512, draws=16) for each in (surrogate, again))
    found = model.condition_on_observations(MORE.columns(PAIR.actions), MORE.columns(BOTH)).posterior(POINTS)
    wanted, before = whole.posterior(POINTS), model.posterior(POINTS)
    apart, moved = (
        ((each.mean - wanted.mean) / before.variance.sqrt()).abs().mean() for each in (found, before)
    )
    assert float(apart) < 0.05
    assert float(moved) > 0.15


def test_a_model_of_the_reward_alone_takes_rewards():
    surrogate = fit(ExogenousModel(PAIR, structure="black_box"), pair_table(16))
    model = NetworkModel(surrogate, table=pair_table(16))
    conditioned = model.condition_on_observations(MORE.columns(PAIR.actions), MORE.columns(("Y",)))
    assert conditioned.train_targets.shape == (19,)
    tried = MORE.columns(PAIR.actions)
    after, before = (float(each.posterior(tried).variance.sum()) for each in (conditioned, model))
    assert after < 0.8 * before


def test_a_tabulated_model_is_near_the_exact_one():
    exact = NetworkModel(fitted_pair(), members=16)
    tables = exact.tabulated()
    apart = (tables.posterior(POINTS).values - exact.posterior(POINTS).values).abs()
    assert float(apart.max()) < 0.02 * float(exact.posterior(POINTS).values.std())
