"""What every objective of alterations has: bounds, coordinates, gradients, and what is said of an action."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.objective import (
    AlterationObjective,
    Objective,
    chance,
    class_of,
    difference,
    gradient,
    objective_for,
    settings_of,
)
from rehearsal_torch.spaces.box import Alteration

DOUBLE = torch.float64


class Cubic(AlterationObjective):
    """The sum over coordinates of a^3 + 2 a: its gradient is 3 a^2 + 2."""

    def __call__(self, actions):
        return (actions**3 + 2 * actions).sum(-1)

    def starts(self, count):
        return self.lower.expand(count, -1, -1)

    def appraise(self, actions):
        return []


class Blind(Cubic):
    """The same value everywhere."""

    def __call__(self, actions):
        return torch.ones(actions.shape[:-1], dtype=actions.dtype)


class Single(Objective):
    """An objective of one case, which keeps what it is built from."""

    def __init__(self, surrogate, case, power=1):
        self.surrogate, self.case, self.power = surrogate, case, power

    def __call__(self, actions):
        return actions.sum(-1) ** self.power

    def starts(self, count):
        return torch.zeros(count, 1)


def case(identity="0", levels=None, **feasible):
    return RehearsalCase(identity, {}, feasible, levels={} if levels is None else levels)


BOXES = [case("0", a=(-1.0, 3.0), b=(0.0, 10.0)), case("1", b=(5.0, 6.0), a=(2.0, 2.0))]
BOTH = Cubic(BOXES, ("a", "b"))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(a=st.floats(-20, 20), b=st.floats(-20, 20))
def test_the_projection_is_the_nearest_point_of_each_box(a, b):
    found = BOTH.project(torch.tensor([[a, b], [a, b]], dtype=DOUBLE))
    clip = [[min(max(a, -1), 3), min(max(b, 0), 10)], [2.0, min(max(b, 5), 6)]]
    assert found.tolist() == clip
    assert torch.equal(BOTH.project(found), found)


def test_a_projection_keeps_the_precision_of_what_it_is_handed():
    far = torch.full((3, 2, 2), 50.0)
    assert BOTH.project(far).dtype == torch.float32
    assert BOTH.project(far).shape == (3, 2, 2)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000))
def test_gradients_are_those_of_the_formula_in_units_and_in_the_frame(seed):
    points = torch.rand(3, 2, 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed)) * 2 - 1
    location, scale = BOTH.frame()
    actions = location + scale * points
    values, slopes = BOTH.value_and_gradient(actions)
    torch.testing.assert_close(values, (actions**3 + 2 * actions).sum(-1))
    torch.testing.assert_close(slopes, 3 * actions**2 + 2)
    framed, turned = BOTH.value_and_gradient_in_frame(points)
    torch.testing.assert_close(framed, values)
    torch.testing.assert_close(turned, slopes * scale)
    single, rough = BOTH.value_and_gradient_in_frame(points.float())
    assert single.dtype == rough.dtype == torch.float32
    torch.testing.assert_close(rough.double(), turned, rtol=1e-4, atol=1e-3)


def test_values_and_gradients_are_found_where_gradients_are_switched_off():
    with torch.no_grad():
        values, slopes = BOTH.value_and_gradient(torch.ones(2, 2, dtype=DOUBLE))
    assert not values.requires_grad
    assert slopes.tolist() == [[5.0, 5.0], [5.0, 5.0]]


def test_the_gradient_is_zero_where_values_do_not_depend_on_the_action():
    at = torch.ones(2, 2, dtype=DOUBLE, requires_grad=True)
    assert gradient(torch.ones(2), at).tolist() == [[0.0, 0.0]] * 2
    assert gradient((at**2).sum(-1), at).tolist() == [[2.0, 2.0]] * 2
    assert Blind(BOXES, ("a", "b")).value_and_gradient(torch.ones(2, 2))[1].tolist() == [[0.0, 0.0]] * 2


@pytest.mark.parametrize("point", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_estimate(point):
    assert chance(point) is None
    assert chance(point, 0.1, 0.9) is None


@settings(max_examples=25, deadline=None, derandomize=True)
@given(point=st.floats(0, 1), lower=st.floats(0, 1), width=st.floats(0, 1))
def test_an_interval_always_holds_its_point(point, lower, width):
    found = chance(point, lower, lower + width, 0.9)
    assert found.lower <= found.point == point <= found.upper
    assert found.lower in (lower, point)
    assert found.upper in (lower + width, point)
    assert found.level == 0.9
    assert found.of == "probability of a desired outcome"


def test_differences_lie_within_minus_one_and_one_around_their_point():
    found = difference(0.4, -2.0, 1.5, 0.9)
    assert (found.point, found.lower, found.upper, found.level) == (0.4, -1.0, 1.0, 0.9)
    assert found.of == "difference of the probabilities of a desired outcome"
    assert difference(0.12345678, -1.0, 1.0, 0.9).point == 0.123457
    outside = difference(-0.25, -0.2, -0.1, 0.95)
    assert (outside.lower, outside.point, outside.upper) == (-0.25, -0.25, -0.1)
    assert difference(0.1, float("nan"), 0.2, 0.95) is None


def test_factories_are_classes_partials_with_settings_or_functions():
    squared = partial(Single, power=2)
    assert [class_of(each) for each in (Single, squared)] == [Single, Single]
    assert [class_of(each) for each in (dict, partial(dict), lambda *_: None)] == [None] * 3
    assert [settings_of(each) for each in (squared, Single)] == [{"power": 2}, {}]
    found = objective_for(squared, "model", ["case"])
    assert (type(found), found.case, found.power) == (Single, "case", 2)

    def made(surrogate, cases):
        return surrogate, cases

    assert objective_for(made, "model", ["case"]) == ("model", ["case"])
    assert objective_for(made, "model", ["case"], batch=False) == ("model", "case")


def test_the_objective_of_a_batch_has_one_part_for_each_candidate_set():
    class Model:
        class task:  # noqa: N801  what is read of a surrogate
            candidates, holding = (("a",), ("a", "b")), ()

    class Scaled(Cubic):
        def __init__(self, surrogate, cases, names, factor):
            super().__init__(cases, names)
            self.factor = factor

    found = Scaled.for_cases(Model, BOXES, factor=4)
    assert [one.names for one in found.sets] == [("a",), ("a", "b")]
    assert [one.factor for one in found.sets] == [4, 4]
    assert found.cases == tuple(BOXES)


def test_levels_are_those_of_the_variables_of_the_set_and_the_same_in_all_cases():
    few, more = {"a": (0.0, 1.0), "c": (0.0,)}, {"a": (0.0, 0.5, 1.0), "c": (0.0,)}
    box = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 0.0)}
    same = [case(str(place), few, **box) for place in range(3)]
    assert Cubic(same, ("a", "b")).levels == {"a": (0.0, 1.0)}
    other = [*same, case("3", more, **box)]
    assert Cubic(other, ("b", "c")).levels == {"c": (0.0,)}


def test_narrower_bounds_leave_the_objective_itself_as_it_is():
    lower, upper = torch.zeros(2, 2), torch.ones(2, 2)
    held = BOTH.within(lower, upper, {"b": 0.25})
    assert (held.lower.tolist(), held.upper.tolist()) == (lower.tolist(), upper.tolist())
    assert held.project(torch.full((2, 2), 50.0, dtype=DOUBLE)).tolist() == [[1.0, 1.0]] * 2
    assert (held.label(), BOTH.label()) == ("a+b=0.25", "a+b")
    assert Cubic([case(a=(0.0, 1.0))], ("a",)).label() == "a"
    assert held.levels == {}
    assert BOTH.upper.tolist() == [[3.0, 10.0], [2.0, 6.0]]


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
def test_levels_beyond_the_bounds_of_a_case_are_not_set(names):
    """Whole numbers within three of the present value, for one; all for another; one stays at 7."""
    bounds = [(0.0, 2.0), (0.0, 5.0), (7.0, 7.0)]
    cases = [
        RehearsalCase("one", {}, {"a": pair, "b": (0.0, 1.0)}, levels={"a": (0.0, 1.0, 2.0, 5.0)})
        for pair in bounds
    ]
    boxes = list(Cubic(cases, names).boxes())
    best = torch.stack([box.project(box.upper) for box in boxes])[..., 0].amax(0)
    assert best.tolist() == [2.0, 5.0, 7.0]
    cases[2].check(Alteration(("a",), torch.tensor([7.0], dtype=DOUBLE)))
