"""Weighted projections onto polytopes, against SciPy."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, nnls

from rehearsal_torch.spaces.projection import project


def least_cost(point, weights, normals, offsets):
    """The least cost in finitely many steps, by non-negative least squares: Lawson and Hanson (1974), 23."""
    rows, ends = normals / np.sqrt(weights), offsets - normals @ point
    length = np.linalg.norm(rows, axis=1)
    rows, ends = rows / length[:, None], ends / length
    matrix, target = np.vstack([-rows.T, -ends]), np.eye(len(point) + 1)[-1]
    residual = matrix @ nnls(matrix, target)[0] - target
    if np.linalg.norm(residual) < 1e-9:
        return None
    nearest = -residual[:-1] / residual[-1]
    return nearest @ nearest


def random_box(seed):
    """Eight points, a box for each, and one to five more faces."""
    stream = np.random.default_rng(seed)
    width, faces = 1 + seed % 6, 1 + seed // 6 % 5
    normals = stream.normal(size=(faces, width)) * np.exp(2 * stream.normal(size=width) * (seed % 2))
    offsets = (stream.normal(size=(8, faces)) + 0.5) * np.linalg.norm(normals, axis=1)
    points, weights = 3 * stream.normal(size=(8, width)), np.exp((1 + seed % 3) * stream.normal(size=width))
    lower, upper = -np.abs(stream.normal(size=(8, width))), np.abs(stream.normal(size=(8, width)))
    eye = np.eye(width)
    return points, weights, np.vstack([normals, eye, -eye]), np.hstack([offsets, upper, -lower])


# In the first five, steps went round in a circle of gaps between .1 and .4; costs were up to 2.8 too high.
@pytest.mark.parametrize("seed", [759, 2890, 2468, 3661, 3070, *range(18)])
def test_a_box_with_more_faces_costs_no_more_than_it_must(seed):
    points, weights, normals, offsets = random_box(seed)
    found = project(*(torch.from_numpy(each) for each in (points, weights, normals, offsets)))
    costs = (torch.from_numpy(weights) * (found.points - torch.from_numpy(points)).square()).sum(-1)
    for index, point in enumerate(points):
        expected = least_cost(point, weights, normals, offsets[index])
        assert bool(found.feasible[index]) == (expected is not None)
        if expected is not None:
            assert abs(float(costs[index]) - expected) <= 1e-9 * (1 + expected)


@pytest.mark.parametrize("seed", range(15))
def test_between_parallel_faces_in_a_box_no_point_is_nearer(seed):
    stream = np.random.default_rng(seed)
    width, count = 1 + seed % 5, 20
    normal = stream.normal(size=width) * np.exp(stream.normal(size=width))
    if width > 1 and seed % 3 == 0:
        normal[0] = 0.0
    normals = np.outer([(1.0, -2.5), (-1.0, 3.0), (0.5, 2.0)][seed % 3][: 1 + seed % 2], normal)
    points, weights = 3 * stream.normal(size=(count, width)), np.exp(stream.normal(size=width))
    lower, upper = -np.abs(stream.normal(size=(count, width))), np.abs(stream.normal(size=(count, width)))
    offsets = (stream.normal(size=(count, len(normals))) + 0.5) * np.linalg.norm(normals, axis=1)
    given = [torch.from_numpy(each) for each in (points, weights, normals, offsets, lower, upper)]
    points, weights, normals, offsets, *box = given
    found = project(points, weights, normals, offsets, box=(box[0], box[1]))
    eye = torch.eye(width).double()
    rows, ends = torch.cat([normals, eye, -eye]), torch.cat([offsets, box[1], -box[0]], -1)
    expected = project(points, weights, rows, ends)
    assert torch.equal(found.feasible, expected.feasible)
    some = found.feasible
    mine, others = ((weights * (each.points - points).square()).sum(-1)[some] for each in (found, expected))
    assert (mine <= others + 1e-9).all()
    # A point is the nearest one if and only if no feasible one lies ahead of it.
    ahead = weights * (points - found.points)
    for index in some.nonzero()[:3, 0].tolist():
        best = linprog(
            -ahead[index].numpy(), rows.numpy(), ends[index].numpy(), bounds=[(None, None)] * width
        )
        assert -best.fun <= float(ahead[index] @ found.points[index]) + 1e-8
    assert ((rows @ found.points[some].mT).mT <= ends[some] + 1e-9).all()
    # Where nothing lies between the faces, the point of the box that is nearest to them.
    inside = torch.minimum(torch.maximum(found.points, box[0]), box[1])
    torch.testing.assert_close(found.points, inside, rtol=0, atol=1e-12)


def test_a_point_between_parallel_faces_lands_on_the_nearer_one():
    one, two = torch.ones(2).double(), torch.ones(3, 2).double()
    points = torch.tensor([[0.0, 0.0], [3.0, 3.0], [0.2, 0.9]]).double()
    normals, offsets = torch.tensor([[1.0, 1.0], [-1.0, -1.0]]).double(), torch.tensor([[1.5, -1.0]]).double()
    found = project(points, one, normals, offsets.expand(3, -1), box=(0 * two, two))
    expected = torch.tensor([[0.5, 0.5], [0.75, 0.75], [0.2, 0.9]]).double()
    torch.testing.assert_close(found.points, expected, rtol=0, atol=1e-15)
    assert found.feasible.all()


def test_a_point_that_qualifies_stays():
    found = project(
        torch.tensor([[0.5, 0.5]]).double(),
        torch.ones(2).double(),
        torch.eye(2).double(),
        torch.ones(1, 2).double(),
    )
    assert found.points.tolist() == [[0.5, 0.5]]
    assert found.feasible.tolist() == [True]


def test_contradictions_are_infeasible_whatever_their_size():
    normals = torch.tensor([[1.0], [-1.0]]).double()
    offsets = torch.tensor([[0.0, -1e-3], [0.0, -1e3], [1.0, -0.5]]).double()
    found = project(torch.zeros(3, 1).double() + 2, torch.ones(1).double(), normals, offsets)
    assert found.feasible.tolist() == [False, False, True]


def rows(*values):
    return torch.tensor(values, dtype=torch.float64)


ONE = rows(1.0, 1.0)


def test_a_normal_of_zero_constrains_nothing_or_everything():
    normals = rows([10.0, 0.0], [0.0, 0.0])
    found = project(rows([3.0, 4.0], [3.0, 4.0]), ONE, normals, rows([10.0, 1.0], [10.0, -1.0]))
    torch.testing.assert_close(found.points[0], rows(1.0, 4.0))
    assert found.feasible.tolist() == [True, False]


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_normal_of_zero_beside_a_face_in_a_box_is_no_face(side):
    # The box alone moves the first coordinate, and the face is far away.
    ends = rows([5.0 * side, 6.0 * side]).sort().values[0]
    lower, upper = rows([ends[0], -10.0]), rows([ends[1], 10.0])
    found = project(
        rows([0.0, 0.0]), ONE, rows([1.0, 1.0], [0.0, 0.0]), rows([100.0, 1.0]), box=(lower, upper)
    )
    assert found.points.tolist() == [[5.0 * side, 0.0]]
    assert found.feasible.tolist() == [True]


def test_without_faces_every_point_stays():
    points, none, offsets = (
        rows([3.0, -4.0], [0.5, 0.5]),
        torch.zeros(0, 2).double(),
        torch.zeros(2, 0).double(),
    )
    found = project(points, ONE, none, offsets)
    assert torch.equal(found.points, points)
    assert found.feasible.tolist() == [True, True]


def test_points_on_faces_stay_to_the_last_bit():
    normals, offsets = rows([-1.0, 0.0], [0.0, -1.0], [1.0, 2.0]), rows([0.0, 0.0, 0.25])
    points = rows([0.0, 0.0], [0.25, 0.0], [0.0, 0.125])
    found = project(points, ONE, normals, offsets.expand(3, -1))
    assert torch.equal(found.points, points)
    assert found.feasible.all()
    corner = project(points[:1], ONE, normals, torch.zeros(1, 3).double())
    assert torch.equal(corner.points, points[:1])
    assert corner.feasible.all(), "where every distance is zero"


def test_a_box_beside_faces_that_are_not_parallel_is_as_many_faces_more():
    points = 3 * torch.randn(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    normals, offsets = rows([1.0, 2.0], [-3.0, 1.0]), rows([1.0, 2.0]).expand(40, -1)
    lower, upper = -torch.ones(40, 2).double(), torch.ones(40, 2).double() / 2
    found = project(points, rows(1.0, 4.0), normals, offsets, box=(lower, upper))
    eye = torch.eye(2).double()
    every = torch.cat([normals, eye, -eye]), torch.cat([offsets, upper, -lower], -1)
    wanted = project(points, rows(1.0, 4.0), *every)
    torch.testing.assert_close(found.points, wanted.points, rtol=0, atol=1e-9)
    assert found.feasible.all()
    assert bool((found.points @ normals.mT <= offsets + 1e-9).all())


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_the_unit_of_points_and_offsets_does_not_matter(unit):
    # The corner of x + y <= 1 and x <= 0, the face x + 3 y <= 1, and a point inside.
    points = rows([3.0, 4.0], [0.5, 2.0], [-1.0, 0.2])
    normals, offsets = rows([1.0, 3.0], [1.0, 0.0]), rows([1.0, 0.0]).expand(3, -1)
    found = project(unit * points, rows(2.0, 0.5), normals, unit * offsets)
    wanted = rows([0.0, 1 / 3], [0.0, 1 / 3], [-1.0, 0.2])
    torch.testing.assert_close(found.points / unit, wanted, rtol=0, atol=1e-7)
    assert found.feasible.all()


def test_too_few_steps_are_told():
    arguments = rows([3.0, 4.0]), ONE, rows([1.0, 3.0], [2.0, -1.0]), rows([1.0, -1.0])
    assert not project(*arguments, steps=1).feasible
    found = project(*arguments)
    assert found.feasible
    assert not project(*arguments, tolerance=-1.0).feasible, "no constraint has so much room"


def test_a_normal_of_zero_up_to_rounding_is_one_of_zero():
    found = project(rows([3.0, 5.0]), ONE, rows([1e6, 0.0], [0.0, 1e-9]), rows([1e6, 1e-9]))
    torch.testing.assert_close(found.points, rows([1.0, 5.0]))
    assert found.feasible.tolist() == [True]
