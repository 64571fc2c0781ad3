"""Curves are the claims of the method at every place, withheld outside the data, and hide single rows."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from rehearsal_torch.api.rehearsal_request import NewCases
from rehearsal_torch.api.what_if import what_if
from rehearsal_torch.evaluation.claim_curves import (
    BEFORE,
    CLAIM,
    PRESENT,
    ROWS,
    SET,
    bins,
    claim_table,
    places,
    shown,
)
from rehearsal_torch.evaluation.run_record import CLAIM_NUMBERS, CLAIMS
from tests.toys.explored import rows, small_model

CONTEXT = 0.1


@pytest.fixture(scope="module")
def case():
    return NewCases(small_model().task, torch.tensor([[CONTEXT]], dtype=torch.float64), ["one"]).case(0)


def line(index=0, estimate=0.7, baseline=0.4, **facts):
    stated = {"point": estimate, "lower": estimate - 0.1, "upper": estimate + 0.1, "level": 0.95}
    return {
        "index": index,
        "identity": f"case {index}",
        "alteration": {"a": 0.3, "m": 1.0},
        "estimate": stated,
        "baseline": {"point": baseline},
    } | facts


def table(case, lines, objective=None, kind="rehearse"):
    model = small_model()
    problem = SimpleNamespace(case=lambda _: case, kind=kind)
    return claim_table(problem, model.surrogate, objective or model.method.objective, lines, model.seed)


def series(found, along, name):
    return [row for row in found if (row["along"], row["series"]) == (along, name)]


def test_a_curve_is_what_the_method_claims_at_every_place(case):
    found = table(case, [line()])
    one, other = series(found, "a", CLAIM), series(found, "m", CLAIM)
    assert [each["x"] for each in one] == places(case, "a", 33)
    assert [each["x"] for each in other] == [-1.0, 0.0, 1.0]
    for rows_of, names in ((one, lambda x: {"a": x, "m": 1.0}), (other, lambda x: {"a": 0.3, "m": x})):
        for each in rows_of[1:-1:5]:
            claim = what_if(small_model(), case, names(each["x"]))
            if each["point"] != "":
                stated = claim.estimate
                assert (each["point"], each["lower"], each["upper"], each["level"]) == pytest.approx(
                    (stated.point, stated.lower, stated.upper, stated.level), abs=1e-9
                )
            else:
                assert any(finding.kind in ("range", "support") for finding in claim.findings)
    assert one[0]["point"] == one[0]["lower"] == ""
    assert one[16]["point"] != ""
    assert set(found[0]) == set(CLAIMS)
    assert all(
        isinstance(row[name], float | int) or row[name] == "" for row in found for name in CLAIM_NUMBERS
    )


def test_beside_a_curve_stand_the_decision_the_present_and_the_rows(case):
    plain = table(case, [line()])
    (put,) = series(plain, "a", SET)
    assert (put["x"], put["point"], put["lower"], put["upper"]) == pytest.approx((0.3, 0.7, 0.6, 0.8))
    assert [each["point"] for each in series(plain, "a", BEFORE)] == [0.4]
    assert series(plain, "a", PRESENT) == []
    counted = bins(small_model().surrogate, case, "a")
    assert [each["point"] for each in series(plain, "a", ROWS)] == [
        "" if each is None else each for each in counted["counts"]
    ]
    known = table(case, [line(present={"a": 0.9}, unchanged={"point": 0.45})])
    assert [each["x"] for each in series(known, "a", PRESENT)] == [0.9]
    assert series(known, "m", PRESENT) == []
    assert [each["point"] for each in series(known, "m", BEFORE)] == [0.45]


def test_the_largest_the_median_and_the_smallest_difference_are_shown():
    lines = [line(index, estimate) for index, estimate in enumerate([0.5, 0.9, 0.6, 0.55, 0.7])]
    assert [each["index"] for each in shown(lines)] == [0, 1, 2]
    assert [each["index"] for each in shown(lines[:2])] == [0, 1]
    idle = [line(5, math.nan), line(6, alteration=None)]
    assert [each["index"] for each in shown([*lines, *idle])] == [0, 1, 2]
    present = line(7, 0.5, baseline=0.9, unchanged={"point": -0.5})
    assert shown([*lines, present])[-1] == present


def test_bins_count_the_rows_and_hide_where_there_are_few(case):
    def counted(lower, upper):
        return bins(small_model().surrogate, replace(case, feasible={"a": (lower, upper)}, levels={}), "a")

    values = torch.tensor(rows()["a"].to_numpy())
    found = counted(-1.0, 1.0)
    counts = torch.histc(values[(values >= -1) & (values <= 1)], 12, -1, 1).tolist()
    assert found["rows"] == 120
    assert (found["low"][0], found["high"][-1], len(found["at"])) == (-1.0, 1.0, 12)
    assert found["at"] == found["low"]
    assert found["low"][1:] == found["high"][:-1]
    assert found["counts"] == [int(each) if each == 0 or each >= 5 else None for each in counts]
    few = counted(-6.0, 6.0)["counts"]
    assert few[0] == 0
    assert None in few
    assert not set(few) & {1, 2, 3, 4}
    assert counted(1.0, 1.0) is None


def test_levels_have_a_bar_each_around_their_value(case):
    values = torch.tensor(rows()["a"].to_numpy())

    def counted(*levels):
        one = replace(case, feasible={"a": (levels[0], levels[-1])}, levels={"a": levels})
        return bins(small_model().surrogate, one, "a")

    found = counted(-2.0, -1.0, 0.0, 1.0, 2.0)
    assert found["at"] == [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert found["low"] == pytest.approx([-2.4, -1.4, -0.4, 0.6, 1.6])
    assert found["high"] == pytest.approx([-1.6, -0.6, 0.4, 1.4, 2.4])
    near = [int((abs(values - level) <= 0.5).sum()) for level in found["at"]]
    assert found["counts"] == [each if each == 0 or each >= 5 else None for each in near]
    # Of uneven levels all bars are as wide as the smallest distance allows, and none covers another level.
    uneven = counted(0.0, 0.5, 2.0)
    assert [high - low for low, high in zip(uneven["low"], uneven["high"], strict=True)] == pytest.approx(
        [0.4] * 3
    )
    assert counted(1.0) is None
    # Too many levels for a bar each stand in bins.
    many = counted(*(level / 100 for level in range(-50, 51)))
    assert len(many["at"]) == 12
    assert (many["low"][0], many["high"][-1]) == pytest.approx((-0.505, 0.505))
