import torch

from rehearsal_torch.mechanisms.trajectory import EquationCourse


def course(constants: torch.Tensor | None = None) -> EquationCourse:
    states = torch.zeros(3, 2, dtype=torch.float64)
    return EquationCourse(
        states, torch.zeros(3, dtype=torch.long), 4, lambda s, t, a: s * (t + 1) + a[:, None].to(s), constants
    )


def test_steps_and_branches_are_the_equation():
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    assert course().step(rows, 1, torch.tensor([0, 3])).tolist() == [[2, 4], [9, 11]]
    assert course().step(rows, 0, torch.tensor(2)).tolist() == [[3, 4], [5, 6]]
    every = course().branch(rows, 1)
    assert every.shape == (2, 4, 2)
    for action in range(4):
        assert torch.equal(every[:, action], course().step(rows, 1, torch.tensor(action)))
    assert torch.equal(course().branch(rows, 1, torch.tensor([3, 1])), every[:, [3, 1]])


def test_constants_are_what_is_known():
    assert course().lipschitz() is None
    known = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert course(known).lipschitz() is known
