"""The stand-in for a second device: it computes what the CPU does and refuses what CUDA refuses."""

import pytest
import torch
from torch import Tensor

from tests.toys.second_device import DEVICE, Elsewhere, second_device


@pytest.fixture
def square():
    """A positive definite matrix on the CPU."""
    rows = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return rows.T @ rows


@pytest.fixture(autouse=True)
def device():
    with second_device() as found:
        yield found


def back(value: Tensor) -> Tensor:
    assert isinstance(value, Elsewhere)
    assert value.device == DEVICE
    return value.cpu()


def test_it_computes_what_the_cpu_does(square: Tensor, device: torch.device):
    there = square.to(device)
    assert torch.equal(back(there @ there), square @ square)
    assert torch.equal(back(torch.linalg.cholesky(there)), torch.linalg.cholesky(square))
    assert torch.equal(
        back(torch.quantile(there, there.new_tensor([0.1, 0.9]), 0))[1], square.quantile(0.9, 0)
    )
    assert torch.equal(back(torch.where(there > 0, there, 0.0)), square.clamp_min(0))
    values, places = there.sort(-1)
    assert torch.equal(back(values), square.sort(-1).values)
    assert torch.equal(back(places), square.sort(-1).indices)


def test_it_is_where_tensors_are_made(device: torch.device):
    assert back(torch.tensor([1.0, 2.0], device=device)).tolist() == [1, 2]
    assert back(torch.arange(3, device=device)).tolist() == [0, 1, 2]
    assert back(torch.ones(2, device=device).new_zeros(3)).tolist() == [0, 0, 0]
    assert back(torch.ones(2, device=device).to(torch.float64)).dtype == torch.float64
    assert torch.ones(2).device == torch.device("cpu")
    assert back(torch.zeros(2).to(torch.ones(2, device=device))).tolist() == [0, 0]


def test_gradients_flow_through_it(square: Tensor, device: torch.device):
    here = square.clone().requires_grad_()
    torch.linalg.cholesky(here).sum().backward()
    there = square.to(device).requires_grad_()
    torch.linalg.cholesky(there).sum().backward()
    assert there.grad is not None
    assert here.grad is not None
    assert torch.equal(back(there.grad), here.grad)
    moved = square.clone().requires_grad_()
    (found,) = torch.autograd.grad(moved.to(device).square().sum(), moved)
    assert torch.equal(found, 2 * square)


def test_it_is_changed_in_place(device: torch.device):
    there = torch.zeros(2, 3, device=device)
    row = there[1]
    row += 2
    row[0].fill_(5)
    there[0, [1, 2]] = torch.tensor([3.0, 4.0], device=device)
    there[0, 0] = torch.tensor(7.0)
    assert back(there).tolist() == [[7, 3, 4], [5, 2, 2]]
    here = torch.zeros(3)
    here.copy_(there[1])
    assert here.tolist() == [5, 2, 2]


def test_it_is_indexed_by_lists_and_by_tensors_of_either_device(device: torch.device):
    there = torch.arange(12, device=device).reshape(3, 4)
    assert back(there[[2, 0]])[:, 0].tolist() == [8, 0]
    assert back(there[:, [1]]).tolist() == [[1], [5], [9]]
    assert back(there[torch.tensor([1])]).tolist() == [[4, 5, 6, 7]]
    assert back(there[torch.tensor([1], device=device)]).tolist() == [[4, 5, 6, 7]]
    assert back(there[there > 9]).tolist() == [10, 11]
    assert back(there[[]]).shape == (0, 4)


def test_numbers_are_read(device: torch.device):
    there = torch.tensor([[2.5, 0.0]], device=device, requires_grad=True)
    assert there.tolist() == [[2.5, 0]]
    assert float(there[0, 0]) == there[0, 0].item() == 2.5
    assert int(there[0, 0]) == 2
    assert bool(there[0, 0])
    assert not bool(there.sum() < 0)
    assert list(range(4))[torch.tensor(3, device=device)] == 3


@pytest.mark.parametrize(
    "mixed",
    [
        lambda here, there: here + there,
        lambda here, there: there @ here,
        lambda here, there: torch.minimum(there, here),
        lambda here, there: torch.cat([there, here]),
        lambda here, there: torch.stack([there[0, 0], here[0, 0]]),
        lambda here, there: here[there[0].long()],
        lambda here, there: here * there[0, 0],
        lambda here, there: there.index_select(0, here[0].long()),
        lambda here, there: there.__setitem__([0], here[0]),
        lambda here, there: here.add_(there),
        lambda here, there: here[0, 0].add_(there[0, 0]),
    ],
)
def test_tensors_of_both_devices_do_not_meet(mixed, device: torch.device):
    with pytest.raises(RuntimeError, match="same device"):
        mixed(torch.zeros(2, 2), torch.ones(2, 2, device=device))


def test_numbers_of_the_cpu_may_enter(device: torch.device):
    there = torch.ones(2, device=device)
    assert back(there * torch.tensor(3.0)).tolist() == [3, 3]
    assert back(torch.minimum(torch.tensor(0.5), there)).tolist() == [0.5, 0.5]


def test_a_generator_of_the_cpu_draws_nothing_there(device: torch.device):
    stream = torch.Generator().manual_seed(0)
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(2, device=device, generator=stream)
    assert back(torch.rand(2, generator=stream).to(device)).shape == (2,)


def test_draws_there_come_from_another_stream(device: torch.device):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        expected = torch.randn(4)
        torch.manual_seed(0)
        there = back(torch.randn(4, device=device))
        filled = back(torch.zeros(4, device=device).normal_())
        assert not torch.equal(there, expected)
        assert not torch.equal(filled, there)
        assert torch.equal(torch.randn(4), expected)


def test_arrays_are_made_on_the_cpu_only(device: torch.device):
    there = torch.ones(2, device=device)
    with pytest.raises(TypeError, match="cpu"):
        there.numpy()
    assert there.cpu().numpy().tolist() == [1, 1]


def test_modules_move(device: torch.device):
    layer = torch.nn.Linear(3, 2)
    rows = torch.ones(4, 3)
    wanted = layer(rows)
    layer.to(device)
    assert torch.equal(back(layer(rows.to(device)).detach()), wanted.detach())
    with pytest.raises(RuntimeError, match="same device"):
        layer(rows)
    layer.double()
    assert torch.equal(
        back(layer(rows.double().to(device)).detach()), layer.to("cpu")(rows.double()).detach()
    )
    layer.float()
    assert torch.equal(layer(rows), wanted)


def test_eigenvectors_have_other_signs_and_nan_is_no_error(square: Tensor, device: torch.device):
    values, vectors = torch.linalg.eigh(square.to(device))
    here, axes = torch.linalg.eigh(square)
    assert torch.equal(back(values), here)
    assert torch.equal(back(vectors).abs(), axes.abs())
    assert not torch.equal(back(vectors), axes)
    root, failed = torch.linalg.cholesky_ex(torch.full_like(square, torch.nan).to(device))
    assert bool(back(root).isnan().all())
    assert int(back(failed)) == 0
