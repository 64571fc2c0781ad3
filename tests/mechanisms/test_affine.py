import torch

from rehearsal_torch.mechanisms.affine import AffineMechanism

DOUBLE = torch.float64


def mechanism():
    covariance = torch.tensor([[2.0, 0.6], [0.6, 0.5]], dtype=DOUBLE)
    weights = torch.tensor([[1.0, -1.0], [0.5, 2.0], [0.0, 3.0]], dtype=DOUBLE)
    return AffineMechanism(weights, torch.tensor([1.0, -2.0], dtype=DOUBLE), covariance)


def test_values_are_intercept_weights_and_noise():
    parents, noise = torch.tensor([1.0, 2.0, -1.0], dtype=DOUBLE), torch.tensor([0.25, -0.5], dtype=DOUBLE)
    assert mechanism().forward(parents, noise).tolist() == [3.25, -2.5]
    assert mechanism().abduct(parents, torch.tensor([3.25, -2.5], dtype=DOUBLE)).tolist() == [0.25, -0.5]


def test_noise_has_the_covariance():
    torch.manual_seed(0)
    assert torch.allclose(mechanism().noise((40000,)).T.cov(), mechanism().covariance, atol=0.05)


def test_without_parents_the_mean_is_the_intercept():
    made = AffineMechanism(torch.zeros(0, 2, dtype=DOUBLE), mechanism().intercept, mechanism().covariance)
    assert made.mean(torch.zeros(4, 0, dtype=DOUBLE)).tolist() == [[1.0, -2.0]] * 4
