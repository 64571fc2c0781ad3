import math
from functools import partial

import pytest
import torch
from scipy.stats import kstest, qmc

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.objectives.improvement import FUNCTIONS, BotorchAcquisition, Improvement
from rehearsal_torch.objectives.upper_bounds import ConfidenceBound
from rehearsal_torch.search.search import UNLIMITED
from rehearsal_torch.search.trials.acquisition import (
    SAMPLINGS,
    AcquisitionSearch,
    Recommendation,
    SpaceFilling,
    Sureness,
    decided,
    recommend,
    sureness,
)
from rehearsal_torch.search.trials.mixed_ascent import ascend
from rehearsal_torch.seeding import round_seed
from tests.toys.causal_toys import HILLY, WrittenModel, hills, linear_chain, one_case, plain

LIMITS = {"normals": [[1.0, 0.1], [0.0, 1.0]], "offsets": [1.0, 7.0]}


def grid(objective, keep=None, dense=201):
    axes = [
        torch.linspace(float(low), float(high), dense, dtype=torch.float64)
        for low, high in zip(*objective.bounds, strict=True)
    ]
    for name, values in objective.levels.items():
        axes[objective.task.actions.index(name)] = torch.tensor(values, dtype=torch.float64)
    points = torch.cartesian_prod(*axes)
    if keep is not None:
        points = points[keep.contains(points)]
    with torch.no_grad():
        values = torch.cat([objective(part) for part in points.split(2000)])
    return points[values.argmax()], float(values.max())


@pytest.mark.parametrize(("beta", "limits"), [(0.0, LIMITS), (2.0, None)])
def test_the_best_of_a_dense_grid_is_found(beta, limits):
    model = hills(limits)
    objective = ConfidenceBound(model, one_case(model.task), beta=beta)
    _, value = grid(objective, model.task.limits)
    decision = AcquisitionSearch()(objective)
    assert decision.value >= value - 1e-4
    model.task.check_action(decision.alteration.values)
    assert decision.trace["acquisition"] == decision.value


def test_pushes_are_chosen_along_with_the_action():
    model = linear_chain()
    decision = AcquisitionSearch()(ConfidenceBound(model, one_case(model.task), propagate="optimistic"))
    # 3 a - b + 2 (.45 (1 + a) + .2 (1 + b)) is largest at a = 1, b = 0.
    assert decision.alteration.values.tolist() == pytest.approx([1.0, 0.0])
    assert decision.trace["perturbations"] == pytest.approx([1.0])
    assert decision.value == pytest.approx(3 + 2 * (0.9 + 0.2), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("make", [ConfidenceBound, Improvement, BotorchAcquisition])
def test_the_same_seed_gives_the_same_decision(make):
    model = hills()

    def asked(seed, identity="4"):
        return AcquisitionSearch(screened=64, starts=8, seed=seed)(
            make(model, one_case(model.task, identity), seed=seed)
        ).to_dict()

    assert asked(0) == asked(0)
    assert asked(0) != asked(1)
    assert asked(0) != asked(0, "5")


def test_a_narrower_round_narrows_the_search():
    model = hills()
    decision = AcquisitionSearch()(
        ConfidenceBound(model, RehearsalCase("0", {}, {"a": (0.5, 0.5), "b": (1.0, 2.0)}))
    )
    assert decision.alteration.values[0] == 0.5
    assert 1.0 <= decision.alteration.values[1] <= 2.0


def test_batched_ascents_do_not_influence_each_other():
    model = hills()
    objective = ConfidenceBound(model, one_case(model.task))
    region = objective.region()
    starts = region.spread(4, 0)
    joined = ascend(objective, region, starts, steps=30, kept=4)
    apart = sorted(
        (ascend(objective, region, start.unsqueeze(0), steps=30).values.item() for start in starts),
        reverse=True,
    )
    assert joined.values.tolist() == pytest.approx(apart, abs=1e-9)


LEVELS = {"a": {"values": [-1, 0.3, 1.5, 2.2, 3]}, "b": [0, 10]}
BOTORCH = {"members": 8, "member_draws": 4}
OBJECTIVES = {
    "posterior mean": PosteriorMean,
    "bound": ConfidenceBound,
    "bound with perturbations": partial(ConfidenceBound, propagate="optimistic"),
    "improvement": Improvement,
    **{name: partial(BotorchAcquisition, function=name, **BOTORCH) for name in FUNCTIONS},
}


@pytest.mark.slow
@pytest.mark.parametrize("limits", [None, LIMITS])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_best_of_the_levels_is_found(name, limits):
    model = hills(limits, actions=LEVELS)
    objective = OBJECTIVES[name](model, one_case(model.task))
    _, value = grid(objective, model.task.limits, 2001)
    decision = AcquisitionSearch()(objective)
    assert decision.value >= value - 1e-6
    for action in (decision.alteration.values, decision.recommendation.values):
        model.task.check_action(action)
        assert float(action[0]) in LEVELS["a"]["values"]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_best_of_all_levels_is_found(name):
    model = hills(actions={**LEVELS, "b": {"values": [0, 1, 2, 4, 8, 9.5]}})
    objective = OBJECTIVES[name](model, one_case(model.task))
    where, value = grid(objective)
    decision = AcquisitionSearch()(objective)
    assert decision.value == pytest.approx(value, abs=1e-12)
    assert torch.equal(decision.alteration.values, where)


@pytest.mark.parametrize("held", [{"a": (0.77,)}, {"b": (8.0,)}])
@pytest.mark.parametrize("actions", [HILLY, LEVELS])
def test_a_held_action_keeps_its_value_and_the_other_is_the_best_with_it(held, actions):
    if "a" in held and actions is LEVELS:
        held = {"a": (2.2,)}
    model = hills(actions=actions)
    case = RehearsalCase("0", {}, model.task.box.bounds(), levels=held)
    objective = ConfidenceBound(model, case)
    _, value = grid(objective, dense=20_001)
    decision = AcquisitionSearch()(objective)
    assert decision.value >= value - 1e-6
    ((name, (kept,)),) = held.items()
    for chosen in (decision.alteration, decision.recommendation):
        assert float(chosen.values[chosen.names.index(name)]) == kept


def test_pushes_are_chosen_along_with_levels():
    task = plain({"X": ["a"], "Y": ["X", "b"]}, {"a": {"values": [0, 0.3, 0.8]}, "b": [0, 2]}, "Y")
    model = WrittenModel(task, dict(zip(("X", "Y"), linear_chain().laws, strict=True)), [[0.3, 1.0]])
    decision = AcquisitionSearch()(ConfidenceBound(model, one_case(task), propagate="optimistic"))
    # 3 a - b + 2 (.45 (1 + a) + .2 (1 + b)) is largest at a = .8, b = 0.
    assert decision.alteration.values.tolist() == pytest.approx([0.8, 0.0])
    assert decision.trace["perturbations"] == pytest.approx([1.0])
    assert decision.value == pytest.approx(2.4 + 2 * (0.81 + 0.2), abs=0.01)


def test_the_claim_has_the_interval_and_the_runner_up_of_the_recommendation():
    model = hills()
    objective = PosteriorMean(model, one_case(model.task))
    decision = AcquisitionSearch()(objective)
    found = Recommendation(decision.recommendation.values, decision.estimate.point, objective.starts(6), 0)
    sure = sureness(objective, found)
    claim = decision.estimate
    assert claim.level == 0.95
    assert claim.upper - claim.point == pytest.approx(1.959964 * sure.std)
    assert claim.point - claim.lower == pytest.approx(1.959964 * sure.std)
    beside = decision.trace["runner_up"]
    assert list(beside["action"].values()) == pytest.approx(sure.runner_up.tolist())
    assert beside["predicted"] == pytest.approx(sure.runner_up_predicted)
    assert beside["chance"] == pytest.approx(sure.chance, abs=1e-6)
    assert beside["predicted"] < claim.point


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


VISITED_RECOMMENDATION = [[0.5, 0.5], [1.0, 0.0], [0.2, 1.5]]


def asked_recommendation(model):
    return recommend(PosteriorMean(model, one_case(model.task)), 0)


def both(model):
    objective = PosteriorMean(model, one_case(model.task))
    found = recommend(objective, 0)
    return found, sureness(objective, found)


def test_mean_and_standard_deviation_are_those_of_the_chain():
    # Y = 1.5 X - b, X = 2 a: E[Y] = 3 a - b, sd^2 = (1.5 .3 (1 + a))^2 + (.2 (1 + b))^2, largest at (1, 0).
    found, sure = both(linear_chain(VISITED_RECOMMENDATION))
    assert found.action.tolist() == pytest.approx([1.0, 0.0], abs=1e-3)
    assert found.predicted == pytest.approx(3.0, abs=0.05)
    assert sure.std == pytest.approx(math.hypot(0.9, 0.2), rel=0.1)


def test_the_runner_up_is_the_best_other_visited_action():
    found, sure = both(linear_chain([[0.9, 0.0], [0.1, 2.0], [0.2, 1.5]]))
    assert found.visited.tolist()[0] == [0.9, 0.0]
    assert sure.runner_up.tolist() == [0.9, 0.0]
    assert sure.runner_up_predicted == pytest.approx(2.7, abs=0.1)
    assert not sure.tried


def test_the_chance_is_that_of_the_difference_in_the_same_networks():
    # f_e(1, 0) - f_e(.9, 0) = .3 + .045 e_X: negative only for e_X < -6.7, however little is known of each.
    _, sure = both(linear_chain([[0.9, 0.0]]))
    assert sure.std > 0.5
    assert sure.chance > 0.999


def test_a_chance_is_even_where_the_two_are_equally_good():
    objective = PosteriorMean(linear_chain([[0.5, 1.5]]), one_case(linear_chain().task))
    # 3 a - b is 0 at both; their difference in a network is .075 e_X - .1 e_Y.
    even = Recommendation(torch.tensor([1 / 3, 1.0]).double(), 0.0, torch.tensor([[0.5, 1.5]]).double(), 0)
    assert sureness(objective, even).chance == pytest.approx(0.5, abs=0.15)


def test_a_recommended_visited_action_is_compared_with_another_one():
    found, sure = both(linear_chain([[1.0, 0.0], [0.9999, 0.0], [0.5, 0.5]]))
    assert found.action.tolist() == pytest.approx([1.0, 0.0], abs=1e-3)
    assert sure.tried
    assert sure.runner_up.tolist() == [0.5, 0.5]
    _, alone = both(linear_chain([[1.0, 0.0]]))
    assert alone.tried
    assert alone.runner_up is None


def test_without_visited_actions_there_is_no_runner_up():
    _, sure = both(linear_chain([]))
    assert sure.runner_up is None
    assert math.isnan(sure.chance)
    assert not sure.tried


def test_it_is_at_a_level_and_so_is_the_runner_up():
    # Of the hills at (2.5, 8.5), (1.5, 4) and (0, 2) the second is the nearest to a level.
    levels = (-1.0, 0.4, 1.5, 3.0)
    model = hills(None, [[1.5, 4.5], [2.5, 8.5], [0.4, 2.0]], {"a": {"values": levels}, "b": [0, 10]})
    found, sure = both(model)
    objective = PosteriorMean(model, one_case(model.task))
    axis = torch.linspace(0, 10, 20_001, dtype=torch.float64)
    values = [float(objective(torch.stack([torch.full_like(axis, a), axis], -1)).max()) for a in levels]
    assert float(objective(found.action)) >= max(values) - 1e-4
    assert float(found.action[0]) == levels[values.index(max(values))]
    assert sorted(found.visited[:, 0].tolist()) == [0.4, 1.5]
    assert sure.runner_up.tolist() in ([1.5, 4.5], [0.4, 2.0])


def test_the_pushes_of_a_candidate_are_no_part_of_a_recommendation() -> None:
    model = linear_chain()
    objective = ConfidenceBound(model, one_case(model.task), draws=4, propagate="optimistic")
    assert objective.further == 1
    found = recommend(objective, 0)
    assert found.action.tolist() == pytest.approx([1.0, 0.0], abs=1e-3)
    assert found.visited.tolist() == [[0.6, 0.1], [0.2, 0.4]]
    assert sureness(objective, found).runner_up.tolist() == [0.6, 0.1]
    assert (Sureness(1.0).tried, Sureness(1.0).runner_up) == (False, None)


class AskedRecommendation(PosteriorMean):
    """Notes for how many actions, with how many draws, and with which gradients it is asked."""

    calls = ()

    def expected(self, actions, noise=None):
        self.calls = (
            *self.calls,
            (actions.requires_grad, len(actions), len(self.noise if noise is None else noise)),
        )
        return super().expected(actions, noise)


@pytest.mark.parametrize(("draws", "few"), [(3, 1), (8, 2)])
def test_half_of_twelve_starts_are_visited_actions_and_the_best_of_256_points_the_others(draws, few) -> None:
    model = linear_chain([[place / 9, 0.2] for place in range(9)])
    objective = AskedRecommendation(model, one_case(model.task), draws=draws, evaluation_draws=16)
    found = recommend(objective, 0)
    assert found.visited.tolist() == [[place / 9, 0.2] for place in range(8, 2, -1)]
    calls = objective.calls
    assert (False, 256, few) in calls
    begun = next(place for place, each in enumerate(calls) if each[0])
    assert calls[begun] == (True, 12, few)
    # Three go on with all draws; the best of their ends and the visited is found with the other draws.
    assert next(count for gradient, count, noise in calls[begun:] if gradient and noise == draws) <= 3
    assert calls[-1][0] is False
    assert 7 <= calls[-1][1] <= 9
    assert calls[-1][2] == 16


NARROW = {"normals": [[1.0, 0.0], [-1.0, 0.0]], "offsets": [0.001, 0.0]}


def asked_space_filling(model, sampling, identity="0", seed=0):
    return SpaceFilling(sampling, seed)(PosteriorMean(model, one_case(model.task, identity)))


def actions_of(sampling, count, limits=None):
    """The actions of `count` rounds, each with the ones before it among the visited, (count, 2)."""
    visited = []
    for number in range(count):
        model = hills(limits, visited)
        search, objective = SpaceFilling(sampling), PosteriorMean(model, one_case(model.task, str(number)))
        region = objective.region(further=False)
        visited.append(search._next(objective, region, str(number)).tolist())
    return torch.tensor(visited, dtype=torch.float64)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("limits", [LIMITS, NARROW])
def test_nothing_leaves_the_region(sampling, limits):
    model = hills(limits)
    model.task.check_action(asked_space_filling(model, sampling).alteration.values)
    for action in actions_of(sampling, 2, limits):
        model.task.check_action(action)


def test_uniform_actions_are_uniform_over_the_box_and_independent():
    unit = (actions_of("uniform", 300) - torch.tensor([-1.0, 0.0])) / torch.tensor([4.0, 10.0])
    for column in unit.T.numpy():
        assert kstest(column, "uniform").pvalue > 0.01
    assert abs(float(torch.corrcoef(unit.T)[0, 1])) < 0.15
    later = torch.stack([unit[:-1, 0], unit[1:, 0]])
    assert abs(float(torch.corrcoef(later)[0, 1])) < 0.15


def test_sobol_actions_fill_the_box_more_evenly_than_uniform_ones():
    spread = {sampling: actions_of(sampling, 32) for sampling in SAMPLINGS}
    uneven = {
        sampling: qmc.discrepancy(
            ((each - torch.tensor([-1.0, 0.0])) / torch.tensor([4.0, 10.0])).numpy().clip(0, 1)
        )
        for sampling, each in spread.items()
    }
    assert uneven["sobol"] < uneven["uniform"] / 3


def test_sobol_actions_go_on_and_uniform_ones_differ_by_round():
    one, two = hills(visited=[[0.0, 1.0]]), hills(visited=[[0.0, 1.0], [1.0, 1.0]])

    def values(model, sampling, identity, seed=0):
        return asked_space_filling(model, sampling, identity, seed).alteration.values.tolist()

    assert values(one, "sobol", "0") == values(one, "sobol", "8") != values(two, "sobol", "0")
    assert values(one, "uniform", "0") == values(two, "uniform", "0") != values(one, "uniform", "1")
    assert values(one, "uniform", "0") != values(one, "uniform", "0", seed=1)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_what_is_recommended_is_the_maximiser_of_the_posterior_mean_all_the_same(sampling):
    model = hills()
    objective = PosteriorMean(model, one_case(model.task, "3"))
    decision = SpaceFilling(sampling, 5)(objective)
    found = recommend(objective, round_seed(5, "3"))
    assert torch.equal(decision.recommendation.values, found.action)
    assert decision.estimate.point == found.predicted
    # The highest of the three hills stands at (2.5, 8.5), 1.6 high, on the tail of another one.
    assert decision.recommendation.values.tolist() == pytest.approx([2.5, 8.5], abs=0.05)
    assert decision.estimate.point == pytest.approx(1.645, abs=0.03)
    at = decision.alteration.values.unsqueeze(0)
    with torch.no_grad():
        assert decision.value == decision.trace["acquisition"] == float(objective.expected(at))
        assert decision.trace["predicted_reward"] == float(objective.expected(at, objective.other))
    assert decision.trace["search"] == f"{sampling}_actions"


def test_an_unknown_sampling_is_refused():
    with pytest.raises(ValueError, match=r"expected sampling in \['uniform', 'sobol'\]; got 'halton'"):
        SpaceFilling("halton")


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_pushes_of_a_candidate_are_no_part_of_the_action(sampling) -> None:
    model = linear_chain()
    objective = ConfidenceBound(model, one_case(model.task), draws=4, propagate="optimistic")
    assert objective.further == 1
    assert SpaceFilling(sampling)(objective).alteration.names == ("a", "b")
    assert SpaceFilling(sampling).seed == 0
