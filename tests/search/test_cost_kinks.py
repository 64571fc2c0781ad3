"""Decisions where costs count reach the best net value of a world whose truth is known, by every method."""

import json

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rehearsal_torch as rt
from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.data.costs import ActionCost, CaseCosts
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.objective import AlterationObjective, Appraisal, Candidates, chance
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.search.cost_kinks import climb, evaluated
from rehearsal_torch.search.search import Budget, NoAction, check_worth, chosen
from tests.toys.priced import CASES, COSTS, TASK, WORTH, reached, rows, truths

PRICED = TASK | {"costs": COSTS, "worth": WORTH}
WEIGHING = {"care": 1.0, "qwz23_offline": 1.0, "qwz23_success": 3.0, "outcome_regression": 3.0, "cme": 6.0}


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
    assert third.reason.kind == "no_gain"
    assert third.reason.text == "no change nets more than leaving a at 2 and b at 1"
    assert first.trace["search"] == "projection_newton"


@pytest.mark.bench
@pytest.mark.parametrize("method", ["care", "outcome_regression"])
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
    objective = Candidates(cases, [Bell(cases, ("a",))])
    return ruled(objective, ProjectedAscent().batch_search(objective))


@settings(max_examples=25, deadline=None)
@given(st.floats(0.0, 12.0), st.floats(0.0, 12.0), st.floats(-1.0, 0.9))
def test_a_higher_cost_never_gives_a_larger_change(one, other, present):
    cases = [case(up=cost, down=cost, present=present) for cost in sorted((one, other))]
    found = ProjectedAscent().batch_search(Candidates(cases, [Hill(cases, ("a",))]))
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
    assert of(case(levels, up=1.0, fixed=9.0))[0].reason.kind == "no_gain"


def test_cases_in_which_nothing_costs_anything_keep_the_decision_of_the_search():
    free, priced = case(), case(up=3.0)
    both = of(free, priced)
    (alone,) = ProjectedAscent().batch_search(Candidates([free], [Bell([free], ("a",))]))
    assert torch.equal(both[0].alteration.values, alone.alteration.values)
    (never,) = NoAction().batch_search(Candidates([priced], [Bell([priced], ("a",))]))
    assert never.reason == Finding("never_acts", "this method never acts")
    assert both[1].trace["search"] == "projected_ascent"
    assert both[1].cost == pytest.approx(3 * (float(both[1].alteration.values) + 1))


def test_an_objective_without_a_probability_is_refused():
    class Other(Bell):
        of_success = False

    with pytest.raises(ValueError, match=r"Other with ProjectedAscent\) looks for something else"):
        check_worth(Other, ProjectedAscent())
    check_worth(Other, NoAction())
    one = case(up=1.0)
    with pytest.raises(ValueError, match="Other is another value: leave worth out"):
        ProjectedAscent().batch_search(Candidates([one], [Other([one], ("a",))]))


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
    found = ProjectedAscent().batch_search(Candidates(pair, [one]))
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
    (found,) = ProjectedAscent().batch_search(Candidates([one], [Two([one], ("a", "b"))]))
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


@pytest.mark.parametrize("place", [0.4137, (0.4137 - 1) / 2], ids=["itself", "half-way"])
def test_what_the_search_has_found_and_half_the_way_to_it_are_starts(place):
    priced = [case(up=1.0)]
    one = Needle(priced, ("a",))
    one.place = place
    at = torch.tensor([[0.4137]], dtype=torch.float64)
    (found,) = chosen(Candidates(priced, [one]), [at], one(at)[None], "fixed", Budget(None))
    assert float(found.alteration.values) == pytest.approx(place, abs=1e-4)


DOUBLE = torch.float64
sizes = st.floats(0.0, 5.0)


def row(*values):
    return torch.tensor([values], dtype=DOUBLE)


def best(value, lower, upper, origin, *starts):
    points, values = climb(value, torch.stack([origin, *starts]), lower, upper, origin)
    which = values[:, 0].argmax()
    return points[which, 0], float(values[which, 0])


def bowl(peak, curvature, cost, origin, jump=0.0):
    def value(actions):
        moved = actions - origin
        smooth = -0.5 * (curvature * (actions - peak).square()).sum(-1)
        return smooth - (cost * moved.abs()).sum(-1) - jump * (moved != 0).to(actions).sum(-1)

    return value


@given(st.floats(-3, 3), st.floats(-3, 3), sizes, st.floats(0.2, 4))
def test_one_coordinate_reaches_the_soft_threshold(peak, origin, cost, curvature):
    found, _ = best(bowl(row(peak), curvature, cost, row(origin)), row(-3.0), row(3.0), row(origin))
    way = peak - origin
    expected = origin + (1 if way > 0 else -1) * max(abs(way) - cost / curvature, 0.0)
    assert float(found) == pytest.approx(expected, abs=2e-3)
    if abs(way) * curvature < cost - 1e-6:
        assert float(found) == origin


def test_what_can_be_had_from_either_action_is_had_from_the_cheaper_one():
    # A concave function of z1 + 2 z2: z2 moves it for half the price.
    def value(actions):
        total = actions[..., 0] + 2 * actions[..., 1]
        return -0.5 * (total - 3).square() - actions.abs() @ torch.tensor([1.0, 1.0], dtype=DOUBLE)

    found, reached = best(value, row(-4.0, -4.0), row(4.0, 4.0), row(0.0, 0.0), row(3.0, 0.0), row(1.0, 1.0))
    # d/dz2: 2 (3 - t) = 1, t = 2.5
    assert found.tolist() == pytest.approx([0.0, 1.25], abs=2e-3)
    assert float(found[0]) == 0.0
    assert reached == pytest.approx(-0.125 - 1.25, abs=1e-5)


@pytest.mark.parametrize(("jump", "expected"), [(0.4, 1.0), (0.6, 0.0)])
def test_a_cost_of_any_change_is_paid_only_if_it_pays(jump, expected):
    # The whole way is worth 1/2.
    found, _ = best(bowl(row(1.0), 1.0, 0.0, row(0.0), jump), row(-2.0), row(2.0), row(0.0))
    assert float(found) == pytest.approx(expected, abs=2e-3)


def test_the_answer_for_a_case_does_not_depend_on_the_cases_beside_it():
    peaks = torch.tensor([[1.0, -1.0], [0.1, 2.0], [-2.0, 0.3]], dtype=DOUBLE)
    cost, zeros = torch.tensor([0.3, 0.7], dtype=DOUBLE), torch.zeros(3, 2, dtype=DOUBLE)
    lower, upper = zeros - 3, zeros + 3
    starts = torch.stack([zeros, zeros + 2, zeros - 1])
    points, values = climb(bowl(peaks, 1.0, cost, zeros), starts, lower, upper, zeros)
    for case in range(3):
        one = slice(case, case + 1)
        alone = climb(
            bowl(peaks[one], 1.0, cost, zeros[one]), starts[:, one], lower[one], upper[one], zeros[one]
        )
        assert torch.equal(alone[0], points[:, one])
        assert torch.equal(alone[1], values[:, one])


def test_a_coordinate_that_is_held_stays():
    lower, upper = row(0.5, -3.0), row(0.5, 3.0)
    points, _ = climb(
        bowl(row(2.0, 2.0), 1.0, 0.0, row(0.0, 0.0)), row(0.5, 0.0)[None], lower, upper, row(0.0, 0.0)
    )
    assert points[0, 0].tolist() == pytest.approx([0.5, 2.0], abs=2e-3)


def test_what_is_undefined_never_wins_and_a_spent_budget_ends_the_climb():
    def value(actions):
        return torch.where(actions[..., 0] > 0, torch.nan, -actions[..., 0].square())

    assert evaluated(value, row(1.0)[None]).tolist() == [[-torch.inf]]
    points, _ = climb(value, row(-2.0)[None], row(-3.0), row(3.0), row(torch.nan))
    assert -1e-2 < float(points) <= 0
    spent = Budget(1e-9)
    points, _ = climb(
        bowl(row(1.0, 1.0), 1.0, 0.0, row(0.0, 0.0)),
        row(0.0, 0.0)[None],
        row(-2.0, -2.0),
        row(2.0, 2.0),
        row(0.0, 0.0),
        spent.out,
    )
    assert spent.ran_out
    assert float(points[0, 0, 1]) == 0.0


@pytest.mark.parametrize("size", [1.0, 1e-7])
def test_a_kink_is_met_exactly_and_not_in_place_of_points_beside_it(size):
    lower, upper, kink = row(-size), row(size), row(0.3 * size)
    # .8 + (.3 - .8) is not .3.
    points, _ = climb(bowl(row(0.2 * size), 1.0, 50.0, kink), row(0.8 * size)[None], lower, upper, kink)
    assert float(points) == float(kink)
    free, _ = best(bowl(row(0.2 * size), 1.0, 0.0, kink), lower, upper, kink)
    assert float(free) == pytest.approx(0.2 * size, rel=1e-2)
