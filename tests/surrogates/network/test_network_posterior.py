import pytest
import torch
from botorch.sampling.get_sampler import get_sampler
from botorch.sampling.normal import IIDNormalSampler, SobolQMCNormalSampler

from rehearsal_torch.surrogates.network import network_posterior
from rehearsal_torch.surrogates.network.network_model import NetworkModel
from rehearsal_torch.surrogates.network.network_posterior import MemberSampler, plausible_values
from tests.toys.causal_toys import linear_chain
from tests.toys.fitted_pair import DOUBLE, fitted_pair

AT = torch.tensor([[[0.5, 0.5], [1.0, 0.0]], [[0.2, 0.8], [0.5, 0.5]]], dtype=DOUBLE)
BOTH = ("X", "Y")


def law():
    """Mean and variance of E[X] and E[Y] at `AT`."""
    a, b = AT.unbind(-1)
    means = torch.stack([2 * a, 3 * a - b], -1)
    own = (0.3 * (1 + a)).square()
    return means, torch.stack([own, 2.25 * own + (0.2 * (1 + b)).square()], -1)


@pytest.mark.parametrize("kind", [SobolQMCNormalSampler, IIDNormalSampler, None])
def test_samples_and_members_have_the_mean_and_variance_of_the_network(kind):
    posterior = NetworkModel(linear_chain(), BOTH, members=2048, draws=64).posterior(AT)
    means, variances = law()
    shape, tolerance = torch.Size([4096]), 0.08 if kind is IIDNormalSampler else 0.03
    samples = (get_sampler(posterior, shape) if kind is None else kind(shape, seed=0))(posterior)
    assert samples.shape == (4096, 2, 2, 2)
    for mean, variance in ((posterior.mean, posterior.variance), (samples.mean(0), samples.var(0))):
        torch.testing.assert_close(mean, means, rtol=0, atol=tolerance)
        torch.testing.assert_close(variance, variances, rtol=2 * tolerance, atol=0)


@pytest.mark.parametrize("kind", [SobolQMCNormalSampler, None])
def test_all_points_are_compared_within_one_network(kind):
    posterior = NetworkModel(linear_chain()).posterior(AT)
    shape = torch.Size([32])
    samples = (get_sampler(posterior, shape) if kind is None else kind(shape, seed=0))(posterior)
    # The same action in two t-batches, at two places.
    assert torch.equal(samples[:, 0, 0], samples[:, 1, 1])
    assert not torch.equal(samples[0, 0, 0], samples[1, 0, 0])


def test_more_samples_than_members_repeat_them_and_fewer_take_the_first():
    posterior = NetworkModel(linear_chain(), members=4).posterior(AT)
    values = posterior.values
    for count, expected in ((2, [0, 1]), (8, [0, 0, 1, 1, 2, 2, 3, 3])):
        sampler = MemberSampler(torch.Size([count]))
        assert torch.equal(sampler(posterior), values[expected])
        sampler._update_base_samples(posterior, sampler)
        assert torch.equal(sampler(posterior), values[expected])


def test_samples_have_any_shape_and_other_base_samples_are_refused():
    posterior = NetworkModel(linear_chain()).posterior(AT)
    torch.manual_seed(0)
    assert posterior.rsample().shape == (1, 2, 2, 1)
    assert posterior.rsample(torch.Size([3, 2])).shape == (3, 2, 2, 2, 1)
    assert posterior.rsample(torch.Size([])).shape == (2, 2, 1)
    assert posterior.dtype is torch.float64
    with pytest.raises(ValueError, match=r"base samples of shape \(3, 2, 2\); got \(3, 2\)"):
        posterior.rsample_from_base_samples(torch.Size([3]), torch.zeros(3, 2, dtype=DOUBLE))


def test_no_points_have_an_empty_posterior():
    model = NetworkModel(linear_chain(), BOTH)
    for shape in ((0, 2), (0, 1, 2), (3, 0, 2)):
        posterior = model.posterior(AT.new_zeros(shape))
        expected = (*shape[:-1], 2)
        assert posterior.mean.shape == expected
        assert posterior.rsample(torch.Size([4])).shape == (4, *expected)


def test_large_samples_are_computed_in_parts_with_equal_results(monkeypatch):
    model = NetworkModel(linear_chain())
    epistemic = model.epistemic
    given = (model.network, AT, model.noise, epistemic, model.network.reward)

    def run():
        return plausible_values(*given[:4], lambda values: given[4](values).unsqueeze(-1))

    whole = run()
    monkeypatch.setattr(network_posterior, "CHUNK", 1)
    with torch.no_grad():
        assert torch.allclose(run(), whole)
    assert whole.shape == (64, 2, 2, 1)


def test_an_experiment_has_the_noise_of_its_nodes():
    model = NetworkModel(linear_chain(), BOTH, members=256, draws=16)
    posterior = model.posterior(AT, observation_noise=True)
    means, variances = law()
    noisy = variances + torch.tensor([0.01, 0.01 + 2.25 * 0.01], dtype=DOUBLE)
    samples = get_sampler(posterior, torch.Size([4096]), seed=0)(posterior)
    for mean, variance in ((posterior.mean, posterior.variance), (samples.mean(0), samples.var(0))):
        torch.testing.assert_close(mean, means, rtol=0, atol=0.03)
        torch.testing.assert_close(variance, noisy, rtol=0.06, atol=0)
    with pytest.raises(ValueError, match=r"expected normal base samples .*; got torch.int64"):
        MemberSampler(torch.Size([4]))(posterior)


def test_experiments_are_drawn_jointly_from_a_fitted_process():
    surrogate = fitted_pair()
    model = NetworkModel(surrogate, ("X",), members=2, draws=1)
    near, far = torch.tensor([[0.30, 0.0], [0.31, 0.0]]), torch.tensor([[0.0, 0.0], [2.0, 0.0]])
    law = surrogate.network().mechanisms[0]
    noise = float(law.noise.level.sqrt() * law.scale)
    for points, low, high in ((near, 0.99, 1.0), (far, -0.2, 0.2)):
        posterior = model.posterior(points, observation_noise=True)
        samples = SobolQMCNormalSampler(torch.Size([8192]), seed=0)(posterior)[..., 0]
        std = law.belief(law.scaled(points[:, :1].double()), torch.zeros(2, 1, dtype=DOUBLE))[1].squeeze(-1)
        correlation = samples.T.cov()[0, 1] / std.prod()
        assert (
            low - 0.15 * (1 + noise / float(std.min()))
            < correlation
            < high + 0.15 * (1 + noise / float(std.min()))
        )
