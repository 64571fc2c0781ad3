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
