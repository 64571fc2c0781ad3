import pytest
import torch

from rehearsal_torch.search.budget import Budget
from rehearsal_torch.search.trials.box_ascent import ascend
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


def test_limits_are_kept():
    # a + b <= 1, with the top at (1, 1).
    limits = Polytope(("a", "b"), torch.ones(1, 2, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
    region = CandidateRegion.within(LOWER, UPPER, limits)
    found = ascend(bowl(1.0, 1.0), region, starts(8, region))
    assert region.units(found.points)[0].tolist() == pytest.approx([0.5, 0.5], abs=1e-4)
    assert bool(region.contains(found.points).all())


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


def test_a_spent_budget_ends_at_the_best_points_so_far():
    calls = 0

    class Once(Budget):
        def out(self):
            return calls > 3

    def counted(points):
        nonlocal calls
        calls += 1
        return bowl(0.7, 1.2)(points)

    found = ascend(counted, BOX, starts(), kept=8, budget=Once(limit_s=1.0))
    assert found.values.shape == (8,)
    assert float(found.values[0]) > float(bowl(0.7, 1.2)(BOX.units(starts())).max())
    torch.testing.assert_close(bowl(0.7, 1.2)(BOX.units(found.points)), found.values)
