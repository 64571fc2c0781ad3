"""Decisions where costs count reach the best net value of a world whose truth is known, by every method."""

import json

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rehearsal_torch as rt
from rehearsal_torch.data.costs.action_cost import ActionCost, CaseCosts
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, chance
from rehearsal_torch.search.alterations.net_value import check_worth, decided
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.search.search import NoAction
from rehearsal_torch.spaces.box import Alteration
from tests.toys.priced import CASES, COSTS, TASK, WORTH, reached, rows, truths

PRICED = TASK | {"costs": COSTS, "worth": WORTH}
WEIGHING = {
    "care": 1.0,
    "qwz23_offline": 1.0,
    "qwz23_success": 3.0,
    "outcome_regression": 3.0,
    "cme_stack": 3.0,
    "cme": 6.0,
}


def rehearsed(task=PRICED, cases=CASES, method="care", **settings):
    return rt.rehearse(rows(), task, cases, method=method, **settings)


def plain(decisions):
    return [json.dumps(each.to_dict()) for each in decisions]


def alterations(decisions):
    return [each.to_dict()["alteration"] for each in decisions]


@pytest.mark.bench
@pytest.mark.parametrize("method", WEIGHING)
def test_every_method_that_claims_a_probability_reaches_the_best_net_value(method):
    for found, truth in zip(rehearsed(method=method), truths(), strict=True):
        assert reached(truth, found) >= truth.best() - WEIGHING[method]
        assert found.worth == WORTH
        if found.alteration is None:
            assert found.cost == 0.0
            continue
        a, b = found.alteration.values.tolist()
        assert found.cost == pytest.approx(20 * (a - truth.a) + 15 * abs(b - truth.b))
        claimed = WORTH * found.estimate.point - found.cost
        assert found.net_value.point == pytest.approx(claimed)


def test_what_is_kept_is_kept_to_the_last_bit_and_doing_nothing_may_be_best():
    first, second, third = rehearsed()
    # b has half the effect of a, at three quarters of the price.
    assert [each.alteration.values.tolist()[1] for each in (first, second)] == [0.0, 0.0]
    assert third.status == "no_action"
    assert third.reason == "no change nets more than leaving a at 2 and b at 1"
    assert first.trace["without_costs"]["b"] == 2.5


@pytest.mark.bench
@pytest.mark.parametrize("method", ["care", "cme_stack"])
def test_costs_of_zero_and_no_costs_are_the_same_to_the_last_bit(method):
    nothing = TASK | {"costs": {"a": 0, "b": 0}, "worth": WORTH}
    assert plain(rehearsed(nothing, method=method)) == plain(rehearsed(TASK, method=method))


@pytest.mark.slow
def test_without_a_worth_costs_are_told_and_do_not_count():
    alone, told = rehearsed(TASK), rehearsed(TASK | {"costs": COSTS})
    assert alterations(told) == alterations(alone)
    assert [each.cost for each in told] == pytest.approx(
        [20 * 3 + 15 * 2.5, 20 * 3 + 15 * 2.5, 20 * 2 + 15 * 1.5]
    )
    assert all(each.net_value is None for each in told)


@pytest.mark.slow
def test_the_larger_the_worth_the_closer_to_the_decision_without_costs():
    alone, rich = rehearsed(TASK), rehearsed(PRICED | {"worth": 1e7})
    for one, other in zip(alone, rich, strict=True):
        assert other.estimate.point == pytest.approx(one.estimate.point, abs=1e-4)


@pytest.mark.slow
def test_each_case_has_the_cost_of_its_column():
    task = TASK | {"costs": {"a": {"column": "price"}, "b": 15}, "worth": WORTH}
    prices = [5.0, 20.0, 45.0]
    cases = pd.DataFrame({"x": [0.5] * 3, "a": [1.0] * 3, "b": [0.0] * 3, "price": prices})
    found = rehearsed(task, cases)
    moved = [0.0 if each.alteration is None else float(each.alteration.values[0]) - 1 for each in found]
    assert moved[0] > moved[1] > moved[2]
    for each, truth, price in zip(found, truths(cases), prices, strict=True):
        own = type(truth)(truth.x, truth.a, truth.b, up=price)
        assert reached(own, each) >= own.best() - 1.0
    model = rt.learn(rows(), task, method="care")
    assert alterations(model.decide(cases)) == alterations(found)
    with pytest.raises(ValueError, match="no column 'price' for the cost of a"):
        model.decide(cases.drop(columns="price"))


class Bell(AlterationObjective):
    """P = exp(-(a - 1)^2), or that of a level; no model."""

    of_success = True

    def __call__(self, actions):
        return (-(actions - 1).square()).sum(-1).exp()

    def starts(self, count):
        return torch.stack([self.lower, self.upper])[:count]

    def appraise(self, actions):
        return [Appraisal(chance(value), chance(0.05)) for value in self(actions).tolist()]


class Hill(Bell):
    """P = 1 - (a - 1)^2 / 4, concave."""

    def __call__(self, actions):
        return 1 - (actions - 1).square().sum(-1) / 4


def case(levels=None, present=-1.0, **parts):
    costs = CaseCosts({"a": ActionCost(**parts)}, {"a": present}, 10.0) if parts else None
    held = {} if levels is None else {"a": tuple(levels)}
    return RehearsalCase("one", {}, {"a": (-1.0, 1.0)}, levels=held, present={"a": present}, costs=costs)


def of(*cases):
    return decided(ProjectedAscent(), Candidates(cases, [Bell(cases, ("a",))]))


@settings(max_examples=25, deadline=None)
@given(st.floats(0.0, 12.0), st.floats(0.0, 12.0), st.floats(-1.0, 0.9))
def test_a_higher_cost_never_gives_a_larger_change(one, other, present):
    cases = [case(up=cost, down=cost, present=present) for cost in sorted((one, other))]
    found = decided(ProjectedAscent(), Candidates(cases, [Hill(cases, ("a",))]))
    low, high = (
        0.0 if each.alteration is None else float(each.alteration.values) - present for each in found
    )
    assert -1e-9 <= high <= low + 2e-3
    # 10 P' = 5 (1 - a) is the cost at the optimum.
    assert low == pytest.approx(max(1 - min(one, other) / 5 - present, 0.0), abs=5e-3)


def test_levels_are_compared_by_their_net_value():
    # P is .018, .37, .78 and 1 at the levels.
    levels = (-1.0, 0.0, 0.5, 1.0)
    every = [of(case(levels, up=up))[0] for up in (1.0, 3.0, 5.0, 30.0)]
    assert [each.alteration and float(each.alteration.values) for each in every] == [1.0, 1.0, 0.5, None]
    assert of(case(levels, up=1.0, fixed=9.0))[0].status == "no_action"


def test_cases_in_which_nothing_costs_anything_keep_the_decision_of_the_search():
    free, priced = case(), case(up=3.0)
    both = of(free, priced)
    (alone,) = ProjectedAscent().batch_search(Candidates([free], [Bell([free], ("a",))]))
    assert both[0].trace == alone.trace
    assert torch.equal(both[0].alteration.values, alone.alteration.values)
    assert decided(ProjectedAscent(), Candidates([free], [Bell([free], ("a",))]))[0].trace == alone.trace
    (never,) = decided(NoAction(), Candidates([priced], [Bell([priced], ("a",))]))
    assert (never.status, never.reason) == ("no_action", "this method never acts")
    assert both[1].trace["search"] == "net_value"
    assert both[1].cost == pytest.approx(3 * (float(both[1].alteration.values) + 1))


def test_an_objective_without_a_probability_is_refused():
    class Other(Bell):
        of_success = False

    with pytest.raises(ValueError, match=r"Other with ProjectedAscent\) looks for something else"):
        check_worth(Other, ProjectedAscent())
    check_worth(Other, NoAction())
    one = case(up=1.0)
    with pytest.raises(ValueError, match="looks for something else"):
        decided(ProjectedAscent(), Candidates([one], [Other([one], ("a",))]))


class Gated(Bell):
    """Accepts only what lies in a range."""

    gate = (-2.0, 2.0)

    def acceptable(self, actions):
        low, high = self.gate
        return ((actions >= low) & (actions <= high)).all(-1)


@pytest.mark.parametrize(("low", "high"), [(-0.4, 0.3), (5.0, 6.0), (-2.0, 2.0)])
def test_where_no_end_is_accepted_the_best_on_the_way_to_what_is_kept_is_taken(low, high):
    pair = [case(up=0.1), case(up=3.0)]
    one = Gated(pair, ("a",))
    # The best of all lies above .3.
    tops = torch.stack([each.alteration.values for each in of(*pair)])
    assert tops.min() > 0.4
    one.gate = (low, high)
    found = decided(ProjectedAscent(), Candidates(pair, [one]))
    way = tops + torch.linspace(0, 1, 17, dtype=torch.float64) * (-1 - tops)
    for each, some in zip(found, way, strict=True):
        accepted = some[(some >= low) & (some <= high)]
        # The further up the better; if none is accepted, the best of all is told.
        expected = accepted.max() if len(accepted) else some[0]
        assert float(each.alteration.values) == pytest.approx(float(expected), abs=1e-9)


class Two(Bell):
    """P = exp(-(a - 1)^2 - (b - 1)^2)."""


def test_beside_levels_the_other_actions_are_searched_for_each():
    costs = CaseCosts({"b": ActionCost(up=3.0)}, {"a": -1.0, "b": -1.0}, 10.0)
    one = RehearsalCase(
        "one",
        {},
        {"a": (-1.0, 1.0), "b": (-1.0, 1.0)},
        levels={"a": (-1.0, 0.9)},
        present={"a": -1.0, "b": -1.0},
        costs=costs,
    )
    (found,) = decided(ProjectedAscent(), Candidates([one], [Two([one], ("a", "b"))]))
    a, b = found.alteration.values.tolist()
    grid = torch.linspace(-1, 1, 20001, dtype=torch.float64)
    net = 10 * (-(grid - 1).square() - 0.01).exp() - 3 * (grid + 1)
    assert (a, b) == (0.9, pytest.approx(float(grid[net.argmax()]), abs=1e-3))
    assert found.value == pytest.approx(float(net.max()), abs=1e-4)


class Needle(Bell):
    """P is .2, and .9 close to a place that no grid meets."""

    place = 0.0

    def __call__(self, actions):
        return 0.2 + 0.7 * (-((actions - self.place) / 1e-4).square()).sum(-1).exp()


class Fixed(ProjectedAscent):
    """A search that has found .4137."""

    def batch_search(self, objective):
        return [
            Decision(Alteration(("a",), torch.tensor([0.4137], dtype=torch.float64)), 0.9)
            for _ in objective.cases
        ]


@pytest.mark.parametrize("place", [0.4137, (0.4137 - 1) / 2], ids=["itself", "half-way"])
def test_what_the_search_has_found_and_half_the_way_to_it_are_starts(place):
    priced = [case(up=1.0)]
    one = Needle(priced, ("a",))
    one.place = place
    (found,) = decided(Fixed(), Candidates(priced, [one]))
    assert float(found.alteration.values) == pytest.approx(place, abs=1e-4)
    assert found.trace["without_costs"] == {"a": 0.4137}


def test_what_a_search_would_have_set_without_costs_is_told():
    # P is below .05 everywhere: without costs nothing is done either.
    costs = CaseCosts({"a": ActionCost(up=1.0)}, {"a": -1.0}, 10.0)
    one = RehearsalCase("one", {}, {"a": (-1.0, -0.9)}, present={"a": -1.0}, costs=costs)
    objective = Candidates([one], [Bell([one], ("a",))])
    (alone,) = ProjectedAscent().batch_search(objective)
    assert alone.alteration is None
    (found,) = decided(ProjectedAscent(), objective)
    assert found.trace["without_costs"] == alone.trace["would_set"]
