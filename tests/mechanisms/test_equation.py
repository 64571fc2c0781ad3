import torch

from rehearsal_torch.mechanisms.trajectory import EquationTrajectory


def trajectory(constants: torch.Tensor | None = None) -> EquationTrajectory:
    states = torch.zeros(3, 2, dtype=torch.float64)
    return EquationTrajectory(
        states, torch.zeros(3, dtype=torch.long), 4, lambda s, t, a: s * (t + 1) + a[:, None].to(s), constants
    )


def test_steps_and_branches_are_the_equation():
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    assert trajectory().step(rows, 1, torch.tensor([0, 3])).tolist() == [[2, 4], [9, 11]]
    assert trajectory().step(rows, 0, torch.tensor(2)).tolist() == [[3, 4], [5, 6]]
    every = trajectory().branch(rows, 1)
    assert every.shape == (2, 4, 2)
    for action in range(4):
        assert torch.equal(every[:, action], trajectory().step(rows, 1, torch.tensor(action)))
    assert torch.equal(trajectory().branch(rows, 1, torch.tensor([3, 1])), every[:, [3, 1]])


def test_constants_are_what_is_known():
    assert trajectory().lipschitz() is None
    known = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert trajectory(known).lipschitz() is known
