import pytest
import torch
from sklearn.mixture import GaussianMixture

from rehearsal_torch.estimators.mixture import GaussianMixtures, StandardNormals

DOUBLE = torch.float64


def noises(count=200, seed=0):
    """Two modes, one mode, three modes; standardised."""
    stream = torch.Generator().manual_seed(seed)
    normal = torch.randn(count, 3, generator=stream, dtype=DOUBLE)
    which = torch.randint(2, (count,), generator=stream)
    third = torch.randint(3, (count,), generator=stream) - 1
    values = torch.stack(
        [(2.0 * which - 1) + 0.3 * normal[:, 0], normal[:, 1], 2.0 * third + 0.2 * normal[:, 2]], -1
    )
    return (values - values.mean(0)) / values.std(0), torch.ones(count, 3, dtype=torch.bool)


@pytest.mark.parametrize("components", [2, 3])
def test_likelihood_is_that_of_scikit_learn_with_several_starts(components):
    values, kept = noises()
    made = GaussianMixtures(3, components)
    made.solve(values, kept)
    own = made.log_density(values).sum(0)
    for place in range(3):
        column = values[:, place : place + 1].numpy()
        told = GaussianMixture(components, n_init=5, random_state=0).fit(column).score(column) * len(column)
        assert float(own[place]) > told - 2.5


def test_bic_counts_the_modes():
    made = GaussianMixtures(3, "bic")
    made.solve(*noises())
    assert (made.weights > 0).sum(-1).tolist() == [2, 1, 3]
    assert torch.allclose(made.weights.sum(-1), torch.ones(3, dtype=DOUBLE))


def test_few_rows_and_rows_left_out():
    values, kept = noises()
    kept[9:, 1] = False
    made = GaussianMixtures(3, 2)
    made.solve(values, kept)
    assert (made.weights > 0).sum(-1).tolist() == [2, 1, 2]
    assert float(made.means[1, 0]) == pytest.approx(float(values[:9, 1].mean()))
    assert float(made.variances[1, 0]) == pytest.approx(float(values[:9, 1].var(correction=0)))


def test_starting_from_the_last_fit_is_repeatable_and_not_worse():
    values, kept = noises(201)
    ends = []
    for _ in range(2):
        made = GaussianMixtures(3, 2)
        made.solve(values[:200], kept[:200])
        made.solve(values, kept)
        ends.append(made)
    fresh = GaussianMixtures(3, 2)
    fresh.solve(values, kept)
    assert torch.equal(ends[0].means, ends[1].means)
    assert bool((ends[0].log_density(values).sum(0) >= fresh.log_density(values).sum(0) - 1e-2).all())


def test_quantiles_invert_the_distribution_function_and_stay_near_what_was_seen():
    values, kept = noises()
    made = GaussianMixtures(3, 2)
    made.solve(values, kept)
    levels = torch.linspace(0.01, 0.99, 25, dtype=DOUBLE).unsqueeze(-1).expand(25, 3)
    assert torch.allclose(made.cdf(made.quantile(levels)), levels, atol=1e-9)
    ends = made.quantile(torch.tensor([[1e-12] * 3, [1 - 1e-12] * 3], dtype=DOUBLE))
    assert bool((ends[0] >= values.amin(0) - 1).all())
    assert bool((ends[1] <= values.amax(0) + 1).all())


def test_standard_normals_learn_nothing():
    made = StandardNormals(3)
    made.solve(*noises())
    where = torch.linspace(-2, 2, 5, dtype=DOUBLE).unsqueeze(-1).expand(5, 3)
    assert torch.allclose(made.cdf(where), torch.special.ndtr(where))
    assert torch.allclose(made.quantile(torch.special.ndtr(where)), where, atol=1e-9)


@pytest.mark.parametrize("components", [0, -1, "aic", True])
def test_strange_numbers_of_components_are_refused(components):
    with pytest.raises(ValueError, match="at least 1, or bic"):
        GaussianMixtures(1, components)
