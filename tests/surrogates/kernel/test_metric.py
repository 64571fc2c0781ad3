"""Ridge regression under a metric, against a kernel ridge regression that is written down."""

import pytest
import torch

from rehearsal_torch.surrogates.kernel.metric import MetricRidge, evenly


def data(count=120, seed=0):
    stream = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 2, generator=stream, dtype=torch.float64)
    noise = torch.randn(count, 2, generator=stream, dtype=torch.float64)
    return inputs, torch.stack([torch.sin(2 * inputs[:, 0]), inputs[:, 1]], -1) + 3 + 0.1 * noise


def made(inputs, outputs, telling=None, **settings):
    found = MetricRidge(**settings)
    found.solve(inputs, outputs, outputs if telling is None else telling)
    return found


def naive(found, inputs, outputs, at):
    """m and the unknown share, kernel value by kernel value."""

    def kernel(one, other):
        return (-((one - other) @ found.directions.mT).square().sum() / 2).exp()

    matrix = torch.stack(
        [torch.stack([kernel(one, other) for other in inputs]) for one in inputs]
    ) + found.ratio * torch.eye(len(inputs))
    near = torch.stack([torch.stack([kernel(one, other) for other in inputs]) for one in at])
    mean = outputs.mean(0)
    return mean + near @ torch.linalg.inv(matrix) @ (outputs - mean), 1 - (
        near @ torch.linalg.inv(matrix) * near
    ).sum(-1)


def test_it_is_kernel_ridge_regression():
    inputs, outputs = data(40)
    found, (at, _) = made(inputs, outputs), data(6, seed=1)
    values, left = naive(found, inputs, outputs, at)
    assert torch.allclose(found(at), values, atol=1e-8)
    assert torch.allclose(found.left(at), left, atol=1e-8)
    assert torch.allclose(found(at.reshape(2, 3, 2)).reshape(6, 2), found(at))
    assert torch.allclose(found.left(at.reshape(2, 3, 2)).reshape(6), found.left(at))


def test_it_learns():
    inputs, outputs = data(300)
    found, (at, wanted) = made(inputs, outputs), data(200, seed=1)
    assert float((found(at) - wanted).square().mean()) < 0.1 * float(wanted.var())


def test_what_is_left_unknown_is_a_share_one_far_from_the_rows():
    inputs, outputs = data()
    found = made(inputs, outputs)
    near, far = found.left(inputs), found.left(inputs + 1e3)
    assert (near >= 0).all()
    assert (near < 0.7).all()
    assert torch.equal(far, torch.ones_like(far))
    assert torch.allclose(found(inputs + 1e3), outputs.mean(0)), "the mean, where nothing is known"


def test_the_amplitude_is_that_of_largest_evidence():
    inputs, outputs = data(50)
    found = made(inputs, outputs)
    mixture = torch.tensor([[1.0, 0.0], [0.5, -2.0]], dtype=torch.float64)
    matrix = torch.eye(50) * found.ratio + found.similar(inputs)
    for weights, amplitude in zip(mixture, found.amplitude(mixture), strict=True):
        values = (outputs - outputs.mean(0)) @ weights
        assert float(amplitude) == pytest.approx(
            float(values @ torch.linalg.solve(matrix, values) / 50), rel=1e-8
        )


def test_no_inputs_or_nothing_to_tell_gives_the_mean():
    inputs, outputs = data()
    for found, at in (
        (made(inputs[:, :0], outputs), inputs[:3, :0]),
        (made(inputs, outputs, torch.ones_like(outputs)), inputs[:3]),
    ):
        assert torch.allclose(found(at), outputs.mean(0).expand(3, -1), atol=1e-6)
        assert ((found.left(at) >= 0) & (found.left(at) <= 1)).all()


def test_at_most_so_many_rows_are_kept():
    inputs, outputs = data(100)
    found = made(inputs, outputs, rows=40, chosen_by=30)
    assert len(found.shown) == 40
    assert evenly(100, 40, torch.device("cpu")).tolist()[::39] == [0, 99]
    assert len(evenly(100, 40, torch.device("cpu")).unique()) == 40
    assert evenly(5, 40, torch.device("cpu")).tolist() == [0, 1, 2, 3, 4]


def test_what_is_saved_comes_back():
    inputs, outputs = data()
    one, other = made(inputs, outputs), MetricRidge()
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(inputs), other(inputs))
    assert torch.equal(one.left(inputs), other.left(inputs))
