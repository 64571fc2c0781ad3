import pytest
import torch
from botorch.sampling.get_sampler import get_sampler
from botorch.sampling.normal import IIDNormalSampler, SobolQMCNormalSampler

from rehearsal_torch.surrogates.network.botorch_model import NetworkModel
from rehearsal_torch.surrogates.network.botorch_posterior import MemberSampler, in_pairs
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


def test_no_points_have_an_empty_posterior():
    model = NetworkModel(linear_chain(), BOTH)
    for shape in ((0, 2), (0, 1, 2), (3, 0, 2)):
        posterior = model.posterior(AT.new_zeros(shape))
        expected = (*shape[:-1], 2)
        assert posterior.mean.shape == expected
        assert posterior.rsample(torch.Size([4])).shape == (4, *expected)


def test_an_experiment_has_the_noise_of_its_nodes():
    model = NetworkModel(linear_chain(), BOTH, members=2048, draws=16)
    posterior = model.posterior(AT, observation_noise=True)
    means, variances = law()
    noisy = variances + torch.tensor([0.01, 0.01 + 2.25 * 0.01], dtype=DOUBLE)
    samples = get_sampler(posterior, torch.Size([4096]), seed=0)(posterior)
    for mean, variance in ((posterior.mean, posterior.variance), (samples.mean(0), samples.var(0))):
        torch.testing.assert_close(mean, means, rtol=0, atol=0.03)
        torch.testing.assert_close(variance, noisy, rtol=0.06, atol=0)
    with pytest.raises(ValueError, match=r"expected normal base samples .* of torch.int64"):
        MemberSampler(torch.Size([4]))(posterior)


def test_members_are_stored_mirror_images_last_and_sampled_in_pairs():
    assert in_pairs(torch.arange(6)).tolist() == [0, 3, 1, 4, 2, 5]
    model = NetworkModel(linear_chain(), members=6)
    values = model.posterior(AT).values
    # Of a linear network the mean over a pair is the posterior mean.
    pairs = values.unflatten(0, (3, 2)).mean(1)
    torch.testing.assert_close(pairs[0], pairs[2])
    raw = model.network.reward(model.network.propagate(AT, model.noise)).mean(-1).unsqueeze(-1)
    torch.testing.assert_close(values, in_pairs(raw))


def test_more_samples_than_members_repeat_them_and_fewer_take_the_first():
    posterior = NetworkModel(linear_chain(), members=4).posterior(AT)
    for count, expected in ((2, [0, 1]), (8, [0, 1, 2, 3] * 2)):
        sampler = MemberSampler(torch.Size([count]))
        assert torch.equal(sampler(posterior), posterior.values[expected])
        sampler._update_base_samples(posterior, sampler)
        assert torch.equal(sampler(posterior), posterior.values[expected])


def test_samples_have_any_shape_and_those_in_a_random_order_are_all_members():
    posterior = NetworkModel(linear_chain(), members=4).posterior(AT)
    torch.manual_seed(0)
    assert posterior.rsample().shape == (1, 2, 2, 1)
    assert posterior.rsample(torch.Size([3, 2])).shape == (3, 2, 2, 2, 1)
    assert posterior.rsample(torch.Size([])).shape == (2, 2, 1)
    assert posterior.dtype is torch.float64
    torch.testing.assert_close(posterior.rsample(torch.Size([8])).mean(0), posterior.mean)
    with pytest.raises(AttributeError, match="has no normal distribution"):
        posterior.mvn  # noqa: B018


def test_experiments_are_drawn_jointly_and_by_the_noise_of_a_fitted_process():
    model = NetworkModel(fitted_pair(), ("X",), members=256, draws=512)
    near, far = torch.tensor([[0.30, 0.0], [0.31, 0.0]]), torch.tensor([[0.0, 0.0], [2.0, 0.0]])
    for points, low, high in ((near, 0.95, 1.0), (far, -0.5, 0.5)):
        known = model.posterior(points)
        experiments = model.posterior(points, observation_noise=True)
        # Those of one scrambling share a few of the extreme quantiles of the noise.
        samplers = [SobolQMCNormalSampler(torch.Size([2048]), seed=seed) for seed in range(8)]
        samples = torch.cat([sampler(experiments)[..., 0] for sampler in samplers])
        members = known.values[..., 0]
        assert low < float(torch.corrcoef(members.T)[0, 1]) < high
        # Noise is independent: it adds to the variances alone.
        added = samples.T.cov() - members.T.cov()
        assert float(added[0, 1].abs()) < 0.2 * float(added.diagonal().min())
        torch.testing.assert_close(experiments.variance[:, 0], samples.var(0), rtol=0.1, atol=0)
    wrong = torch.zeros(3, 2, 3, dtype=DOUBLE)
    with pytest.raises(ValueError, match=r"base samples of shape \(3, 2, 2\)"):
        experiments.rsample_from_base_samples(torch.Size([3]), wrong)
