"""Boxes: projection, membership, even points, and what is no box."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.spaces.box import Alteration, Box, levels_text, margin, setting_text

BOX = Box.of({"a": (-1, 2), "b": (0.5, 0.5), "c": (-3, -1)})
numbers = st.lists(st.floats(-10, 10), min_size=3, max_size=3)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(numbers, numbers)
def test_projection_gives_the_nearest_point_of_the_box(one, other):
    point, inside = (
        torch.tensor(one, dtype=torch.float64),
        BOX.project(torch.tensor(other, dtype=torch.float64)),
    )
    nearest = BOX.project(point)
    assert BOX.contains(nearest)
    assert torch.equal(BOX.project(nearest), nearest)
    assert (point - nearest).norm() <= (point - inside).norm() + 1e-12
    assert bool(BOX.contains(point)) == torch.equal(point, nearest)


def test_bounds_go_in_and_come_out():
    assert BOX.bounds() == {"a": (-1.0, 2.0), "b": (0.5, 0.5), "c": (-3.0, -1.0)}
    assert Box.of(BOX.bounds()).bounds() == BOX.bounds()
    assert BOX.width.tolist() == [3, 0, 2]
    assert BOX.centre.tolist() == [0.5, 0.5, -2]
    some = BOX.only(["c", "a"])
    assert some.names == ("c", "a")
    assert some.lower.tolist() == [-3, -1]
    with pytest.raises(KeyError, match=r"no bounds for \['z'\]"):
        BOX.only(["a", "z"])


def test_alterations_are_equal_by_their_content():
    one = Alteration(("a", "b"), torch.tensor([1.0, 2.0]))
    again = Alteration(("a", "b"), torch.tensor([1.0, 2.0], requires_grad=True))
    assert one == again
    assert hash(one) == hash(again)
    others = [
        Alteration(("a", "b"), torch.tensor([1.0, 3.0])),
        Alteration(("b", "a"), torch.tensor([1.0, 2.0])),
        Alteration(("a", "b"), torch.tensor([[1.0, 2.0]])),
        Alteration(("a", "b"), torch.tensor([1.0, 2.0], dtype=torch.float64)),
        None,
    ]
    assert [other for other in others if one == other] == []
    assert one.__eq__("another kind") is NotImplemented


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.1235"),
        (-3.0, "-3"),
        (-0.0, "0"),
        (1e7 + 0.7, "10000000.7"),
        (1.6e9 + 0.25, "1600000000.25"),
        (1e-7, "1e-07"),
        (12345.0, "12345"),
        (1e15, "1e+15"),
        (-1e4, "-10000"),
        (9999.4, "9999"),
    ],
)
def test_a_setting_keeps_its_digits_behind_an_offset(value, text):
    assert setting_text(value) == text


LEVELLED = Box.of({"a": [0, 4], "b": {"values": [3, 1, 2]}})


def test_levels_are_kept_in_order_and_are_the_nearest_points():
    assert LEVELLED.levels == {"b": (1.0, 2.0, 3.0)}
    assert LEVELLED.bounds() == {"a": (0.0, 4.0), "b": (1.0, 3.0)}
    points = torch.tensor([[5.0, 2.4], [1.5, 9.0], [0.0, 2.5]]).double()
    assert LEVELLED.project(points).tolist() == [[4.0, 2.0], [1.5, 3.0], [0.0, 2.0]]
    assert LEVELLED.contains(torch.tensor([[1.0, 2.0], [1.0, 2.5], [5.0, 2.0]])).tolist() == [
        True,
        False,
        False,
    ]
    assert set(LEVELLED.sobol(64)[:, 1].tolist()) == {1.0, 2.0, 3.0}
    assert LEVELLED.only(["b"]).levels == {"b": (1.0, 2.0, 3.0)}
    assert LEVELLED.only(["a"]).levels == {}
    assert LEVELLED.to_plain() == {"a": [0.0, 4.0], "b": {"values": [1.0, 2.0, 3.0]}}
    assert Box.of(LEVELLED.to_plain()).to_plain() == LEVELLED.to_plain()


def test_a_value_is_at_a_level_within_a_quarter_of_the_smallest_gap():
    box = Box.of({"a": (0, 1), "b": {"values": [1, 10, 1000]}, "c": {"values": [0, 1]}, "d": {"values": [7]}})
    assert box.near.tolist() == [math.inf, 2.25, 0.25, math.inf]


def test_long_lists_of_levels_are_cut_in_messages():
    assert (levels_text(()), levels_text((0.5, 2.0))) == ("", "0.5, 2")
    assert levels_text((0, 1, 2, 3, 4), "one of ") == "one of 0, 1, 2, 3, 4"
    assert levels_text(tuple(range(50, 81)), "one of ") == "whole numbers from 50 to 80"
    assert (
        levels_text([1_000_000 + place / 10 for place in range(9)])
        == "values from 1000000 to 1000000.8 in steps of 0.1"
    )
    assert levels_text([2.0**place for place in range(11)]) == "1, 2, 4, 8, 16, 32, 64, 128, 256, 512, ..."


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_margin_is_a_share_of_the_interval_and_four_units_in_the_last_place(dtype):
    lower, upper = torch.tensor([-8.0, 2.0], dtype=dtype), torch.tensor([2.0, 4.0], dtype=dtype)
    assert margin(lower, upper, 0.5).tolist() == pytest.approx([5.0, 1.0], rel=1e-5)
    last = torch.finfo(dtype).eps
    assert margin(lower, upper, 0.0).tolist() == [32 * last, 16 * last]
