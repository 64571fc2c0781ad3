import inspect
import math

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.known_reward import FunctionReward, WeightedSum
from rehearsal_torch.objectives.trials import upper_bounds
from rehearsal_torch.objectives.trials.network_acquisition import DrawnNetwork, mean_reward, standard_draws
from rehearsal_torch.objectives.trials.upper_bounds import (
    PROPAGATE,
    LinearBound,
    OptimisticBound,
    UpperBound,
    monotone_perturbations,
    reward_spread,
    safe_root,
)
from tests.places import ROOT
from tests.toys.causal_toys import WrittenLaw, WrittenModel, linear_chain, plain

DOUBLE = torch.float64
POINTS = torch.tensor([[0.1, 0.2], [0.7, 1.9]], dtype=torch.float64)


def made(kind, beta=2.0, draws=8, epistemic=16):
    model = linear_chain()
    network = model.network()
    return kind(
        DrawnNetwork(network, model.draws(draws, 3), standard_draws(epistemic, len(network.mechanisms), 0)),
        beta,
    )


def of_points(bound, perturbation=1.0):
    """The values at POINTS with all free perturbations alike."""
    padded = torch.nn.functional.pad(POINTS, (0, bound.further), value=perturbation)
    return bound(padded.unsqueeze(-2))


def test_the_table_holds_every_bound_under_its_own_name():
    classes = {
        each.__name__.lower().removesuffix("bound"): each
        for each in vars(upper_bounds).values()
        if inspect.isclass(each) and issubclass(each, UpperBound) and not inspect.isabstract(each)
    }
    assert classes == PROPAGATE
    shipped = yaml.safe_load((ROOT / "conf/objective/confidence_bound.yaml").read_text(encoding="utf-8"))
    assert shipped["propagate"] in PROPAGATE


@pytest.mark.parametrize("name", PROPAGATE)
def test_the_bound_of_a_linear_chain_has_a_closed_form(name):
    bound = made(PROPAGATE[name], epistemic=512)
    # E[r] = 3 a - b and its deviations, with the little by which the mean of fixed draws is not zero.
    upstream, own = 0.45 * (1 + POINTS[:, 0]), 0.2 * (1 + POINTS[:, 1])
    u = (bound.few if name == "sample" else bound.noise).mean(0)
    mean = 3 * POINTS[:, 0] - POINTS[:, 1] + 0.15 * u[0] + 0.1 * u[1]
    together = (upstream.square() + own.square()).sqrt()
    spread = {"mean": own, "optimistic": upstream + own}.get(name, together)
    # Sobol draws of two nodes are nearly uncorrelated.
    near = 1e-2 if name == "sample" else 1e-12
    torch.testing.assert_close(of_points(bound), mean + 2 * spread, rtol=0, atol=near)


@pytest.mark.parametrize("name", PROPAGATE)
def test_a_larger_beta_makes_a_larger_bound(name):
    low, high = (made(PROPAGATE[name], beta) for beta in (0.5, 2.0))
    assert low.further == (1 if name in ("optimistic", "separate") else 0)
    assert bool((of_points(high) > of_points(low)).all())


@pytest.mark.parametrize("name", PROPAGATE)
@pytest.mark.parametrize("beta", [-0.5, math.inf, math.nan])
def test_a_beta_that_is_no_number_of_standard_deviations_is_refused(name, beta):
    with pytest.raises(ValueError, match=f"expected beta >= 0; got beta={beta}"):
        made(PROPAGATE[name], beta)


def test_the_gradient_is_what_a_push_changes():
    bound = made(LinearBound)
    gradients = bound.gradient(POINTS)
    for node in range(2):
        perturbation = torch.zeros(2, 2, dtype=torch.float64)
        perturbation[:, node] = 1e-3
        change = bound.perturbed(POINTS, bound.few, perturbation) - mean_reward(
            bound.network, POINTS, bound.few
        )
        torch.testing.assert_close(change / 1e-3, gradients[:, node], rtol=1e-9, atol=1e-9)


def test_pushes_that_are_open_follow_the_action_and_others_are_fixed():
    bound = made(OptimisticBound, beta=3.0)
    actions, perturbations = bound.split(torch.cat([POINTS, torch.tensor([[0.5], [-1.0]]).double()], -1))
    assert torch.equal(actions, POINTS)
    assert perturbations.tolist() == [[1.5, 3.0], [-3.0, 3.0]]


def test_only_nodes_of_a_weighted_sum_that_cause_nothing_are_pushed_as_far_as_they_go():
    def signs(parents, reward):
        task = plain(parents, {"a": [0, 1]}, reward)
        law = WrittenLaw(lambda w: w[..., 0], lambda w: 0.3 + 0 * w[..., 0])
        return monotone_perturbations(WrittenModel(task, dict.fromkeys(task.nodes, law)).network())

    apart = {"X": ["a"], "Y": ["a"]}
    assert signs(apart, {"weights": {"X": 2.0, "Y": -1.0}}) == (1.0, -1.0)
    assert signs({"X": ["a"], "Y": ["X"]}, {"weights": {"X": 2.0, "Y": -1.0}}) == (None, -1.0)
    assert signs(apart, FunctionReward(("X", "Y"), lambda x: x[..., 0] * x[..., 1])) == (None, None)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    weights=st.lists(st.floats(-3, 3).filter(lambda w: abs(w) > 1e-3), min_size=1, max_size=4),
    seed=st.integers(0, 100),
)
def test_the_spread_of_a_weighted_sum_is_that_of_independent_nodes(weights, seed):
    stream = torch.Generator().manual_seed(seed)
    width = len(weights)
    means, stds = torch.randn(2, 5, width, generator=stream, dtype=DOUBLE).unbind(0)
    names = tuple(f"x{place}" for place in range(width))
    reward = WeightedSum(dict(zip(names, weights, strict=True)))
    found = reward_spread(reward, means, stds.abs(), standard_draws(4, width, 0))
    wanted = [
        math.sqrt(sum((weight * std) ** 2 for weight, std in zip(weights, row, strict=True)))
        for row in stds.tolist()
    ]
    assert found.tolist() == pytest.approx(wanted)
    # The same sum as a function without a closed form: its spread over draws, which for one node is exact.
    plainly = FunctionReward(names, lambda values: values @ values.new_tensor(weights))
    by_draws = reward_spread(plainly, means, stds.abs(), standard_draws(4096, width, 0))
    assert by_draws.tolist() == pytest.approx(wanted, rel=1e-9 if width == 1 else 0.1)


def test_the_spread_of_a_bent_reward_is_the_standard_deviation_over_the_draws():
    reward = FunctionReward(("X",), lambda x: x[..., 0] ** 2)
    epistemic = standard_draws(4096, 1, 0)
    found = reward_spread(
        reward, torch.tensor([[0.5], [0.0]], dtype=DOUBLE), torch.full((2, 1), 0.3).double(), epistemic
    )
    # Var (m + s e)^2 = 4 m^2 s^2 + 2 s^4.
    wanted = [math.sqrt(4 * m**2 * 0.09 + 2 * 0.3**4) for m in (0.5, 0.0)]
    assert found.tolist() == pytest.approx(wanted, rel=0.01)


def test_the_root_has_a_finite_gradient_at_zero():
    squares = torch.tensor([0.0, 4.0], dtype=DOUBLE, requires_grad=True)
    roots = safe_root(squares)
    roots.sum().backward()
    assert roots.tolist() == pytest.approx([0.0, 2.0], abs=1e-14)
    assert squares.grad.isfinite().all()
    assert float(squares.grad[1]) == pytest.approx(0.25)


def test_uncertainty_is_averaged_over_a_quarter_of_the_draws_but_one_at_least():
    for draws, few in ((1, 1), (3, 1), (7, 1), (8, 2), (64, 16)):
        bound = made(PROPAGATE["sample"], draws=draws)
        assert torch.equal(bound.few, bound.noise[:few])
