import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, spearmanr

from rehearsal_torch.problems.nhanes.residuals import PairedRanks, ResidualDistribution
from reproduction.nhanes.fitting import grouped, paired_ranks


def pair(count=4000, seed=0):
    stream = np.random.default_rng(seed)
    first = stream.standard_t(4, count)
    return first, 0.8 * first + 0.6 * stream.standard_normal(count)


def test_draws_are_distributed_like_the_residuals():
    residuals = pair()[0]
    drawn = grouped(residuals).quantile(np.random.default_rng(1).random(20_000))
    assert kstest(residuals, drawn).statistic < 0.02
    assert drawn.mean() == pytest.approx(residuals.mean(), abs=0.03)
    assert drawn.std() == pytest.approx(residuals.std(), rel=0.03)


def test_no_residual_is_kept():
    residuals = pair()[0]
    distribution = grouped(residuals)
    assert not set(np.float32(distribution.means).tolist()) & set(np.float32(residuals).tolist())
    assert distribution.means.max() < residuals.max()
    with pytest.raises(ValueError, match="a single participant's"):
        grouped(residuals[:300])


@settings(derandomize=True, max_examples=30, deadline=None)
@given(st.floats(0.002, 0.998))
def test_below_undoes_quantile(uniform):
    distribution = grouped(pair()[0])
    assert float(distribution.below(distribution.quantile(np.array(uniform)))) == pytest.approx(
        uniform, abs=1e-9
    )


def test_ranks_keep_margins_and_dependence():
    first, second = pair()
    ranks = paired_ranks(first, second)
    stream = np.random.default_rng(2)
    one = stream.random(40_000)
    other = ranks.second(one, stream.random(40_000))
    assert kstest(other, "uniform").statistic < 0.01
    assert spearmanr(one, other).statistic == pytest.approx(spearmanr(first, second).statistic, abs=0.02)


@settings(derandomize=True, max_examples=20, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1))
def test_the_joint_distribution_agrees_with_draws_and_bounds(u, v):
    ranks, one, other = SHARED
    expected = float(ranks.below(np.array(u), np.array(v)))
    assert ((one <= u) & (other <= v)).mean() == pytest.approx(expected, abs=0.012)
    # Fréchet and Hoeffding
    assert max(u + v - 1, 0) - 1e-6 <= expected <= min(u, v) + 1e-6
    assert float(PairedRanks.independent().below(np.array(u), np.array(v))) == pytest.approx(u * v, abs=1e-12)


def _drawn():
    ranks, stream = paired_ranks(*pair()), np.random.default_rng(3)
    one = stream.random(40_000)
    return ranks, one, ranks.second(one, stream.random(40_000))


SHARED = _drawn()


@pytest.mark.parametrize(
    ("edges", "shares"),
    [
        ([0, 0.5, 1], [[0.5, 0.1], [0.0, 0.4]]),
        ([0, 0.5, 1], [[0.6, -0.1], [-0.1, 0.6]]),
        ([0, 1, 1], [[0.5, 0.5], [0.0, 0.0]]),
        ([0, 1], [[0.5, 0.5], [0.0, 0.0]]),
    ],
)
def test_damaged_ranks_are_refused(edges, shares):
    with pytest.raises(ValueError, match="damaged"):
        PairedRanks(np.array(edges, dtype=float), np.array(shares))


def test_damaged_means_are_refused():
    for means in ([0.0, 1.0, 1.0], [0.0], [0.0, np.nan]):
        with pytest.raises(ValueError, match="damaged"):
            ResidualDistribution(np.array(means))
