import math

import pytest
import torch
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.sampling.normal import SobolQMCNormalSampler

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives import improvement
from rehearsal_torch.objectives.expected_reward import (
    DrawnNetwork,
    PosteriorMean,
    RewardFrame,
    standard_draws,
)
from rehearsal_torch.objectives.improvement import (
    FiniteKnowledgeGradient,
    Improvement,
    KnowledgeGradient,
    NetworkLogExpectedImprovement,
    improvable_rewards,
    incumbent,
)
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.surrogates.network.network_model import NetworkModel
from rehearsal_torch.training.fit import fit
from tests.toys.causal_toys import WrittenLaw, WrittenModel, linear_chain, one_case, plain
from tests.toys.fitted_pair import DOUBLE, PAIR, fitted_pair, pair_table


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


POINTS = torch.tensor([[0.2, 0.1], [1.0, -0.3], [1.9, 0.9]], dtype=DOUBLE)
PENDING = torch.tensor([[0.7, 0.2], [1.5, -0.6]], dtype=DOUBLE)
QUICK = {"fantasies": 4, "alternatives": 4, "members": 4, "member_draws": 4}
SEARCH = {"screened": 32, "starts": 6, "incumbents": 2, "screening_steps": 3, "kept": 2, "steps": 20}


def limited():
    plain = PAIR.to_plain() | {"limits": {"normals": [[1.0, 1.0]], "offsets": [0.4]}}
    return fit(ExogenousModel(plain, phi="heteroskedastic"), pair_table(16))


@pytest.mark.parametrize("pending", [None, PENDING])
def test_the_value_is_the_best_posterior_mean_after_the_experiment(pending):
    objective = KnowledgeGradient(fitted_pair(), one_case(PAIR), pending=pending)
    function = objective.acquisition
    assert isinstance(function, qKnowledgeGradient)
    values = objective(POINTS)
    for point, value in zip(POINTS, values, strict=True):
        tried = point.unsqueeze(0) if pending is None else torch.cat([point.unsqueeze(0), pending])
        after = function.model.fantasize(tried, function.sampler)
        among = torch.cat([function.alternatives, point.unsqueeze(0)])
        best = after.posterior(among.unsqueeze(-2).unsqueeze(-3)).mean.flatten(1).flatten()
        best = best.reshape(len(among), -1).amax(0)
        torch.testing.assert_close(value, best.mean())
    # As BoTorch's function of the same fantasy points, and with the gradient of the maximum.
    at = POINTS.clone().requires_grad_()
    found = objective(at)
    torch.testing.assert_close(found.detach(), values)
    (gradient,) = torch.autograd.grad(found.sum(), at)
    step = 1e-6 * torch.eye(2, dtype=DOUBLE)
    with torch.no_grad():
        apart = torch.stack([objective(POINTS + each) - objective(POINTS - each) for each in step], -1)
    torch.testing.assert_close(gradient, apart / 2e-6, rtol=1e-3, atol=1e-4)


def test_an_experiment_promises_no_less_than_what_is_known():
    # On average over outcomes a maximum is no lower than the maximum of the averages.
    objective = KnowledgeGradient(fitted_pair(), one_case(PAIR), fantasies=64, members=16)
    best = PosteriorMean(fitted_pair(), one_case(PAIR)).expected(objective.acquisition.alternatives).max()
    assert bool((objective(POINTS) > best - 0.02).all())
    assert float(objective(POINTS).max()) > float(objective(POINTS).min()) + 1e-3


def test_the_alternatives_are_the_visited_and_spread_actions_with_the_largest_posterior_mean():
    model = fitted_pair()
    chosen = KnowledgeGradient(model, one_case(PAIR)).acquisition.alternatives
    assert chosen.shape == (8, 2)
    mean = PosteriorMean(model, one_case(PAIR))
    visited = model.visited()
    assert {tuple(each) for each in chosen[:4].tolist()} <= {tuple(each) for each in visited.tolist()}
    assert float(mean(chosen[4:]).min()) > float(mean(POINTS).max())
    few = limited()
    inside = KnowledgeGradient(few, one_case(few.task)).acquisition.alternatives
    assert bool((inside.sum(-1) <= 0.4 + 1e-6).all())


@pytest.mark.slow
def test_the_best_of_a_dense_grid_is_found():
    objective = KnowledgeGradient(fitted_pair(), one_case(PAIR), **QUICK)
    lower, upper = objective.bounds
    axes = [torch.linspace(float(a), float(b), 25, dtype=DOUBLE) for a, b in zip(lower, upper, strict=True)]
    with torch.no_grad():
        best = float(objective(torch.cartesian_prod(*axes)).max())
    decision = AcquisitionSearch(**SEARCH)(objective)
    assert decision.value >= best - 1e-3
    PAIR.check_action(decision.alteration.values)
    assert (
        AcquisitionSearch(**SEARCH)(KnowledgeGradient(fitted_pair(), one_case(PAIR), **QUICK)).to_dict()[
            "alteration"
        ]
        == (decision.to_dict()["alteration"])
    )


def test_fantasy_points_need_no_coordinates_of_their_own(monkeypatch):
    model = NetworkModel(fitted_pair(), members=4, draws=4, fantasy_members=4)
    sampler = SobolQMCNormalSampler(torch.Size([3]), seed=0)
    function = FiniteKnowledgeGradient(model, POINTS, sampler)
    assert function(POINTS.unsqueeze(-2)).shape == (3,)
    values = function(POINTS.unsqueeze(-2))
    torch.testing.assert_close(function(POINTS[1:2].unsqueeze(-2)), values[1:2])
    # In parts, and with leading dimensions.
    monkeypatch.setattr(improvement, "PART", 2)
    several = function(POINTS.unsqueeze(-2).expand(2, 2, 3, 1, 2))
    assert several.shape == (2, 2, 3)
    torch.testing.assert_close(several[1, 0], values)


@pytest.mark.parametrize("given", [{"fantasies": 0}, {"alternatives": 0}])
def test_bad_settings_are_refused(given):
    with pytest.raises(ValueError, match="expected positive numbers and at least one visited action"):
        KnowledgeGradient(fitted_pair(), one_case(PAIR), **given)


def test_nothing_visited_and_mechanisms_that_cannot_be_conditioned_are_refused():
    model = linear_chain(visited=())
    with pytest.raises(ValueError, match=r"at least one visited action; got .* actions=0"):
        KnowledgeGradient(model, one_case(model.task))
    KnowledgeGradient.check(fitted_pair())
    with pytest.raises(ValueError, match=r"expected surrogate\.decoder=closed_form; got gp"):
        KnowledgeGradient.check(ExogenousModel(PAIR, decoder="gp"))


def test_the_draws_and_the_alternatives_of_a_round_follow_from_its_seed():
    # Published results hang on these derivations.
    model = fitted_pair()
    objective = KnowledgeGradient(
        model, one_case(PAIR), **QUICK | {"alternatives": 5, "fantasies": 8}, seed=3
    )
    function, screening = objective.acquisition, objective.screening
    same = NetworkModel(model, members=4, draws=4, fantasy_members=4, seed=objective.seed + 2, as_fitted=True)
    assert torch.equal(function.model.epistemic, same.epistemic)
    assert torch.equal(function.model.noise, same.noise)
    assert function.model.fantasy_members == 4
    assert [each.sampler.sample_shape for each in (function, screening)] == [(8,), (4,)]
    assert {each.sampler.seed for each in (function, screening)} == {round_seed(objective.seed, "fantasies")}
    # Two of five are visited ones, the others the best of 256 that are spread.
    some = objective.noise[:16]
    spread = objective.region().units(objective.region().spread(256, objective.seed + 3))
    best = spread[objective.expected(spread, some).argsort(descending=True)[:3]]
    assert torch.equal(function.alternatives, torch.cat([objective.starts(2), best]))
    # Values are compared in standard deviations of the posterior means, from the largest one.
    means = objective.expected(objective.visited, some)
    assert objective.frame == RewardFrame(float(means.max()), float(means.std()))


def test_one_of_each_is_enough():
    one = {"fantasies": 1, "alternatives": 1}
    objective = KnowledgeGradient(fitted_pair(), one_case(PAIR), **QUICK | one)
    assert objective.acquisition.alternatives.shape == (1, 2)
    assert objective.screening.sampler.sample_shape == (1,)
    assert objective(POINTS).isfinite().all()


def test_experiments_are_judged_by_the_uncertainty_of_the_fitted_functions():
    # Noise that grows with a: the claimed uncertainty counts the process under normal noise as well.
    plain = pair_table(24)
    values, (a, *_) = plain.values.clone(), plain.values.T
    stream = torch.Generator().manual_seed(1)
    values[:, 2] = (2 * a).sin() + 0.3 * a**3 * torch.randn(24, generator=stream, dtype=DOUBLE)
    table = Table(plain.names, values, plain.altered)
    model = fit(ExogenousModel(PAIR, phi="heteroskedastic", epistemic="averaged"), table)
    objective = KnowledgeGradient(model, one_case(PAIR), **QUICK)
    given = {"members": 4, "draws": 4, "seed": objective.seed + 2}
    found, fitted, claimed = (
        made.posterior(POINTS.unsqueeze(-2)).variance
        for made in (
            objective.acquisition.model,
            NetworkModel(model, as_fitted=True, **given),
            NetworkModel(model, **given),
        )
    )
    assert torch.equal(found, fitted)
    assert not torch.equal(found, claimed)
