from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.search.alterations.informative import Informative
from tests.toys.counted import bands, cases
from tests.toys.linear_truth import chain
from tests.toys.rehearsal_methods import learnt
from tests.toys.toy_posteriors import Toy, toy_cases

POSITIVE = ("pool", "probes", "scenarios", "nodes", "batch_size")
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
    assert "nothing found reaches tau=0.999" in decision.reason
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
    assert none.reason == "the cost budget allows none of the candidate alterations: raise its limit"


def test_two_pieces_that_qualify_are_both_looked_at():
    # The slope is 1 or -1: z and -z are equally probable to succeed, and what lies between is not.
    toy = Toy((0.5, 0.5), (1.0, -1.0), (0.05, 0.05), 0.2, (1.0, 5.0))
    objective = SuccessProbability.for_cases(
        toy,
        toy_cases(1),
        search_scenarios=4000,
        validation_scenarios=4000,
        test_scenarios=100,
        information_models=100,
        entropy="sampled",
    )
    pieces = Informative(tau=0.4).qualifying.pieces(objective.sets[0], 0)
    assert pieces.shape == (2, 2)
    assert (float(pieces[0, 0]), float(pieces[1, 1])) == (-3.0, 3.0)
    assert float(pieces[0, 1]) == pytest.approx(-float(pieces[1, 0]), abs=0.05)


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


def test_pools_of_different_sizes_and_a_share_of_zero():
    def nothing(z):
        return -z.abs()

    only, _ = decided(nothing, nothing, tau=0.7, pool=5)
    # Three of three or two of two are needed; b reaches two of three.
    assert only.trace["qualifying"] == [["a"]]
    assert float(only.alteration.values) == 2.0
    everything, _ = decided(nothing, nothing, tau=1.0, fallback="drop")
    assert everything.trace["qualifying"] == [["a"]], "tau may be 1"


def test_what_was_not_searched_in_time_has_no_points():
    nothing = {"limit": 0.0, "reference": {"a": 50.0, "b": 50.0}}
    first, second = decided(lambda z: z, lambda z: z, budget=nothing, budget_s=1e-9)
    assert "no affordable candidate alteration was found before budget_s was spent" in first.reason
    assert [each.trace["evaluations"] for each in (first, second)] == [0, 0]
    found, _ = decided(lambda z: z, lambda z: z, budget_s=1e-9)
    assert (found.trace["qualifying"], float(found.alteration.values)) == ([["a"]], 6.0)


def test_settings_may_be_as_small_as_possible():
    least = dict.fromkeys(POSITIVE, 1) | {"iterations": 0, "programs": 0, "kappa": 0.0, "tau": 1.0}
    assert Informative(**least).weighs is False


@pytest.mark.parametrize(
    "wrong",
    [
        {"tau": 0.0},
        *({name: 0} for name in POSITIVE),
        {"programs": -1},
        {"indifference": -0.1},
        {"tau": 1.2},
        {"fallback": "hope"},
        {"acquisition": "luck"},
        {"pool": 0},
        {"iterations": -1},
        {"kappa": -1.0},
        {"budget_s": 0.0},
    ],
)
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(ValueError, match="expected"):
        Informative(**wrong)
