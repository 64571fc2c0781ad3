import math
from functools import partial

import pytest
import torch
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qUpperConfidenceBound
from botorch.acquisition.objective import GenericMCObjective

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import NoFiniteValueError
from rehearsal_torch.objectives.improvement import FUNCTIONS, BotorchAcquisition
from rehearsal_torch.surrogates.network.network_model import NetworkModel
from rehearsal_torch.surrogates.network.network_posterior import MemberSampler
from tests.objectives.test_improvement import closed_form, one_node
from tests.toys.causal_toys import WrittenLaw, WrittenModel, linear_chain, one_case
from tests.toys.fitted_pair import DOUBLE, PAIR, fitted_pair

POINTS = torch.tensor([[0.2, 0.1], [1.0, -0.3], [1.9, 0.9]], dtype=DOUBLE)
PENDING = torch.tensor([[0.7, 0.2], [1.5, -0.6]], dtype=DOUBLE)
MANY = partial(BotorchAcquisition, members=1024, member_draws=4)
every = pytest.mark.parametrize("function", FUNCTIONS)


def in_sds(objective):
    """What BoTorch is given: rewards in standard deviations, from the largest posterior mean."""
    model = NetworkModel(fitted_pair(), members=32, draws=16, seed=objective.seed + 2)
    tried = model.train_inputs[0]
    best = model.posterior(tried.unsqueeze(-2)).mean.max()
    rewards = GenericMCObjective(lambda samples, X=None: (samples[..., 0] - best) / objective.scale)
    return model, tried, {"objective": rewards, "sampler": MemberSampler(torch.Size([32]))}


@every
@pytest.mark.parametrize("pending", [None, PENDING])
def test_values_and_gradients_are_those_of_botorchs_class(function, pending):
    objective = BotorchAcquisition(fitted_pair(), one_case(PAIR), function, pending=pending)
    model, tried, given = in_sds(objective)
    plain = {
        "qlognei": lambda: qLogNoisyExpectedImprovement(model, tried, X_pending=pending, **given),
        "qlogei": lambda: qLogExpectedImprovement(model, 0.0, X_pending=pending, **given),
        "qucb": lambda: qUpperConfidenceBound(model, 4.0, X_pending=pending, **given),
    }[function]()
    assert isinstance(objective.acquisition, type(plain))
    found, wanted = (POINTS.clone().requires_grad_() for _ in range(2))
    values, others = objective.frame.standardised(objective(found)), plain(wanted.unsqueeze(-2))
    torch.testing.assert_close(values, others)
    values.sum().backward()
    others.sum().backward()
    torch.testing.assert_close(found.grad, wanted.grad)


@pytest.mark.parametrize("at", [0.0, 0.3, 0.9])
def test_of_one_normal_node_they_have_closed_forms(at):
    model = one_node()
    point = torch.tensor([[at]], dtype=DOUBLE)
    improvement = MANY(model, one_case(model.task), "qlogei")
    assert improvement(point).exp().item() * improvement.scale.item() == pytest.approx(
        closed_form(at, 0.5, 0.4), rel=0.02
    )
    assert MANY(model, one_case(model.task), "qucb")(point).item() == pytest.approx(at + 2 * 0.5, rel=0.01)
    # The same deviation at every action cancels against that of the incumbent.
    noisy = MANY(model, one_case(model.task), "qlognei")
    assert noisy(point).exp().item() * noisy.scale.item() == pytest.approx(max(at - 0.4, 0), abs=1e-4)


def test_the_bound_is_in_the_rewards_unit_whatever_that_is():
    def laws(unit):
        task = one_node().task
        law = WrittenLaw(lambda w: unit * (w[..., 0] + 1e3), lambda w: 0.5 * unit + 0 * w[..., 0], 0.0)
        return WrittenModel(task, {"Y": law}, [[0.1], [0.4]])

    for unit in (1e-6, 1e6):
        objective = BotorchAcquisition(laws(unit), one_case(one_node().task), "qucb")
        point = torch.tensor([[0.3]], dtype=DOUBLE)
        assert objective(point).item() / unit == pytest.approx(1000.3 + 1.0, abs=0.1)
        assert abs(objective.frame.standardised(objective(point)).item()) < 10


@every
def test_the_screening_is_the_same_function_of_fewer_members(function):
    model = fitted_pair()
    objective = BotorchAcquisition(model, one_case(PAIR), function)
    fewer = BotorchAcquisition(model, one_case(PAIR), function, members=16, member_draws=8)
    torch.testing.assert_close(objective.rough(POINTS), objective.screened(POINTS))
    # Up to the scale, which is that of all members.
    torch.testing.assert_close(objective.rough(POINTS), fewer(POINTS), rtol=0, atol=0.01)
    assert float((objective(POINTS) - fewer(POINTS)).abs().max()) > 1e-4


def test_a_pending_action_is_worth_trying_no_more():
    model = fitted_pair()
    plain, aware = (
        BotorchAcquisition(model, one_case(PAIR), "qlognei", pending=pending) for pending in (None, PENDING)
    )
    assert float(plain(PENDING[0]) - aware(PENDING[0])) > 1
    for function in ("qlogei", "qucb"):
        alone, both = (
            BotorchAcquisition(model, one_case(PAIR), function, pending=pending)
            for pending in (None, PENDING[:1])
        )
        # Beside a pending action there is no more than with it.
        torch.testing.assert_close(both(PENDING[:1]), alone(PENDING[:1]), rtol=0, atol=0.02)
        assert bool((both(POINTS) >= both(PENDING[:1]) - 0.02).all())


def test_actions_outside_the_round_are_no_incumbents():
    model = linear_chain(visited=((0.2, 0.4), (0.9, 0.1)))
    narrow = RehearsalCase("0", {}, {"a": (0.0, 0.5), "b": (0.0, 2.0)})
    objective = BotorchAcquisition(model, narrow)
    assert objective.acquisition.X_baseline.tolist() == [[0.2, 0.4]]
    assert objective(torch.tensor([[0.4, 0.1]], dtype=DOUBLE)).isfinite().all()
    none = BotorchAcquisition(model, RehearsalCase("0", {}, {"a": (0.0, 0.1), "b": (0.0, 2.0)}))
    assert none.acquisition.X_baseline.tolist() == [[0.9, 0.1]], "the best of all if none is allowed"


@pytest.mark.parametrize("given", [{"function": "qei"}, {"beta": -1.0}, {"beta": math.inf}])
def test_bad_settings_are_refused(given):
    model = linear_chain()
    with pytest.raises(ValueError, match=r"expected a function of .* beta >= 0"):
        BotorchAcquisition(model, one_case(model.task), **given)


def test_nothing_visited_or_nothing_defined_is_refused():
    with pytest.raises(ValueError, match=r"at least one visited action; got .* actions=0"):
        BotorchAcquisition(linear_chain(visited=()), one_case(linear_chain().task))
    undefined = WrittenModel(
        one_node().task, {"Y": WrittenLaw(lambda w: w[..., 0] + math.nan, lambda w: w[..., 0])}, [[0.1]]
    )
    with pytest.raises(NoFiniteValueError, match="expected a finite reward of some visited action"):
        BotorchAcquisition(undefined, one_case(undefined.task))


def test_one_member_is_refused():
    with pytest.raises(ValueError, match=r"expected .*even number"):
        BotorchAcquisition(fitted_pair(), one_case(PAIR), members=1)


class Doubtful(WrittenLaw):
    """Claims twice the uncertainty of the fitted function."""

    def as_fitted(self):
        return WrittenLaw(self.mean, lambda w: self.std(w) / 2, self.scale)


def test_what_to_try_is_judged_by_the_uncertainty_of_the_fitted_function():
    task = one_node().task
    law = Doubtful(lambda w: w[..., 0], lambda w: 1.0 + 0 * w[..., 0], 0.0)
    objective = MANY(WrittenModel(task, {"Y": law}, [[0.1], [0.4]]), one_case(task), "qucb")
    point = torch.tensor([[0.3]], dtype=DOUBLE)
    assert objective(point).item() == pytest.approx(0.3 + 2 * 0.5, rel=0.01)


def test_without_beta_the_bound_is_the_posterior_mean_of_the_members():
    objective = BotorchAcquisition(fitted_pair(), one_case(PAIR), "qucb", beta=0.0)
    model, _, _ = in_sds(objective)
    torch.testing.assert_close(objective(POINTS), model.posterior(POINTS.unsqueeze(-2)).mean[..., 0, 0])


def test_the_incumbents_are_the_best_in_some_plausible_network_or_on_average():
    # E[r] = 3 a - b: 1, 1.02, 1 and 0, and the first and third depend on the draws the most differently.
    model = linear_chain(visited=((0.5, 0.5), (0.7, 1.08), (0.9, 1.7), (0.1, 0.3)))
    objective = BotorchAcquisition(model, one_case(model.task), members=2)
    same = NetworkModel(model, members=2, draws=16, seed=objective.seed + 2)
    rewards = torch.stack([same.posterior(each.unsqueeze(0)).values[:, 0, 0] for each in model.tried], -1)
    assert sorted(rewards.argmax(-1).tolist()) == [0, 2]
    assert int(rewards.mean(0).argmax()) == 1
    assert torch.equal(objective.acquisition.X_baseline, model.tried[:3])
    assert objective.scale.item() == pytest.approx(float(rewards.mean(0).std()))
