"""Projections at the edges: normals of zero, no faces, points on faces, boxes, and units of any size."""

import pytest
import torch

from rehearsal_torch.spaces.projection import project


def rows(*values):
    return torch.tensor(values, dtype=torch.float64)


ONE = rows(1.0, 1.0)


def test_a_normal_of_zero_constrains_nothing_or_everything():
    normals = rows([10.0, 0.0], [0.0, 0.0])
    found = project(rows([3.0, 4.0], [3.0, 4.0]), ONE, normals, rows([10.0, 1.0], [10.0, -1.0]))
    torch.testing.assert_close(found.points[0], rows(1.0, 4.0))
    assert found.feasible.tolist() == [True, False]


def test_a_normal_of_zero_up_to_rounding_is_one_of_zero():
    found = project(rows([3.0, 5.0]), ONE, rows([1e6, 0.0], [0.0, 1e-9]), rows([1e6, 1e-9]))
    torch.testing.assert_close(found.points, rows([1.0, 5.0]))
    assert found.feasible.tolist() == [True]


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


def test_without_faces_a_box_clips():
    points = rows([3.0, -4.0], [0.5, 0.5])
    box = (torch.zeros(2, 2).double(), torch.ones(2, 2).double())
    found = project(points, ONE, torch.zeros(0, 2).double(), torch.zeros(2, 0).double(), box=box)
    torch.testing.assert_close(found.points, points.clamp(0, 1), rtol=0, atol=1e-9)
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


def test_weights_may_differ_from_point_to_point():
    # Nearest points of x + y <= 0 to (1, 1): the cheaper coordinate moves more, in the ratio of the weights.
    found = project(
        rows([1.0, 1.0], [1.0, 1.0]), rows([1.0, 1.0], [3.0, 1.0]), rows([1.0, 1.0]), rows([0.0], [0.0])
    )
    torch.testing.assert_close(found.points, rows([0.0, 0.0], [0.5, -0.5]), rtol=0, atol=1e-9)


def test_faces_may_differ_from_point_to_point():
    normals = rows([[1.0, 0.0]], [[0.0, 2.0]])
    found = project(rows([3.0, 3.0], [3.0, 3.0]), ONE, normals, rows([1.0], [1.0]))
    torch.testing.assert_close(found.points, rows([1.0, 3.0], [3.0, 0.5]), rtol=0, atol=1e-9)


def test_too_few_steps_are_told():
    arguments = rows([3.0, 4.0]), ONE, rows([1.0, 3.0], [2.0, -1.0]), rows([1.0, -1.0])
    assert not project(*arguments, steps=1).feasible
    found = project(*arguments)
    assert found.feasible
    assert not project(*arguments, tolerance=-1.0).feasible, "no constraint has so much room"
