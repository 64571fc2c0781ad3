import math

import pytest
import torch

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives import improvement
from rehearsal_torch.objectives.expected_reward import (
    DrawnNetwork,
    RewardFrame,
    standard_draws,
)
from rehearsal_torch.objectives.improvement import (
    Improvement,
    NetworkLogExpectedImprovement,
    improvable_rewards,
    incumbent,
)
from tests.toys.causal_toys import WrittenLaw, WrittenModel, linear_chain, one_case, plain


def one_node(std=0.5, scale=0.0):
    task = plain({"Y": ["a"]}, {"a": [0, 1]}, "Y")
    return WrittenModel(
        task,
        {"Y": WrittenLaw(lambda w: w[..., 0], lambda w: std + 0 * w[..., 0], scale)},
        [[0.1], [0.4]],
    )


def closed_form(mean, std, best):
    z = (mean - best) / std
    return std * (math.exp(-z * z / 2) / math.sqrt(2 * math.pi) + z * 0.5 * math.erfc(-z / math.sqrt(2)))


@pytest.mark.parametrize("at", [0.0, 0.3, 0.9])
def test_one_node_has_the_closed_form(at):
    model = one_node()
    objective = Improvement(model, one_case(model.task), epistemic_draws=1024)
    assert objective.best.item() == pytest.approx(0.4, abs=1e-9)
    found = objective(torch.tensor([[at]], dtype=torch.float64)).exp().item() * objective.scale.item()
    assert found == pytest.approx(closed_form(at, 0.5, 0.4), rel=0.02)


@pytest.mark.parametrize("at", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_the_acquisition_function_has_the_closed_form_in_any_scale(at, scale):
    model = one_node()
    made = DrawnNetwork(model.network(), model.draws(4, 0), standard_draws(1024, 1, 1))
    function = NetworkLogExpectedImprovement(made, 0.4, scale)
    assert function._log, "BoTorch is told that values are logarithms"
    found = function(torch.tensor([[[at]]], dtype=torch.float64))
    assert found.exp().item() * scale == pytest.approx(closed_form(at, 0.5, 0.4), rel=0.02)


@pytest.mark.parametrize("scale", [0.0, math.nan])
def test_a_scale_of_zero_is_refused(scale):
    model = one_node()
    made = DrawnNetwork(model.network(), model.draws(4, 0), standard_draws(8, 1, 1))
    with pytest.raises(ValueError, match="expected scale > 0"):
        NetworkLogExpectedImprovement(made, 0.4, scale)


def test_there_is_a_slope_where_improvement_is_unlikely():
    model = one_node(std=1e-3)
    objective = Improvement(model, one_case(model.task))
    at = torch.tensor([[0.0]], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(objective(at).sum(), at)
    assert slope.item() > 1e-3


def test_the_graph_carries_the_ignorance_of_the_nodes_before(monkeypatch):
    monkeypatch.setattr(improvement, "NOISE_DRAWS", 16)
    model = linear_chain()
    objective = Improvement(model, one_case(model.task), epistemic_draws=1024)
    at = torch.tensor([[0.5, 0.5]], dtype=torch.float64)
    std = math.hypot(1.5 * 0.3 * 1.5, 0.2 * 1.5)
    mean = improvable_rewards(objective.acquisition.drawn, at).mean().item()
    assert mean == pytest.approx(1.0, abs=0.02)
    assert objective(at).exp().item() * objective.scale.item() == pytest.approx(
        closed_form(mean, std, objective.best.item()), rel=0.05
    )


def test_nothing_visited_is_refused():
    model = linear_chain(visited=())
    with pytest.raises(ValueError, match="at least one visited action"):
        Improvement(model, one_case(model.task))


def test_an_odd_number_of_draws_is_refused():
    model = linear_chain()
    with pytest.raises(ValueError, match="even number"):
        Improvement(model, one_case(model.task), epistemic_draws=5)


def test_the_best_of_the_finite_means_is_to_be_improved_on():
    means = torch.tensor([1.0, math.nan, 3.0, math.inf], dtype=torch.float64)
    best, scale = incumbent(means, "round 4")
    assert (best.item(), scale.item()) == (3.0, pytest.approx(math.sqrt(2)))
    assert incumbent(means[:1], "round 4")[1].item() == 1.0
    same = torch.tensor([5.0, 5.0], dtype=torch.float64)
    assert incumbent(same, "round 4")[1].item() == pytest.approx(1e-12)
    with pytest.raises(ValueError, match="round 4: expected a finite reward of some visited action"):
        incumbent(means[1:2], "round 4")


def test_a_spread_of_any_size_counts_unless_it_is_rounding():
    def scale(*means):
        return incumbent(torch.tensor(means, dtype=torch.float64), "0")[1].item()

    assert scale(1e-15, 3e-15) == pytest.approx(math.sqrt(2) * 1e-15)
    assert scale(1e6, 1e6 + 2e-9) == pytest.approx(math.sqrt(2) * 1e-9, rel=0.1), (
        "within rounding, but not small"
    )
    assert scale(0.0, 0.0) == scale(7.0, 7.0, 7.0) == 1e-12
    assert scale(-2.0) == 2.0


def test_screening_keeps_a_quarter_of_the_epistemic_draws_in_pairs():
    model = linear_chain()
    for count, few in ((2, 2), (14, 2), (16, 4), (22, 4), (32, 8)):
        objective = Improvement(model, one_case(model.task), epistemic_draws=count)
        every, some = objective.acquisition.drawn, objective.screening.drawn
        assert (len(every.epistemic), len(every.noise)) == (count, 4)
        assert torch.equal(some.epistemic, every.epistemic[:few])
        assert torch.equal(some.noise, every.noise)
        assert objective.frame == RewardFrame()


def test_the_draws_of_a_round_follow_from_its_seed():
    # Published results hang on these derivations.
    model = linear_chain()
    objective = Improvement(model, one_case(model.task), seed=3)
    drawn = objective.acquisition.drawn
    assert torch.equal(drawn.epistemic, standard_draws(32, 2, objective.seed + 2))
    assert torch.equal(drawn.noise, model.draws(4, objective.seed + 3))


def test_the_incumbent_is_allowed_in_the_round_if_any_visited_action_is():
    model = linear_chain(visited=((0.2, 0.4), (0.9, 0.1)))
    best = [
        Improvement(model, RehearsalCase("0", {}, {"a": (0.0, most), "b": (0.0, 2.0)})).best.item()
        for most in (0.5, 1.0, 0.1)
    ]
    # E[r] = 3 a - b: of the first alone, of both, and of both since neither is allowed.
    assert best == pytest.approx([0.2, 2.6, 2.6], abs=0.1)
