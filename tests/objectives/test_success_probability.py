import math
from copy import copy

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import norm

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.objectives import success_probability
from rehearsal_torch.objectives.success_probability import (
    ENTROPIES,
    Information,
    PredictiveDensity,
    SuccessProbability,
    fresh,
)
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain, managing
from tests.toys.rehearsal_methods import learnt
from tests.toys.toy_posteriors import Toy, toy_cases

TOY = Toy((0.6, 0.4), (1.0, 0.2), (0.3, 0.5))


def test_each_sample_says_the_probability_of_the_closed_form():
    (one,) = SuccessProbability.for_cases(
        TOY,
        toy_cases(2),
        search_scenarios=6000,
        validation_scenarios=6000,
        test_scenarios=6000,
        information_models=10,
        entropy="sampled",
    ).sets
    for z in (-2.0, 0.0, 1.5, 3.0):
        actions = torch.full((2, 1), z, dtype=torch.float64)
        said = [
            one(actions),
            one.compared_probability(actions),
            torch.tensor([fact.estimate.point for fact in one.appraise(actions)]),
        ]
        for each in said:
            assert each.tolist() == pytest.approx([TOY.success(z)] * 2, abs=0.025)
        assert float(one.share_of(1, actions[:1])) == float(one.compared_probability(actions)[1])


@pytest.mark.parametrize(
    "world",
    [
        managing(),
        managing(
            Polytope(
                ("profit", "customers"),
                torch.tensor([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]]),
                torch.tensor([-0.2, -0.3, 2.5]),
            )
        ),
    ],
)
def test_any_polytope_and_several_outcomes_come_near_the_truth(world):
    made = learnt("structural_posterior", world.task, world.table(600))
    (one_case,) = world.cases(1)
    (one,) = SuccessProbability.for_cases(
        made,
        [one_case],
        search_scenarios=3000,
        validation_scenarios=10,
        test_scenarios=10,
        information_models=10,
    ).sets
    for action in ([4.2, 6.0], [3.5, 5.0]):
        true = world.success(one_case, dict(zip(one.names, action, strict=True)))
        assert float(one(torch.tensor([action], dtype=torch.float64))) == pytest.approx(true, abs=0.07)


def few(toy, cases, **settings):
    """Small samples, of different sizes."""
    sizes = {"search_scenarios": 6, "validation_scenarios": 5, "test_scenarios": 4, "information_models": 3}
    (one,) = SuccessProbability.for_sets(toy, cases, **{**sizes, "entropy": "sampled", **settings})
    return one


def test_only_several_graphs_are_judged_one_by_one() -> None:
    at = torch.ones(1, 1, dtype=torch.float64)
    (several,) = few(TOY, toy_cases(1), test_scenarios=50).appraise(at)
    (single,) = few(Toy(), toy_cases(1), test_scenarios=50).appraise(at)
    assert list(several.trace) == ["graphs"]
    assert single.trace == {}


def test_no_sample_of_a_seed_is_one_of_another_seed() -> None:
    asked = []

    class Asked(Toy):
        def sampled(self, count, seed=0):
            asked.append(seed)
            return super().sampled(count, seed)

    for seed in (0, 1):
        few(Asked(), toy_cases(1), seed=seed)
        fresh(Asked(), toy_cases(1), ("a",), 5, seed)
        asked.append(success_probability.STAGES * seed + success_probability.MODELS)
    assert len(set(asked)) == len(asked) == 12
    # Those of a certificate are the last of a seed, so that there is room for further samples of a search.
    assert max(asked[:6]) < min(asked[6:])
    assert sorted(asked[:6])[-2:] == [6, 7] == [success_probability.MODELS, success_probability.FRESH]


Z = torch.tensor([0.0, 0.5, 1.0, 2.0, 3.0], dtype=torch.float64)
CONTEXT = torch.zeros(1, 1, dtype=torch.float64)
TWO_GRAPHS = Toy((0.5, 0.5), (1.0, 0.0), (0.0, 0.0))
ONE_SLOPE = Toy((1.0,), (1.0,), (0.5,))
BOTH = Toy((0.3, 0.7), (1.0, -0.5), (0.4, 0.2))


def asked(toy, count):
    return Information(toy, toy.sampled(count, 5), CONTEXT, ("a",), "sampled").at(0, Z.unsqueeze(-1))


def test_the_closed_form_is_that_of_a_slope():
    for z in Z.tolist():
        assert ONE_SLOPE.information(z) == pytest.approx(0.5 * math.log(1 + 0.25 * z**2), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("toy", [TWO_GRAPHS, ONE_SLOPE, BOTH], ids=["two graphs", "one slope", "both"])
def test_information_about_a_toy_is_the_closed_form(toy):
    true = torch.tensor([toy.information(z) for z in Z.tolist()], dtype=torch.float64)
    found = asked(toy, 1500)
    assert torch.allclose(found, true, atol=0.06)
    # Differences between alterations are not chance: the same models and noise stand behind all of them.
    assert torch.allclose(found - found[0], true - true[0], atol=0.06)
    assert (found[1:] > found[:-1]).all()


def test_two_graphs_hold_at_most_one_bit_and_nothing_is_learnt_where_they_agree():
    found = asked(TWO_GRAPHS, 800)
    assert float(found[0]) == pytest.approx(0, abs=1e-9)
    assert float(
        Information(TWO_GRAPHS, TWO_GRAPHS.sampled(800, 5), CONTEXT, ("a",), "sampled").at(
            0, torch.tensor([[40.0]])
        )
    ) == pytest.approx(math.log(2), abs=0.01)


@pytest.fixture(scope="module")
def posterior():
    world = chain()
    return world, fit(StructuralPosterior(world.task), world.table(40))


@pytest.mark.slow
@pytest.mark.parametrize("names", [("a",), ("m",), ("a", "m")], ids="+".join)
def test_closed_forms_and_nested_samples_agree(posterior, names):
    world, made = posterior
    contexts, models = made.task.given(world.cases(2)), made.sampled(1200, 3)
    actions = torch.linspace(-1, 1, 5, dtype=torch.float64).reshape(5, 1, 1).expand(5, 2, len(names))
    predictive, sampled = (
        Information(made, models, contexts, names, entropy)(actions) for entropy in ENTROPIES
    )
    assert predictive.shape == (5, 2)
    assert torch.allclose(predictive, sampled, atol=0.12)
    # Less one constant they agree closer: that is what alterations are compared by.
    assert torch.allclose(predictive - predictive[2], sampled - sampled[2], atol=0.05)
    if len(names) == 1:
        # Leverage grows away from the data.
        assert (predictive[0] > predictive[2]).all() or (predictive[4] > predictive[2]).all()


def test_an_estimate_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="expected one of"):
        Information(ONE_SLOPE, ONE_SLOPE.sampled(5), CONTEXT, ("a",), "histogram")
    with pytest.raises(ValueError, match="choose entropy=sampled"):
        Information(ONE_SLOPE, ONE_SLOPE.sampled(5), CONTEXT, ("a",), "predictive")


def test_a_few_models_have_the_values_of_the_formulas() -> None:
    models, contexts = BOTH.sampled(7, 5), torch.tensor([[0.3], [-2.0]], dtype=torch.float64)
    actions = torch.tensor([[[0.5], [1.0]], [[-2.0], [0.0]], [[3.0], [0.1]]], dtype=torch.float64)
    slopes, errors = models.state_scale.numpy(), models.error[1].numpy()
    found = Information(BOTH, models, contexts, ("a",), "sampled")(actions)
    assert found.shape == (3, 2)
    for place in np.ndindex(3, 2):
        z = float(actions[place])
        y = slopes * z + errors
        each = norm.logpdf(y[:, None], slopes * z, BOTH.noise)
        expected = np.mean(np.diag(each) - logsumexp(each, axis=1)) + math.log(7)
        assert float(found[place]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("names", [("a",), ("m",), ("a", "m")], ids="+".join)
@pytest.mark.parametrize("graphs", [1, 2])
def test_predictive_information_is_the_difference_of_two_densities(names, graphs) -> None:
    # Whether x is a cause of m, too, is not known where there are two graphs.
    world = chain()
    parents = ({"a": "x", "m": "a", "y": ["m", "x"]}, {"a": "x", "m": ["a", "x"], "y": ["m", "x"]})
    hypotheses = [RehearsalGraph.of(each) for each in parents[:graphs]]
    made = fit(StructuralPosterior(world.task, hypotheses), world.table(40))
    contexts, models = made.task.given(world.cases(2)), made.sampled(20, 3)
    one = Information(made, models, contexts, names)
    actions = torch.linspace(-0.5, 0.9, 2 * len(names), dtype=torch.float64).reshape(2, len(names))
    weights = made.graph_weights().log()
    assert len(weights) == graphs
    for index in (0, 1):
        rows = models.scenarios(contexts, names).only(made.task.graph.names).rows(actions)[index]
        # Built from these rows themselves, and from rows of another action.
        density = PredictiveDensity(made, names, rows)(rows)
        own = models.log_density(rows, names).diagonal()
        expected = own.mean() - torch.logsumexp(density + weights, -1).mean()
        assert float(one.at(index, actions[index])) == pytest.approx(float(expected), abs=1e-9)


def test_what_has_no_predictive_density_is_refused(posterior) -> None:
    _, made = posterior
    rows = torch.zeros(3, 4, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"\['y'\] may not be altered; actionable are \['a', 'm'\]"):
        PredictiveDensity(made, ("a", "y"), rows)
    without = copy(made)
    object.__setattr__(without, "regressions", [torch.nn.Identity() for _ in made.regressions])
    with pytest.raises(TypeError, match="expected a BayesianRegression; got Identity"):
        PredictiveDensity(without, ("m",), rows)
