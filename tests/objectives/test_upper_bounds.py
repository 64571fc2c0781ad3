import inspect
import math

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.known_reward import FunctionReward, WeightedSum
from rehearsal_torch.objectives import upper_bounds
from rehearsal_torch.objectives.expected_reward import (
    DrawnNetwork,
    PosteriorMean,
    mean_reward,
    standard_draws,
)
from rehearsal_torch.objectives.upper_bounds import (
    PROPAGATE,
    ConfidenceBound,
    LinearBound,
    Optimism,
    OptimisticBound,
    UpperBound,
    monotone_perturbations,
    reward_spread,
    safe_root,
)
from tests.places import ROOT
from tests.toys.causal_toys import WrittenLaw, WrittenModel, linear_chain, one_case, plain

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


POINTS_CONFIDENCE_BOUND = torch.tensor([[0.1, 0.2], [0.7, 1.9], [1.0, 0.0]], dtype=torch.float64)


def bound(propagate, beta=2.0, model=None, **rest):
    model = linear_chain() if model is None else model
    return ConfidenceBound(model, one_case(model.task), beta=beta, propagate=propagate, **rest)


def expected(points):
    return 3 * points[:, 0] - points[:, 1]


def stds(points):
    return 1.5 * 0.3 * (1 + points[:, 0]), 0.2 * (1 + points[:, 1])


def luck(objective):
    """The mean of the fixed draws is nearly, not exactly, zero."""
    u = objective.noise.mean(0)
    return 1.5 * 0.1 * u[0] + 0.1 * u[1]


def test_what_can_be_reached_is_never_above_what_rewards_can_be():
    task = plain({"X": ["a"]}, {"a": [0, 1]}, {"targets": {"X": 0.2}})
    model = WrittenModel(
        task, {"X": WrittenLaw(lambda w: w[..., 0], lambda w: 0.5 + 0 * w[..., 0])}, ((0.5,),)
    )
    points = torch.linspace(0, 1, 11, dtype=torch.float64).unsqueeze(-1)
    with torch.no_grad():
        reached, linear, middle = (
            bound("reached", model=model)(points),
            bound("linear", model=model)(points),
            PosteriorMean(model, one_case(task))(points),
        )
    assert bool((reached <= 0).all())
    assert bool((reached >= middle - 1e-12).all())
    assert float(linear.max()) > 0


def test_the_optimistic_bound_at_full_pushes_is_the_sum_of_deviations():
    objective = bound("optimistic")
    assert objective.further == 1  # Y is pushed as far as it goes
    upstream, own = stds(POINTS_CONFIDENCE_BOUND)
    for perturbation in (-1.0, 0.0, 0.5, 1.0):
        points = torch.cat(
            [POINTS_CONFIDENCE_BOUND, torch.full((3, 1), perturbation, dtype=torch.float64)], -1
        )
        torch.testing.assert_close(
            objective(points),
            expected(POINTS_CONFIDENCE_BOUND) + luck(objective) + 2 * (perturbation * upstream + own),
            rtol=0,
            atol=1e-12,
        )


def test_the_separate_bound_of_a_linear_chain_adds_what_every_node_contributes():
    objective = bound("separate")
    assert objective.further == 1
    upstream, own = stds(POINTS_CONFIDENCE_BOUND)
    middle = expected(POINTS_CONFIDENCE_BOUND) + luck(objective)
    for perturbation, value_with in ((1.0, (upstream**2 + own**2).sqrt()), (0.0, own), (-1.0, own)):
        points = torch.cat(
            [POINTS_CONFIDENCE_BOUND, torch.full((3, 1), perturbation, dtype=torch.float64)], -1
        )
        torch.testing.assert_close(objective(points), middle + 2 * value_with, rtol=0, atol=1e-12)


def test_separate_pushes_see_over_a_crest_where_slopes_see_nothing():
    # X is believed to be 0, in a valley between two crests of height 1/4.
    task = plain(
        {"X": ["a"]}, {"a": [0, 1]}, FunctionReward(("X",), lambda x: x[..., 0] ** 2 - x[..., 0] ** 4)
    )
    model = WrittenModel(
        task, {"X": WrittenLaw(lambda w: 0 * w[..., 0], lambda w: 0.5 + 0 * w[..., 0], 0.0)}, ((0.5,),)
    )
    points = torch.stack(
        [torch.full((41,), 0.5, dtype=torch.float64), torch.linspace(-1, 1, 41, dtype=torch.float64)], -1
    )
    with torch.no_grad():
        assert float(bound("linear", model=model)(points[:1, :1]).max()) < 1e-6
    assert float(bound("separate", model=model)(points).max()) == pytest.approx(0.25, abs=1e-3)


def test_separate_pushes_do_not_multiply_what_is_not_known():
    task = plain(
        {"X": ["a"], "Y": ["a"]}, {"a": [0, 1]}, FunctionReward(("X", "Y"), lambda x: x[..., 0] * x[..., 1])
    )
    laws = {
        name: WrittenLaw(lambda w: 0 * w[..., 0], lambda w: 0.3 + 0 * w[..., 0], 0.0) for name in ("X", "Y")
    }
    model = WrittenModel(task, laws, ((0.5,),))
    point = torch.tensor([[0.5, 1.0, 1.0]], dtype=torch.float64)
    assert bound("optimistic", model=model)(point).item() == pytest.approx(0.36)
    assert bound("separate", model=model)(point).item() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("propagate", PROPAGATE)
def test_without_beta_every_bound_is_the_posterior_mean(propagate):
    objective = bound(propagate, beta=0.0)
    points = torch.nn.functional.pad(POINTS_CONFIDENCE_BOUND, (0, objective.further), value=0.3)
    if propagate == "sample":  # a quarter of the draws of the noise, and draws of the laws: mean zero
        u = objective.noise[:16].mean(0)
        torch.testing.assert_close(
            objective(points), expected(POINTS_CONFIDENCE_BOUND) + 0.15 * u[0] + 0.1 * u[1], rtol=0, atol=1e-9
        )
    else:
        torch.testing.assert_close(
            objective(points), objective.expected(POINTS_CONFIDENCE_BOUND), rtol=0, atol=1e-12
        )


def test_screening_uses_some_of_the_draws():
    objective = bound("mean")
    u = objective.noise[:16].mean(0)
    few = expected(POINTS_CONFIDENCE_BOUND) + 0.15 * u[0] + 0.1 * u[1] + 2 * stds(POINTS_CONFIDENCE_BOUND)[1]
    torch.testing.assert_close(objective.screened(POINTS_CONFIDENCE_BOUND), few, rtol=0, atol=1e-12)


def two_nodes(reward):
    task = plain({"X": ["a"], "Y": ["a"]}, {"a": [0, 1]}, reward)
    laws = {
        "X": WrittenLaw(lambda w: w[..., 0], lambda w: 0.3 + 0 * w[..., 0], 0.0),
        "Y": WrittenLaw(lambda w: 1 - w[..., 0], lambda w: 0.4 + 0 * w[..., 0], 0.0),
    }
    return WrittenModel(task, laws, [[0.5]])


def test_a_distance_to_a_target_is_unsure_by_its_draws():
    model = two_nodes({"targets": {"X": 0.5, "Y": 0.5}})
    objective = bound("mean", model=model, epistemic_draws=2048)
    at = torch.tensor([[0.5]], dtype=torch.float64)
    # -mean of (s e)^2: variance (2 s_x^4 + 2 s_y^4) / 4.
    assert objective(at).item() == pytest.approx(2 * math.sqrt((2 * 0.3**4 + 2 * 0.4**4) / 4), rel=0.03)
    assert bound("optimistic", model=model).further == 2


@pytest.mark.parametrize(
    "given",
    [{"beta": -1.0}, {"propagate": "median"}, {"draws": 0}, {"epistemic_draws": 3}, {"beta": math.inf}],
)
def test_bad_settings_are_refused(given):
    model = linear_chain()
    with pytest.raises(ValueError, match="expected"):
        ConfidenceBound(model, one_case(model.task), **given)


def test_the_epistemic_draws_of_a_round_follow_from_its_seed():
    # Published results hang on this derivation.
    objective = bound("sample")
    assert torch.equal(objective.epistemic, standard_draws(16, 2, objective.seed + 2))


POINTS_OPTIMISM = torch.tensor([[0.1, 0.2], [0.7, 1.9], [1.0, 0.0]], dtype=DOUBLE)


def optimism(model=None, beta=2.0, **more):
    model = linear_chain() if model is None else model
    return Optimism(model, one_case(model.task), beta, **more)


def constant(*perturbations):
    return lambda place, scaled: scaled.new_full((), perturbations[place])


def believed(objective, points=POINTS_OPTIMISM):
    """The mean bound of the linear chain without any push, with the little that fixed draws are off by."""
    luck = objective.noise.mean(0)
    return 3 * points[:, 0] - points[:, 1] + 0.15 * luck[0] + 0.1 * luck[1]


@pytest.mark.parametrize("perturbation", [-1.0, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("beta", [0.0, 2.0])
def test_the_value_of_a_linear_chain_is_exact_for_every_push(perturbation, beta):
    objective = optimism(beta=beta)
    found = objective.optimistic(POINTS_OPTIMISM, constant(perturbation, -0.7), objective.noise)
    upstream, own = 0.45 * (1 + POINTS_OPTIMISM[:, 0]), 0.2 * (1 + POINTS_OPTIMISM[:, 1])
    # The reward is Y, which causes nothing: it is pushed all the way, whatever is asked of it.
    wanted = believed(objective) + beta * (perturbation * upstream + own)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_as_an_objective_of_actions_every_other_node_stays_where_it_is_believed():
    objective = optimism()
    own = 0.2 * (1 + POINTS_OPTIMISM[:, 1])
    torch.testing.assert_close(objective(POINTS_OPTIMISM), believed(objective) + 2 * own, rtol=0, atol=1e-12)
    assert objective.further == 0


def test_without_optimism_it_is_the_posterior_mean():
    model = linear_chain()
    for draws in (8, 64):
        objective = optimism(model, 0.0, draws=draws)
        torch.testing.assert_close(
            objective(POINTS_OPTIMISM),
            PosteriorMean(model, one_case(model.task), draws)(POINTS_OPTIMISM),
            rtol=0,
            atol=1e-12,
        )


@settings(max_examples=4, deadline=None, derandomize=True)
@given(
    weight=st.floats(-2, 2).filter(lambda w: abs(w) > 0.05), beta=st.floats(0.1, 4), seed=st.integers(0, 9)
)
def test_the_value_of_actions_alone_bounds_the_best_network_from_below(weight, beta, seed):
    task = plain({"X": ["a"], "Y": ["X"]}, {"a": [0, 1]}, {"weights": {"X": 0.5, "Y": weight}})
    model = WrittenModel(
        task,
        {
            "X": WrittenLaw(lambda w: (3 * w[..., 0]).sin(), lambda w: 0.2 + w[..., 0]),
            "Y": WrittenLaw(lambda w: w[..., 0] ** 2, lambda w: 0.1 + w[..., 0].abs()),
        },
    )
    objective = optimism(model, beta, seed=seed, draws=8)
    points = torch.tensor([[0.1], [0.8]], dtype=DOUBLE)
    network, noise = model.network(), objective.noise
    side = [place / 5 for place in range(-5, 6)]
    networks = torch.stack(
        [
            mean_reward(network, points, noise, constant(beta * first, beta * last))
            for first in side
            for last in side
        ]
    )
    chosen = torch.stack([objective.optimistic(points, constant(first, 0.0), noise) for first in side])
    # X causes Y, so that its push is a choice; Y is pushed to where the reward grows.
    torch.testing.assert_close(chosen.amax(0), networks.amax(0), rtol=0, atol=1e-10)
    assert bool((objective(points) <= networks.amax(0) + 1e-9).all())
    assert bool((objective(points) > mean_reward(network, points, noise)).all())


def test_pushes_are_functions_of_what_the_node_sees():
    objective = optimism()
    seen = []

    def perturbation(place, scaled):
        seen.append((place, scaled.shape[-1]))
        return torch.where(scaled[..., 0] > 0.5, 1.0, -1.0)

    found = objective.optimistic(POINTS_OPTIMISM, perturbation, objective.noise)
    sign = torch.tensor([-1.0, 1.0, 1.0], dtype=DOUBLE)
    upstream, own = 0.45 * (1 + POINTS_OPTIMISM[:, 0]), 0.2 * (1 + POINTS_OPTIMISM[:, 1])
    torch.testing.assert_close(found, believed(objective) + 2 * (sign * upstream + own), rtol=0, atol=1e-12)
    assert seen == [(0, 1)]


def test_a_reward_that_is_no_weighted_sum_has_no_push_of_its_own():
    task = plain({"X": ["a"]}, {"a": [0, 1]}, FunctionReward(("X",), lambda x: -(x[..., 0] ** 2)))
    model = WrittenModel(task, {"X": WrittenLaw(lambda w: w[..., 0], lambda w: 0.5 + 0 * w[..., 0])})
    objective = optimism(model)
    assert objective.perturbations == (None,)
    points = torch.tensor([[0.3]], dtype=DOUBLE)
    torch.testing.assert_close(objective(points), PosteriorMean(model, one_case(task))(points))
    # Pushed by -0.3 of one standard deviation times two, the node is believed to be where the reward peaks.
    best = objective.optimistic(points, constant(-0.3), objective.noise)
    assert float(best) == pytest.approx(-0.01, abs=5e-3)


@pytest.mark.parametrize("beta", [-0.5, math.inf, math.nan])
def test_a_beta_that_is_no_number_of_standard_deviations_is_refused_of_optimism(beta):
    with pytest.raises(ValueError, match=f"expected beta >= 0; got beta={beta}"):
        optimism(beta=beta)


def test_screening_looks_at_a_quarter_of_the_draws():
    objective = optimism(draws=8)
    luck, own = objective.noise[:2].mean(0), 0.2 * (1 + POINTS_OPTIMISM[:, 1])
    wanted = 3 * POINTS_OPTIMISM[:, 0] - POINTS_OPTIMISM[:, 1] + 0.15 * luck[0] + 0.1 * luck[1] + 2 * own
    torch.testing.assert_close(objective.rough(POINTS_OPTIMISM), wanted, rtol=0, atol=1e-12)
