"""Contradictions: which inequalities are named, and that any of them could be dropped to resolve it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import OptimizeResult, linprog

from rehearsal_torch.spaces import contradiction as of_contradictions
from rehearsal_torch.spaces.contradiction import _irreducible, contradiction, face_text
from rehearsal_torch.spaces.inequalities import inequalities


def told(text):
    found = inequalities(text)
    return contradiction(
        found.names,
        torch.tensor(found.normals, dtype=torch.float64),
        torch.tensor(found.offsets, dtype=torch.float64),
    )


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


def test_of_two_contradictions_one_is_named():
    assert told("a <= 0 and a >= 1 and b <= 0 and b >= 2") in ("a <= 0 and a >= 1", "b <= 0 and b >= 2")


def test_a_face_has_its_variable_on_the_left():
    assert face_text(("a", "b"), torch.tensor([0.0, -2.0]), 5.0) == "b >= -2.5"
    assert face_text(("a", "b"), torch.tensor([0.0, -2.0]), 0.0) == "b >= 0", "without a sign of zero"
    assert face_text(("a", "b"), torch.tensor([4.0, 0.0]), -2.0) == "a <= -0.5"
    assert face_text(("a", "b"), torch.tensor([1.0, -1.0]), 0.0) == "a - b <= 0"
    assert face_text(("a", "b", "c"), torch.tensor([-2.0, 1.0, 0.5]), 3.0) == "-2*a + b + 0.5*c <= 3"


def test_where_the_solver_fails_nothing_is_named(monkeypatch):
    monkeypatch.setattr(of_contradictions, "linprog", lambda *_, **__: OptimizeResult(success=False))
    assert told("a >= 1 and a <= 0") == ""


def feasible(faces, bounds):
    sides = [(None, None)] * faces.shape[1]
    return linprog([0.0] * faces.shape[1], A_ub=faces, b_ub=bounds, bounds=sides, method="highs").success


@settings(max_examples=60, deadline=None)
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
