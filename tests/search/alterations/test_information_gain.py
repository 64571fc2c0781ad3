from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rehearsal_torch.objectives.objective import Candidates
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.search.alterations.information_gain import Informative, Qualifying, apart, explored
from rehearsal_torch.search.alterations.interval_sweep import spread
from rehearsal_torch.search.alterations.mixed_integer import AlterationBudget
from tests.toys.counted import bands, cases
from tests.toys.linear_truth import chain
from tests.toys.rehearsal_methods import learnt
from tests.toys.toy_posteriors import Toy, toy_cases

# Information grows with |z|: the most informative qualifying z is the end of the interval that lies further
# from 0.
TOY = Toy((1.0,), (1.0,), (0.2,), 0.5, (0.5, 2.5))


def asked(toy=TOY, **settings):
    (decision,) = Informative(**{"probes": 4, "iterations": 3, **settings}).batch_search(
        SuccessProbability.for_cases(
            toy,
            toy_cases(1),
            search_scenarios=5000,
            validation_scenarios=5000,
            test_scenarios=4000,
            information_models=400,
            entropy="sampled",
        )
    )
    return decision


def border(tau, toy=TOY):
    """The largest z at which the closed form reaches tau."""
    grid = np.linspace(-3, 3, 6001)
    return max(z for z in grid if toy.success(z) >= tau)


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["log_ei", "ucb", "every"])
@pytest.mark.parametrize("tau", [0.3, 0.7, 0.9])
def test_the_most_informative_of_what_qualifies_is_at_the_far_border(tau, acquisition):
    decision = asked(tau=tau, acquisition=acquisition)
    z = float(decision.alteration.values[0])
    assert z == pytest.approx(border(tau), abs=0.08)
    assert decision.estimate.point == pytest.approx(tau, abs=0.03)
    assert decision.value == pytest.approx(TOY.information(z), abs=0.05)
    assert decision.trace["tau"] == tau
    assert decision.trace["qualifying"] == [["a"]]


def test_a_little_information_is_given_up_for_a_more_probable_success():
    strict, lenient, careless = (asked(tau=0.5, indifference=each) for each in (0.0, 10.0, 1e-6))
    best = max(TOY.success(z) for z in np.linspace(-3, 3, 301))
    assert lenient.estimate.point == pytest.approx(best, abs=0.03)
    assert lenient.value < strict.value
    assert float(careless.alteration.values[0]) == float(strict.alteration.values[0])


def test_what_nothing_reaches_is_refused_and_says_how_far_one_gets():
    decision = asked(tau=0.999)
    best = max(TOY.success(z) for z in np.linspace(-3, 3, 301))
    assert decision.alteration is None
    assert "nothing found reaches tau=0.999" in decision.reason.text
    assert decision.trace["most_probable"]["a"] == pytest.approx(best, abs=0.02)
    assert decision.trace["would_set"]["a"] == pytest.approx(1.5, abs=0.3)
    assert decision.trace["qualifying"] == []


def test_fallbacks_drop_the_constraint_or_take_what_is_most_probable():
    dropped, likeliest = (
        asked(tau=0.999, fallback="drop", declines=False),
        asked(tau=0.999, fallback="most_probable"),
    )
    assert abs(float(dropped.alteration.values[0])) == 3.0
    assert "dropped" in dropped.trace["dropped"]
    assert float(likeliest.alteration.values[0]) == pytest.approx(1.5, abs=0.3)
    assert likeliest.estimate.point == pytest.approx(
        max(TOY.success(z) for z in np.linspace(-3, 3, 301)), abs=0.03
    )


def test_a_budget_bounds_what_is_spent():
    free, bound = asked(tau=0.5), asked(tau=0.5, budget={"limit": 3.0, "costs": {"a": 2.0}})
    assert float(free.alteration.values[0]) > 1.5
    assert float(bound.alteration.values[0]) == pytest.approx(1.5)
    assert asked(tau=0.9, budget={"limit": 0.1}).alteration is None
    none = asked(tau=0.3, budget={"limit": 0.0, "reference": {"a": 50.0}})
    assert none.reason.text == "the cost budget allows none of the candidate alterations: raise its limit"


@pytest.fixture(scope="module")
def posterior():
    world = chain()
    return world, learnt("structural_posterior", world.task, world.table(80))


@pytest.mark.slow
def test_sets_of_one_and_of_several_variables_compete(posterior):
    world, made = posterior
    objective = SuccessProbability.for_cases(
        made,
        world.cases(3),
        search_scenarios=1500,
        validation_scenarios=1500,
        test_scenarios=1000,
        information_models=200,
    )
    search = Informative(tau=0.6, fallback="most_probable", programs=1, scenarios=30, nodes=30)
    decisions = search.batch_search(objective)
    for index, decision in enumerate(decisions):
        found = {"+".join(one.names): search.qualifying.points(one, index) for one in objective.sets}
        if not decision.trace["qualifying"]:
            continue
        assert decision.estimate.point > 0.6 - 0.05
        # No qualifying point of any pool teaches more by much.
        largest = max(
            float(one.information.at(index, each.points).max())
            for one, each in zip(objective.sets, found.values(), strict=True)
            if len(each.points)
        )
        assert decision.value == pytest.approx(largest, abs=0.1)
    assert any(decision.trace["qualifying"] for decision in decisions)


def told(intervals, name, information, two):
    """A set of one variable whose scenarios are written by hand, and its information."""
    parts = [bands(intervals, 0.0, 0.0)] * 3
    told = SimpleNamespace(at=lambda index, points: information(points[..., 0]) + index)
    return SuccessProbability(two, (name,), *parts, torch.zeros(2), told)


def decided(one, other, **settings):
    """Decisions between a set on [0, 4] or [2, 6] and another one, by the information in their pools."""
    two = cases(("a", "b"), (-10.0, 10.0), (-10.0, 10.0))
    sets = [told([(0, 4), (2, 6)], "a", one, two), told([(1, 3), (7, 9), (2, 9)], "b", other, two)]
    return Informative(**({"tau": 0.5, "acquisition": "every"} | settings)).batch_search(
        Candidates(two, sets)
    )


def test_what_is_less_informative_by_no_more_than_the_indifference_contends():
    def known(z):
        return z / 8

    # [0, 6] qualifies for a, [2, 3] and [7, 9] for b.
    strict, _ = decided(known, known)
    assert (strict.trace["altered"], float(strict.alteration.values), strict.value) == (["b"], 9.0, 1.125)
    assert strict.trace["most_probable"] == {"a": 1.0, "b": 0.6667}
    assert strict.trace["qualifying"] == [["a"], ["b"]]
    assert strict.trace["evaluations"] == 64 * 2
    # All scenarios hold for a in [2, 4], which is less informative by 5/8 exactly at its end.
    lenient, second = decided(known, known, indifference=0.75, pool=4)
    assert lenient.trace["evaluations"] == 8
    assert lenient.trace["altered"] == ["a"]
    assert (float(lenient.alteration.values), lenient.value) == (3.0, 0.375)
    assert (float(second.alteration.values), second.value) == (3.0, 1.375)
    nearly, _ = decided(known, known, indifference=0.7499, pool=4)
    assert nearly.trace["altered"] == ["b"]


def test_what_was_not_searched_in_time_has_no_points():
    nothing = {"limit": 0.0, "reference": {"a": 50.0, "b": 50.0}}
    first, second = decided(lambda z: z, lambda z: z, budget=nothing, budget_s=1e-9)
    assert "no affordable candidate alteration was found before budget_s was spent" in first.reason.text
    assert [each.trace["evaluations"] for each in (first, second)] == [0, 0]
    found, _ = decided(lambda z: z, lambda z: z, budget_s=1e-9)
    assert (found.trace["qualifying"], float(found.alteration.values)) == ([["a"]], 6.0)


GRID = torch.linspace(-2, 3, 81, dtype=torch.float64)
PEAKS = torch.tensor([-1.4, 0.3, 2.2], dtype=torch.float64)
POOLS = torch.stack(
    [GRID[torch.randperm(81, generator=torch.Generator().manual_seed(row))] for row in range(3)]
).unsqueeze(-1)
ALL = torch.ones(3, 81, dtype=torch.bool)


def peaked(points):
    """One peak a pool, of different heights and units."""
    scale = torch.tensor([[1.0], [1e3], [1e-3]], dtype=torch.float64)
    return scale[: len(points)] * torch.exp(-(points[..., 0] - PEAKS[: len(points), None]).square())


def found(result, pools=POOLS):
    rows = torch.arange(len(pools))
    return pools[rows, result.places[rows, result.values.argmax(1)], 0]


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", ["log_ei", "ucb"])
def test_peaks_are_found_with_a_fraction_of_the_evaluations(acquisition):
    result = explored(peaked, POOLS, ALL, 5, 9, acquisition)
    assert result.values.shape == (3, 14)
    assert torch.equal(result.values, peaked(POOLS.gather(1, result.places.unsqueeze(-1))))
    assert (found(result) - PEAKS).abs().max() < 0.15
    alone = explored(peaked, POOLS[:1], ALL[:1], 5, 9, acquisition)
    assert alone.values.max() > 0.97


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb", "every"])
def test_points_that_do_not_count_are_never_asked(acquisition):
    valid = torch.arange(81) < torch.tensor([[81], [3], [1]])
    result = explored(peaked, POOLS, valid, 5, 4, acquisition)
    assert valid.gather(1, result.places).all()
    assert set(result.places[1].tolist()) == {0, 1, 2}
    assert set(result.places[2].tolist()) == {0}


def test_a_function_that_does_not_vary_is_no_trouble():
    result = explored(lambda points: torch.ones_like(points[..., 0]), POOLS, ALL, 3, 3, "log_ei")
    assert (result.values == 1).all()


def test_as_many_evaluations_as_points_evaluate_all_at_once_in_their_order():
    calls = []

    def counted(points):
        calls.append(points.shape[1])
        return peaked(points)

    result = explored(counted, POOLS[:, :6], ALL[:, :6], 4, 2, "log_ei")
    assert (calls, result.places.tolist()) == ([6], [[*range(6)]] * 3)
    calls.clear()
    result = explored(counted, POOLS[:, :7], ALL[:, :7], 4, 2, "log_ei")
    assert calls == [4, 1, 1]
    assert result.places[:, :4].tolist() == [[0, 1, 2, 3]] * 3
    assert all(len(set(row)) == 6 for row in result.places.tolist()), "no point twice"


def test_a_budget_ends_it_between_evaluations():
    asked = []
    budget = SimpleNamespace(out=lambda: asked.append(0) or len(asked) > 1)
    result = explored(peaked, POOLS, ALL, 4, 5, "ucb", budget=budget)
    assert result.values.shape == (3, 5)


def test_points_and_values_in_other_units_are_asked_in_the_same_order():
    pools = torch.rand(2, 30, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    valid = torch.ones(2, 30, dtype=torch.bool)
    held = torch.full((2, 30, 1), 7.0, dtype=torch.float64)

    def bowl(points):
        return -(points[..., :2] - 0.6).square().sum(-1)

    def elsewhere(points):
        return 1e4 * bowl((points - torch.tensor([-3e3, 50.0])) / torch.tensor([1e3, 4.0])) + 1e4

    moved = pools * torch.tensor([1e3, 4.0]) + torch.tensor([-3e3, 50.0])
    one = explored(bowl, pools, valid, 4, 3, "log_ei").places
    assert torch.equal(explored(elsewhere, moved, valid, 4, 3, "log_ei").places, one)
    # A coordinate that is the same everywhere is no trouble.
    assert explored(bowl, torch.cat([pools, held], -1), valid, 4, 3, "ucb").values.isfinite().all()


@pytest.mark.parametrize(("kappa", "far"), [(0.0, False), (1e3, True)])
def test_a_wide_bound_looks_far_away_and_a_narrow_one_beside_the_best(kappa, far):
    line = torch.arange(21.0, dtype=torch.float64).reshape(1, 21, 1)
    valid = torch.ones(1, 21, dtype=torch.bool)
    result = explored(lambda points: points[..., 0] / 20, line, valid, 4, 1, "ucb", kappa)
    assert (int(result.places[0, -1]) > 12) == far


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb"])
def test_undefined_values_count_as_the_smallest(acquisition):
    # Of those that are asked first, the second has the smallest finite value.
    hole = GRID.reshape(1, 81, 1)[:, ::4]
    valid = torch.ones(1, hole.shape[1], dtype=torch.bool)

    def value(points):
        return torch.where(points[..., 0] < -1.5, torch.nan, -(points[..., 0] - 1).square())

    def lowest(points):
        return torch.where(points[..., 0] < -1.5, -5.0625, -(points[..., 0] - 1).square())

    start = hole[:, [0, 3, 20, 10, *(place for place in range(21) if place not in (0, 3, 20, 10))]]
    one, other = (explored(each, start, valid, 4, 2, acquisition) for each in (value, lowest))
    assert torch.equal(one.places, other.places)
    assert one.values[0, 0].isnan()


PROGRAMS = (1, 20, 20)


@pytest.fixture(scope="module")
def one():
    return SuccessProbability.for_cases(
        TOY,
        toy_cases(2),
        search_scenarios=6000,
        validation_scenarios=6000,
        test_scenarios=10,
        information_models=5,
        entropy="sampled",
    ).sets[0]


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.2, 0.5, 0.8])
def test_the_interval_is_that_of_the_closed_form_and_every_point_qualifies_by_both_samples(one, tau):
    found = Qualifying(tau, 20, None, PROGRAMS)
    pieces = found.pieces(one, 1)
    true = [z for z in np.linspace(-3, 3, 6001) if TOY.success(z) >= tau]
    assert float(pieces[0, 0]) == pytest.approx(true[0], abs=0.06)
    assert float(pieces[-1, 1]) == pytest.approx(true[-1], abs=0.08)
    points = found.points(one, 1).points
    assert points.shape == (20, 1)
    for validating in (True, False):
        assert (one.share_of(1, points, validating=validating) >= tau).all()
    # The most probable stands first, the ends of the interval next.
    assert float(points[0]) == pytest.approx(1.5, abs=0.3)
    assert set(points[1:3, 0].tolist()) == {float(pieces[0, 0]), float(pieces[0, 1])} or len(pieces) > 1


def test_points_are_taken_furthest_first():
    points = torch.tensor([[0.0, 0.0], [0.1, 0.0], [1.0, 0.0], [0.0, 50.0]], dtype=torch.float64)
    begin, width = (
        torch.tensor([[0.0, 0.0]], dtype=torch.float64),
        torch.tensor([1.0, 100.0], dtype=torch.float64),
    )
    assert apart(points, begin, 2, width).tolist() == [[1.0, 0.0], [0.0, 50.0]]
    assert sorted(apart(points, begin, 9, width).tolist()) == sorted(points.tolist())
    assert apart(points[:0], begin, 3, width).shape == (0, 2)
    # Distances from those that are selected are in units of the box as well: the last is close to the first.
    line = torch.tensor([[0.0, 100.0], [0.48, 0.0], [1.0, 0.0], [0.0, 55.0]], dtype=torch.float64)
    assert apart(line, begin, 3, width).tolist() == [[0.0, 100.0], [1.0, 0.0], [0.48, 0.0]]


FAR = 1e5
SEARCH = [(0, 4), (1, 5), (2, 6), (3, 7)]
VALIDATION = [(-5, 3)] * 3 + [(4, 8)] * 3


def counted(search, validation, names=("a",), box=(-10.0, 10.0), shifts=(0.0, FAR), direction=(1.0,)):
    """The same scenarios in boxes at zero and far from it."""
    boxes = [box if isinstance(box, dict) else (box[0] + shift, box[1] + shift) for shift in shifts]
    parts = [bands(each, *shifts, direction=direction) for each in (search, validation, validation)]
    return SuccessProbability(cases(names, *boxes), names, *parts, torch.zeros(len(boxes)), None)


def listed(points):
    return points.flatten().tolist()


@pytest.mark.parametrize(("index", "shift"), [(0, 0.0), (1, FAR)])
def test_intervals_are_those_that_hold_often_enough_in_both_samples(index, shift):
    one, found = counted(SEARCH, VALIDATION), Qualifying(0.5, 9, None, PROGRAMS)
    # Two of four hold in [1, 6], three of six in [-5, 3] and in [4, 8].
    pieces = torch.tensor([[1.0, 3.0], [4.0, 6.0]], dtype=torch.float64)
    assert (found.pieces(one, index) - shift).tolist() == pieces.tolist()
    points = found.points(one, index)
    # All four hold in the middle of [3, 4], where nothing of the validation does.
    assert points.share == 0.0
    assert listed(points.points - shift) == pytest.approx(spread(pieces, 9).tolist(), abs=1e-9)
    best = found.best(one, index)
    assert (listed(best.points - shift), best.share) == ([3.5], 0.0)


@pytest.mark.parametrize(
    ("search", "validation", "leads"),
    [
        ([(0, 4), (2, 6), (8, 9), (8.5, 9)], [(2.5, 9), (9.5, 9.9)], True),
        ([(0, 4), (2, 6), (8, 9), (9.5, 9.9)], [(0, 3.5), (9.5, 9.9), (9.7, 9.9)], False),
        ([(0, 4), (5, 6), (8, 9), (9.5, 9.9)], [(0, 9)], False),
    ],
    ids=["exactly tau in both", "less in the validation", "less in the search"],
)
def test_the_most_probable_point_leads_if_it_reaches_tau_in_both_samples(search, validation, leads):
    one, found = counted(search, validation), Qualifying(0.5, 4, None, PROGRAMS)
    points, pieces = found.points(one, 0), found.pieces(one, 0)
    expected = spread(pieces, 4)
    assert listed(points.points) == ([3.0, *expected[:3].tolist()] if leads else expected.tolist())
    best = found.best(one, 0)
    assert points.share == best.share == float(one.share_of(0, best.points))


def test_a_limit_on_costs_narrows_the_box():
    one = counted([(-5, 5)] * 2, [(-5, 5)] * 2)
    limited = Qualifying(0.5, 4, AlterationBudget(4.0, {"a": 2.0}, {"a": FAR + 1.0}), PROGRAMS)
    assert (limited.pieces(one, 1) - FAR).tolist() == [[-1.0, 3.0]]
    assert (limited.anywhere(one, 1) - FAR).flatten().tolist() == [-1.0, 3.0, 1.0, 2.0]
    # Near zero nothing is affordable.
    for nothing in (limited.anywhere(one, 0), limited.best(one, 0).points, limited.points(one, 0).points):
        assert nothing.shape == (0, 1)
    assert limited.best(one, 0).share == -1.0
    exact = Qualifying(0.5, 4, AlterationBudget(0.0, {}, {"a": 2.0}), PROGRAMS)
    assert exact.anywhere(one, 0).flatten().tolist() == [2.0] * 4, "one affordable value"


def test_where_nothing_is_desired_any_affordable_point_is_the_best():
    one = counted([(20, 30)], [(-10, -9)])
    found = Qualifying(0.5, 4, None, PROGRAMS)
    best, points = found.best(one, 1), found.points(one, 1)
    assert (listed(best.points - FAR), best.share) == ([-10.0], 1.0)
    # No point qualifies, and yet some are affordable.
    assert (points.points.shape, points.share) == ((0, 1), 1.0)


PAIR = {"names": ("a", "b"), "box": {"a": (0.0, 1.0), "b": (0.5, 1.5)}, "direction": (1.0, 1.0)}


def test_without_an_affordable_best_point_those_that_qualify_tell_the_share():
    one = counted([(-9, 9)] * 2, [(-9, 9), (0.9, 1.1)], **PAIR, shifts=(0,))
    # The line through the middle ends here; nothing else is affordable.
    found = Qualifying(0.5, 7, AlterationBudget(1e-6, {}, {"b": 1.0}), PROGRAMS)
    assert len(found.best(one, 0).points) == 0
    points = found.points(one, 0)
    assert points.points.tolist() == [[0.0, 1.0]] * len(points.points)
    assert points.share == 1.0
    nowhere = Qualifying(0.5, 7, AlterationBudget(1e-6, {}, {"b": 7.0}), PROGRAMS).points(one, 0)
    assert (nowhere.points.shape, nowhere.share) == ((0, 2), -1.0)
