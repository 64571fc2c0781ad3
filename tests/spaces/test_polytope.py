"""Desired regions: faces, the largest ball inside, the smoothed indicator, and units."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import OptimizeResult, linprog

from rehearsal_torch.spaces import polytope
from rehearsal_torch.spaces import polytope as of_contradictions
from rehearsal_torch.spaces.inequalities import inequalities
from rehearsal_torch.spaces.polytope import Polytope, _irreducible, contradiction

TRIANGLE = Polytope(
    ("p", "q"), torch.tensor([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]]), torch.tensor([0.0, 0.0, 1.0])
)
SQUARE = Polytope.of({"p": (0, 2), "q": (-1, 1)})


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_upright_regions_may_be_open_on_a_side():
    region = Polytope.of({"p": (None, 2), "q": (-1, float("inf")), "r": (None, None)})
    assert region.names == ("p", "q", "r")
    assert region.normals.tolist() == [[1, 0, 0], [0, -1, 0]]
    assert region.offsets.tolist() == [2, 1]
    assert region.contains(torch.tensor([-1e6, 1e6, 5.0]))


def test_the_largest_ball_inside_is_the_known_one():
    centre, radius = SQUARE.chebyshev()
    assert radius == pytest.approx(1)
    assert centre.tolist() == pytest.approx([1, 0])
    # The incircle of the right triangle with legs 1: (2 - sqrt 2) / 2.
    centre, radius = TRIANGLE.chebyshev()
    assert radius == pytest.approx((2 - math.sqrt(2)) / 2)
    assert centre.tolist() == pytest.approx([radius, radius])


def test_a_face_counts_by_its_direction_not_by_its_length():
    longer = Polytope(
        TRIANGLE.names,
        TRIANGLE.normals * torch.tensor([[2.0], [3.0], [10.0]]),
        TRIANGLE.offsets * torch.tensor([2.0, 3.0, 10.0]),
    )
    assert longer.chebyshev()[1] == pytest.approx(TRIANGLE.chebyshev()[1])


@pytest.mark.parametrize(
    "bounds", [{"p": (1, None)}, {"p": (None, -3), "q": (2, None)}, {"p": (0.5, None), "q": (None, None)}]
)
def test_in_an_open_region_any_ball_fits(bounds):
    region = Polytope.of(bounds)
    centre, radius = region.chebyshev()
    assert radius == math.inf
    assert float(region.slack(centre).min()) >= 1 - 1e-9, "a ball of radius one fits around it"


def test_desirability_is_a_product_of_normal_distribution_functions_and_has_a_slope():
    points = normal(20, 2).requires_grad_(True)
    product = torch.special.ndtr(3 * SQUARE.slack(points)).prod(-1)
    assert torch.allclose(SQUARE.desirability(points, 3.0), product)
    assert torch.autograd.gradcheck(lambda at: SQUARE.desirability(at, 3.0), (points,))
    assert float(SQUARE.desirability(torch.tensor([1e4, 0.0], dtype=torch.float64), 20.0)) == 0, (
        "far away, without an overflow"
    )


@settings(max_examples=10, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_standardised_is_the_same_region_in_other_units(seed):
    stream = torch.Generator().manual_seed(seed)
    normals, location = (
        torch.randn(4, 3, generator=stream, dtype=torch.float64),
        5 * torch.randn(3, generator=stream, dtype=torch.float64),
    )
    scale = torch.rand(3, generator=stream, dtype=torch.float64) * 10 + 0.01
    inside = torch.randn(3, generator=stream, dtype=torch.float64)
    region = Polytope(
        ("p", "q", "r"), normals, normals @ inside + torch.rand(4, generator=stream, dtype=torch.float64)
    )
    there = region.standardised(location, scale)
    outcomes = inside + 2 * torch.randn(40, 3, generator=stream, dtype=torch.float64)
    assert torch.equal(there.contains((outcomes - location) / scale), region.contains(outcomes))
    assert torch.allclose(there.normals.norm(dim=-1), torch.ones(4, dtype=torch.float64))
    again = there.standardised(-location / scale, 1 / scale)
    assert torch.allclose(
        again.slack(outcomes), region.slack(outcomes) / region.normals.norm(dim=-1, keepdim=True).mT
    )


def test_weights_of_different_size_are_no_hindrance_and_a_solver_that_fails_is_told(monkeypatch):
    steep = Polytope(("a", "b"), torch.tensor([[-0.5, -35356.0], [0.0, -2.0]]), torch.tensor([-1.0, -1.0]))
    assert bool(steep.contains(torch.tensor([0.0, 1.0], dtype=torch.float64)))
    monkeypatch.setattr(polytope, "linprog", lambda *_, **__: OptimizeResult(status=4, success=False))
    with pytest.raises(ValueError, match="cannot be solved: expected weights of about the same size"):
        Polytope(steep.names, steep.normals, steep.offsets)
    assert steep.chebyshev()[1] == float("inf"), "found once, when the region was made"


def told(text):
    found = inequalities(text)
    return contradiction(found.names, np.array(found.normals), np.array(found.offsets))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("sales >= 20 and sales <= 10 and cost <= 3", "sales >= 20 and sales <= 10"),
        ("a <= 5 and a + b >= 20 and b <= 9 and c >= 0", "a <= 5 and -a - b <= -20 and b <= 9"),
        ("0 <= a <= 1 and 2*a - 0.5*b >= 3 and b >= 0", "a <= 1 and -2*a + 0.5*b <= -3 and b >= 0"),
        ("a >= 1 and a <= 1", ""),
        ("a >= 1 and b <= 1", ""),
        ("1000000*a <= 1 and a >= 0.001", "a <= 1e-06 and a >= 0.001"),
    ],
)
def test_the_inequalities_that_contradict_are_named_and_no_others(text, named):
    assert told(text) == named


def test_where_the_solver_fails_nothing_is_named(monkeypatch):
    monkeypatch.setattr(of_contradictions, "linprog", lambda *_, **__: OptimizeResult(success=False))
    assert told("a >= 1 and a <= 0") == ""


def feasible(faces, bounds):
    sides = [(None, None)] * faces.shape[1]
    return linprog([0.0] * faces.shape[1], A_ub=faces, b_ub=bounds, bounds=sides, method="highs").success


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 9), st.integers(1, 3))
def test_what_is_named_has_no_solution_and_has_one_without_any_of_it(seed, count, width):
    draws = torch.Generator().manual_seed(seed)
    normals = torch.randn(count, width, generator=draws, dtype=torch.float64)
    faces = (normals / normals.norm(dim=-1, keepdim=True)).numpy()
    bounds = (torch.randn(count, generator=draws, dtype=torch.float64) - 0.5).numpy()
    kept = _irreducible(faces, bounds)
    if not kept:
        assert feasible(faces, bounds + 1e-8)
        return
    assert len(kept) <= width + 1
    assert not feasible(faces[kept], bounds[kept])
    for place in kept:
        rest = [other for other in kept if other != place]
        assert not rest or feasible(faces[rest], bounds[rest] + 1e-8)


@pytest.mark.parametrize("bounds", [(float("nan"), 1.0), (0.0, float("nan"))])
def test_an_undefined_bound_is_no_open_side(bounds):
    with pytest.raises(ValueError, match=r"p: expected numbers or None; got \["):
        Polytope.of({"p": bounds})
