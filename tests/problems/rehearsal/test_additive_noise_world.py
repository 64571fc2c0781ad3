import math

import pytest
import torch

from rehearsal_torch.problems.rehearsal.additive_noise_world import (
    Exponential,
    Normal,
    SymmetricBeta,
    Uniform,
)

LAWS = {
    "normal": (Normal(0.5), 0.0, 0.25),
    "uniform": (Uniform(-1.0, 3.0), 1.0, 16 / 12),
    "exponential": (Exponential(), 1.0, 1.0),
    "beta": (SymmetricBeta(), 0.5, 0.05),
}


@pytest.mark.parametrize("name", LAWS)
def test_nodes_and_numbers_have_the_moments_of_the_law(name):
    law, mean, variance = LAWS[name]
    points, weights = law.nodes(64)
    assert float(weights.sum()) == pytest.approx(1.0, abs=1e-12)
    assert float(points @ weights) == pytest.approx(mean, abs=1e-8)
    assert float((points - mean).square() @ weights) == pytest.approx(variance, abs=1e-7)
    # Numbers through quantiles, integrated against the normal law.
    normal, shares = Normal(1.0).nodes(4001)
    drawn = law.of_normal(normal)
    assert float(drawn @ shares) == pytest.approx(mean, abs=1e-6)
    assert float((drawn - mean).square() @ shares) == pytest.approx(variance, abs=1e-6)
    assert (drawn.diff() >= 0).all()


def test_quantiles():
    assert Exponential().of_normal(torch.zeros(1, dtype=torch.float64)).item() == pytest.approx(math.log(2))
    quantile = SymmetricBeta().of_normal(torch.tensor([-1.0], dtype=torch.float64))
    assert (3 * quantile**2 - 2 * quantile**3).item() == pytest.approx(
        float(torch.special.ndtr(torch.tensor(-1.0, dtype=torch.float64)))
    )
