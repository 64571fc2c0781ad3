"""Which points an acquisition search screens, which it ascends from, and what its decision says of them."""

import math

import pytest
import torch

from rehearsal_torch.objectives.trials.expected_reward import PosteriorMean
from rehearsal_torch.search.budget import UNLIMITED
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch, decided
from rehearsal_torch.search.trials.recommendation import Recommendation, recommend, sureness
from rehearsal_torch.seeding import round_seed
from tests.defaults import off_defaults
from tests.toys.causal_toys import hills, linear_chain, one_case

VISITED = ((0.5, 0.5), (0.1, 2.1), (2.4, 8.0), (1.4, 4.4))


class Asked(PosteriorMean):
    """The posterior mean; it notes the functions and points it is asked for, and whether for gradients."""

    def __init__(self, model, case, **settings):
        super().__init__(model, case, **settings)
        self.calls = []

    def __call__(self, points):
        self.calls.append(("fine", points.requires_grad, points.detach().clone()))
        return super().__call__(points)

    def rough(self, points):
        self.calls.append(("rough", points.requires_grad, points.detach().clone()))
        return super().rough(points)

    def first(self, name, gradient):
        return next(points for each, wanted, points in self.calls if (each, wanted) == (name, gradient))


def asked(identity="0", **settings):
    model = hills(visited=VISITED)
    objective = Asked(model, one_case(model.task, identity), draws=8, evaluation_draws=16)
    return objective, AcquisitionSearch(**settings)(objective)


def test_the_defaults_are_those_of_the_configuration_and_of_the_seed_0() -> None:
    assert set(off_defaults("search/acquisition", AcquisitionSearch)) == {"seed"}
    assert AcquisitionSearch().seed == 0
    assert AcquisitionSearch.kind == "optimise"


def test_the_screened_points_are_spread_and_the_best_of_them_are_starts() -> None:
    objective, decision = asked("6", screened=40, starts=9, incumbents=2, seed=3, steps=5)
    region = objective.region()
    spread = region.units(region.spread(40, round_seed(3, "6") + 1))
    assert torch.equal(objective.first("rough", False), spread)
    begun = objective.first("rough", True)
    assert begun.shape == (10, 2)
    assert decision.trace["starts"] == 10
    assert decision.trace["screened"] == 40
    torch.testing.assert_close(begun[0], decision.recommendation.values)
    torch.testing.assert_close(begun[1:3], objective.starts(2))
    best = PosteriorMean.rough(objective, spread).topk(7).indices
    torch.testing.assert_close(begun[3:], spread[best])


def test_few_starts_go_on_beside_the_maximiser_of_the_posterior_mean() -> None:
    objective, decision = asked(screened=40, starts=12, incumbents=0, screening_steps=1, kept=2, steps=4)
    on = objective.first("fine", True)
    assert on.shape == (3, 2)
    torch.testing.assert_close(on[0], decision.recommendation.values)
    counted = sum(len(points) for _, gradient, points in objective.calls if gradient)
    recommended = recommend(objective, round_seed(0, "0"))
    assert decision.trace["evaluations"] == counted + recommended.evaluations


def test_the_value_is_that_of_the_action_that_is_tried() -> None:
    objective, decision = asked(screened=40, starts=12, steps=3, kept=6)
    with torch.no_grad():
        here = float(PosteriorMean.__call__(objective, decision.alteration.values))
        predicted = float(objective.expected(decision.alteration.values, objective.other))
    assert decision.value == pytest.approx(here, abs=1e-12)
    assert decision.trace["predicted_reward"] == pytest.approx(predicted, abs=1e-12)


@pytest.mark.parametrize(
    "given",
    [
        *({name: 0} for name in ("screened", "starts", "screening_steps", "kept", "steps")),
        {"incumbents": -1},
        {"incumbents": 3, "starts": 3},
        {"starts": 513},
    ],
)
def test_settings_below_the_smallest_are_refused(given) -> None:
    with pytest.raises(ValueError, match="expected positive numbers and incumbents < starts <= screened"):
        AcquisitionSearch(**given)


def test_one_of_each_is_enough() -> None:
    least = dict.fromkeys(("screened", "starts", "screening_steps", "kept", "steps"), 1)
    objective, decision = asked(**least, incumbents=0)
    assert objective.first("rough", False).shape == (1, 2)
    assert decision.trace["starts"] == 2


def given(predicted=2.5, visited=((0.5, 1.5), (0.1, 2.0)), spoilt=None):
    """The decision for a given recommendation at (.4, 1), and the objective."""
    model = linear_chain()
    objective = PosteriorMean(model, one_case(model.task), draws=8, evaluation_draws=16)
    if spoilt is not None:
        objective.plausible = lambda actions: torch.full((len(actions), 32), spoilt, dtype=torch.float64)
    known = torch.tensor(visited, dtype=torch.float64).reshape(-1, 2)
    found = Recommendation(torch.tensor([0.4, 1.0], dtype=torch.float64), predicted, known, 11)
    action = torch.tensor([0.3, 0.4], dtype=torch.float64)
    return objective, found, decided(objective, action, 0.7, found, "a search", UNLIMITED, {"more": 1})


def test_the_decision_says_what_is_tried_and_what_is_recommended() -> None:
    objective, found, decision = given()
    assert decision.alteration.names == ("a", "b")
    assert decision.alteration.values.tolist() == [0.3, 0.4]
    assert decision.recommendation.values.tolist() == [0.4, 1.0]
    assert (decision.value, decision.estimate.point) == (0.7, 2.5)
    sure = sureness(objective, found)
    trace = decision.trace
    told = [trace[name] for name in ("search", "acquisition", "evaluations", "more")]
    assert told == ["a search", 0.7, 11, 1]
    assert trace["runner_up"]["action"] == {"a": 0.5, "b": 1.5}
    # Six decimals of .9...
    assert 0.6 < sure.chance < 0.99
    assert trace["runner_up"]["chance"] == round(sure.chance, 6)


def test_where_nothing_is_known_of_the_recommendation_nothing_is_claimed() -> None:
    _, _, decision = given(predicted=math.nan)
    assert decision.estimate is None
    assert "runner_up" not in decision.trace
    _, _, decision = given(spoilt=math.nan)
    assert (decision.estimate.point, decision.estimate.lower, decision.estimate.level) == (2.5, None, None)
    assert "runner_up" not in decision.trace
    _, _, decision = given(visited=())
    assert decision.estimate.lower < 2.5 < decision.estimate.upper
    assert "runner_up" not in decision.trace
