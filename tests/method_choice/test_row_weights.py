"""Weights under which rows show what setting an action brings."""

import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.method_choice.row_weights import LARGEST, row_weights
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope


def task(parents, actions):
    return RehearsalTask(
        RehearsalGraph.of(parents),
        ("x",),
        Box.of(dict.fromkeys(actions, (-9.0, 9.0))),
        Polytope.of({"y": (0.0, None)}),
        (actions,),
    )


def drawn(count, seed=0):
    return torch.randn(count, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).unbind(1)


def slope(values, outcome, weights):
    inputs = torch.stack([torch.ones_like(values[0]), *values], 1)
    gram = inputs.mT @ (weights[:, None] * inputs)
    return torch.linalg.solve(gram, inputs.mT @ (weights * outcome))[1:]


def test_without_covariates_all_rows_count_the_same():
    x, noise, other, *_ = drawn(50)
    table = Table.observed(("x", "a", "y"), torch.stack([x, x + noise, other], 1))
    weights = row_weights(table, task({"x": (), "a": ("x",), "y": ("a", "x")}, ("a",)), ("a",))
    assert torch.equal(weights, torch.ones(50, dtype=torch.float64))


def test_a_covariate_that_drives_action_and_outcome_is_made_up_for():
    x, u, e, f, _ = drawn(40_000)
    a = 0.5 * x + 0.4 * u + e
    y = a + 2 * u + f
    table = Table.observed(("x", "u", "a", "y"), torch.stack([x, u, a, y], 1))
    asked = task({"x": (), "u": (), "a": ("x", "u"), "y": ("a", "u")}, ("a",))
    weights = row_weights(table, asked, ("a",))
    assert float(weights.mean()) == pytest.approx(1.0)
    # Given x, the rows' slope of y in a is 1 + 2 * .4 / 1.16; setting a changes y by 1.
    assert float(slope((a, x), y, torch.ones_like(x))[0]) == pytest.approx(1 + 0.8 / 1.16, abs=0.03)
    assert float(slope((a, x), y, weights)[0]) == pytest.approx(1.0, abs=0.06)


def test_actions_with_covariates_between_them_have_one_factor_each():
    x, e, f, g, h = drawn(40_000)
    a = x + e
    v = 0.6 * a + f
    b = 0.6 * v + g
    y = a + b + v + h
    table = Table.observed(("x", "a", "v", "b", "y"), torch.stack([x, a, v, b, y], 1))
    parents = {"x": (), "a": ("x",), "v": ("a",), "b": ("v",), "y": ("a", "b", "v")}
    weights = row_weights(table, task(parents, ("a", "b")), ("a", "b"))
    # Setting a and b changes y by 1 + .6 through v, and by 1.
    found = slope((a, b, x), y, weights)[:2]
    assert found.tolist() == pytest.approx([1.6, 1.0], abs=0.08)


def test_no_row_outweighs_the_others_by_far():
    x, u, *_ = drawn(200)
    table = Table.observed(("x", "u", "a", "y"), torch.stack([x, u, u + 1e-3 * x, x], 1))
    asked = task({"x": (), "u": (), "a": ("u",), "y": ("a", "u")}, ("a",))
    weights = row_weights(table, asked, ("a",))
    assert bool(weights.isfinite().all())
    assert float(weights.max() / weights.mean()) <= LARGEST / float(weights.clamp_max(1).mean())
