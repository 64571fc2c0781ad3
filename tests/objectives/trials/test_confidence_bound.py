import math

import pytest
import torch

from rehearsal_torch.data.known_reward import FunctionReward
from rehearsal_torch.objectives.trials.confidence_bound import ConfidenceBound
from rehearsal_torch.objectives.trials.expected_reward import PosteriorMean
from rehearsal_torch.objectives.trials.network_acquisition import standard_draws
from rehearsal_torch.objectives.trials.upper_bounds import PROPAGATE
from tests.toys.causal_toys import WrittenLaw, WrittenModel, linear_chain, one_case, plain

POINTS = torch.tensor([[0.1, 0.2], [0.7, 1.9], [1.0, 0.0]], dtype=torch.float64)


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
    upstream, own = stds(POINTS)
    for perturbation in (-1.0, 0.0, 0.5, 1.0):
        points = torch.cat([POINTS, torch.full((3, 1), perturbation, dtype=torch.float64)], -1)
        torch.testing.assert_close(
            objective(points),
            expected(POINTS) + luck(objective) + 2 * (perturbation * upstream + own),
            rtol=0,
            atol=1e-12,
        )


def test_the_separate_bound_of_a_linear_chain_adds_what_every_node_contributes():
    objective = bound("separate")
    assert objective.further == 1
    upstream, own = stds(POINTS)
    middle = expected(POINTS) + luck(objective)
    for perturbation, value_with in ((1.0, (upstream**2 + own**2).sqrt()), (0.0, own), (-1.0, own)):
        points = torch.cat([POINTS, torch.full((3, 1), perturbation, dtype=torch.float64)], -1)
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
    points = torch.nn.functional.pad(POINTS, (0, objective.further), value=0.3)
    if propagate == "sample":  # a quarter of the draws of the noise, and draws of the laws: mean zero
        u = objective.noise[:16].mean(0)
        torch.testing.assert_close(
            objective(points), expected(POINTS) + 0.15 * u[0] + 0.1 * u[1], rtol=0, atol=1e-9
        )
    else:
        torch.testing.assert_close(objective(points), objective.expected(POINTS), rtol=0, atol=1e-12)


def test_screening_uses_some_of_the_draws():
    objective = bound("mean")
    u = objective.noise[:16].mean(0)
    few = expected(POINTS) + 0.15 * u[0] + 0.1 * u[1] + 2 * stds(POINTS)[1]
    torch.testing.assert_close(objective.screened(POINTS), few, rtol=0, atol=1e-12)


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
