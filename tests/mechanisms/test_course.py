import torch

from rehearsal_torch.mechanisms.trajectory import EquationTrajectory, replay


def test_replay_steps_every_sequence_through_the_course():
    """s' = 2 s + a, from 1: by hand."""
    states = torch.tensor([[1.0], [2.0], [5.0]], dtype=torch.float64)
    trajectory = EquationTrajectory(
        states, torch.tensor([0, 1, 0]), 3, lambda s, t, a: 2 * s + a[:, None].to(s)
    )
    assert trajectory.horizon == 3
    found = replay(trajectory, torch.tensor([[0, 1], [2, 0], [1, 2]]))
    assert found[..., 0].tolist() == [[1, 2, 5], [1, 4, 8], [1, 3, 8]]
    assert torch.equal(replay(trajectory, torch.tensor([[0, 1, 2]]))[0], states)
    assert replay(trajectory, torch.zeros(0, 2, dtype=torch.long)).shape == (0, 3, 1)
