import pytest
import torch

from rehearsal_torch.search.trials.box_ascent import _apart, ascend
from rehearsal_torch.spaces.candidate_region import CandidateRegion
from rehearsal_torch.spaces.polytope import Polytope

LOWER, UPPER = torch.tensor([0.0, -1.0], dtype=torch.float64), torch.tensor([2.0, 3.0], dtype=torch.float64)
BOX = CandidateRegion.within(LOWER, UPPER, None)


def starts(count=8, region=BOX):
    return region.spread(count, 0)


def bowl(*centre):
    at = torch.tensor(centre, dtype=torch.float64)
    return lambda points: -(points - at).square().sum(-1)


def hills(points):
    low, high = ((points[..., 0] - centre).square() for centre in (0.3, 1.7))
    return (-20 * low).exp() + 1.5 * (-20 * high).exp() - 0.1 * points[..., 1].square()


def test_the_top_within_the_box_is_reached_from_every_start():
    found = ascend(bowl(0.7, 1.2), BOX, starts(), kept=8)
    torch.testing.assert_close(
        BOX.units(found.points),
        torch.tensor([[0.7, 1.2]], dtype=torch.float64).expand(8, 2),
        atol=1e-3,
        rtol=0,
    )
    assert found.evaluations >= 8


def test_a_top_outside_leads_to_the_border():
    found = ascend(bowl(3.0, 1.0), BOX, starts())
    assert BOX.units(found.points)[0].tolist() == pytest.approx([2.0, 1.0], abs=1e-3)
    assert float(found.values[0]) == pytest.approx(-1.0, abs=1e-5)


def test_of_two_hills_the_higher_comes_first():
    found = ascend(hills, BOX, starts(16), screening_steps=4, kept=6)
    assert BOX.units(found.points)[0].tolist() == pytest.approx([1.7, 0.0], abs=1e-2)
    assert bool((found.values.diff() <= 0).all())


def test_the_first_starts_go_on_whatever_comes_of_them():
    low = BOX.unit(torch.tensor([[0.3, 0.0]], dtype=torch.float64))

    def reached(sure):
        found = ascend(hills, BOX, torch.cat([low, starts(16)]), screening_steps=4, kept=1, sure=sure)
        return BOX.units(found.points)[:, 0].tolist()

    assert reached(0) == pytest.approx([1.7], abs=1e-2)
    assert reached(1) == pytest.approx([1.7, 0.3], abs=1e-2)


def test_holes_are_turned_back_from():
    def torn(points):
        values = bowl(0.7, 1.2)(points)
        return torch.where(points[..., 0] > 1.0, torch.nan * values, values)

    some = starts(16)
    found = ascend(torn, BOX, some)
    known = torn(BOX.units(some))
    assert bool(found.values.isfinite().any())
    assert float(found.values[0]) >= float(known[known.isfinite()].max())
    assert float(BOX.units(found.points)[0, 0]) <= 1.0
    with pytest.raises(ValueError, match="finite"):
        ascend(lambda points: torch.nan * points.sum(-1), BOX, starts())


def asked(name, value, calls):
    """A function that notes of each call its name, whether a gradient is wanted, and the number of points."""

    def noted(points):
        calls.append((name, points.requires_grad, len(points)))
        return value(points)

    return noted


def total(calls, *names):
    return sum(count for name, gradient, count in calls if gradient and name in names)


def test_the_approximation_compares_and_both_functions_are_counted() -> None:
    calls = []
    found = ascend(
        asked("fine", hills, calls), BOX, starts(16), kept=3, rough=asked("rough", hills, calls), sure=2
    )
    assert found.evaluations == total(calls, "fine", "rough")
    assert calls[0] == ("rough", True, 16)
    first = next(each for each in calls if each[0] == "fine")
    # After eight steps starts coincide at the tops.
    assert first[1]
    assert 2 < first[2] <= 5
    calls.clear()
    found = ascend(asked("fine", hills, calls), BOX, starts(16), kept=3)
    assert found.evaluations == total(calls, "fine")
    # As many starts as are kept are not compared.
    calls.clear()
    ascend(asked("fine", hills, calls), BOX, starts(4), kept=4, rough=asked("rough", hills, calls))
    assert {name for name, _, _ in calls} == {"fine"}
    assert calls[0] == ("fine", True, 4)


# A start on the lower hill is better than one at the foot of the higher one.
FOOT = BOX.unit(torch.tensor([[1.35, 0.0], [0.32, 0.0], [1.2, 2.0]], dtype=torch.float64))
LIMITED = CandidateRegion.within(
    LOWER, UPPER, Polytope(("a", "b"), torch.ones(1, 2).double(), torch.tensor([4.9]).double())
)


def worst(points):
    return -hills(points)


@pytest.mark.parametrize(("region", "screening"), [(BOX, 0), (LIMITED, 0), (LIMITED, 8)])
def test_without_steps_or_under_limits_the_starts_themselves_are_compared(region, screening) -> None:
    calls = []
    rough = asked("rough", worst, calls)
    found = ascend(hills, region, FOOT, screening_steps=screening, kept=1, rough=rough)
    assert region.units(found.points)[:, 0].tolist() == pytest.approx([0.3] * len(found.points), abs=0.03)
    assert calls == []


def test_of_starts_that_coincide_the_better_goes_on_alone() -> None:
    # Under limits the starts that went on are among the ends: of two that are 5e-4 apart the better one.
    near = LIMITED.unit(torch.tensor([[0.2, 0.0], [0.201, 0.0], [1.0, 0.0]], dtype=torch.float64))
    found = ascend(hills, LIMITED, near, kept=3)
    assert [bool((found.points == each).all(-1).any()) for each in near] == [False, True, True]
    calls = []
    ascend(asked("fine", hills, calls), BOX, near[[0, 0, 2, 2]], screening_steps=0, kept=3)
    assert next(each for each in calls if each[1]) == ("fine", True, 2)


def test_ends_under_limits_are_inside_and_in_order_of_their_values() -> None:
    found = ascend(bowl(3.0, 4.0), LIMITED, LIMITED.spread(4, 0), kept=2)
    assert bool(LIMITED.contains(found.points).all())
    assert bool((found.values.diff() <= 0).all())
    torch.testing.assert_close(bowl(3.0, 4.0)(LIMITED.units(found.points)), found.values)


def test_undefined_points_take_no_defined_one_with_them() -> None:
    nan = float("nan")
    for given, kept in (([0.1, nan, 0.9, 0.1002], [0.1, 0.9]), ([nan, 0.1, 0.9], [nan, 0.1, 0.9])):
        found = _apart(torch.tensor(given, dtype=torch.float64).unsqueeze(-1))
        assert found.squeeze(-1).tolist() == pytest.approx(kept, nan_ok=True)
