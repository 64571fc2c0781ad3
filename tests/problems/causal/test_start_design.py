"""The start design: the same points in every session, as far as it takes."""

import pytest
import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.problems.causal.start_design import open_points, start_point

PLAIN = {"graph": {"parents": {"Y": ["a", "b"]}}, "actions": {"a": [10, 20], "b": [-1, 1]}, "reward": "Y"}
LIMITED = {**PLAIN, "limits": {"normals": [[1.0, 5.0]], "offsets": [12.0]}}


@pytest.mark.parametrize("plain", [PLAIN, LIMITED])
def test_points_go_on_beyond_what_was_planned(plain):
    task = CausalTask.of(plain)
    points = torch.stack([start_point(task, number, 6, 3) for number in range(20)])
    assert len(points.unique(dim=0)) == 20
    for point in points:
        task.check_action(point)
    assert torch.equal(points[:6], torch.stack([start_point(task, number, 20, 3) for number in range(6)]))


def test_points_that_were_run_are_left_out():
    task = CausalTask.of(PLAIN)
    whole = open_points(task, torch.zeros(0, 2), 6, 0)
    assert len(whole) == 6
    assert torch.equal(open_points(task, whole[[4, 0]] + 0.004, 6, 0), whole[[1, 2, 3, 5]])
    assert len(open_points(task, torch.tensor([[10.0, -1.0]] * 4), 6, 0)) == 2
    assert len(open_points(task, torch.tensor([[10.0, -1.0]] * 9), 6, 0)) == 0


MIXED = {**PLAIN, "actions": {"a": {"values": [10, 12, 20]}, "b": [-1, 1]}}


def test_levels_come_equally_often():
    task = CausalTask.of(MIXED)
    points = torch.stack([start_point(task, number, 6, 3) for number in range(16)])
    counts = [int((points[:, 0] == value).sum()) for value in (10, 12, 20)]
    assert sorted(counts) == [5, 5, 6]
    assert len(points[:, 1].unique()) == 16
    for point in points:
        task.check_action(point)


def test_a_start_design_with_levels_keeps_the_limits():
    task = CausalTask.of({**MIXED, "limits": {"normals": [[1.0, 5.0]], "offsets": [12.0]}})
    for number in range(12):
        task.check_action(start_point(task, number, 6, 3))


def test_what_is_held_is_the_same_in_every_point():
    task = CausalTask.of(MIXED)
    points = torch.stack([start_point(task, number, 6, 3, task.held({"b": 0.7})) for number in range(6)])
    assert points[:, 1].tolist() == [0.7] * 6
    assert set(points[:, 0].tolist()) == {10.0, 12.0, 20.0}


def test_a_point_with_another_level_was_not_run():
    task = CausalTask.of({**PLAIN, "actions": {"a": {"values": [0, 1, 1000]}, "b": [-1, 1]}})
    whole = open_points(task, torch.zeros(0, 2), 8, 0)
    low = whole[:, 0] == 0
    # A run at a = 1 is within a hundredth of the range of a = 0, but at another level.
    done = whole[low][:1].clone()
    done[0, 0] = 1.0
    assert len(open_points(task, done, 8, 0)) == 7
    assert bool((open_points(task, done, 8, 0) == whole[low][0]).all(-1).any())
