import math

import numpy as np
import pytest
import torch
from scipy.special import digamma, gammaln

from rehearsal_torch.objectives.information import nearest_neighbour_entropy


@pytest.mark.parametrize("neighbours", [1, 3, 8])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_normal_draws_have_the_entropy_of_the_normal_law(width, neighbours):
    stream = torch.Generator().manual_seed(width)
    root = torch.tril(torch.randn(width, width, generator=stream, dtype=torch.float64)) + 2 * torch.eye(
        width, dtype=torch.float64
    )
    draws = (
        torch.randn(2000, width, generator=stream, dtype=torch.float64)
        @ root.mT
        * torch.logspace(-2, 3, width, dtype=torch.float64)
    )
    true = (
        width / 2 * math.log(2 * math.pi * math.e)
        + float(root.diagonal().log().sum())
        + math.log(10) * float(torch.linspace(-2, 3, width).sum())
    )
    assert float(nearest_neighbour_entropy(draws, neighbours)) == pytest.approx(true, abs=0.12)


def test_uniform_draws_of_several_batches():
    draws = torch.rand(2, 3, 1500, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 8
    assert torch.allclose(
        nearest_neighbour_entropy(draws), torch.full((2, 3), math.log(8), dtype=torch.float64), atol=0.1
    )


def test_what_does_not_vary_and_what_has_no_dimension():
    assert nearest_neighbour_entropy(torch.ones(20, 2, dtype=torch.float64)) == -torch.inf
    assert nearest_neighbour_entropy(torch.ones(20, 0, dtype=torch.float64)) == 0


@pytest.mark.parametrize("neighbours", [0, 5])
def test_too_few_draws_are_refused(neighbours):
    with pytest.raises(ValueError, match="increase the draws"):
        nearest_neighbour_entropy(torch.zeros(5, 1), neighbours)


@pytest.mark.parametrize("neighbours", [1, 3, 5])
def test_a_few_draws_have_the_value_of_the_formula(neighbours) -> None:
    draws = torch.randn(6, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 7.0
    scale = draws.numpy().std(0, ddof=1)
    points = draws.numpy() / scale
    apart = np.sort(np.linalg.norm(points[:, None] - points, axis=-1), 1)[:, neighbours]
    ball = math.log(math.pi) - gammaln(2)
    expected = digamma(6) - digamma(neighbours) + ball + 2 * np.log(apart).mean() + np.log(scale).sum()
    assert float(nearest_neighbour_entropy(draws, neighbours)) == pytest.approx(expected, rel=1e-12)
    if neighbours == 3:
        assert torch.equal(nearest_neighbour_entropy(draws), nearest_neighbour_entropy(draws, neighbours))


def test_one_dimension_that_does_not_vary_is_enough_and_other_batches_do_not_count() -> None:
    draws = torch.randn(2, 9, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    whole = nearest_neighbour_entropy(draws)
    draws[0, :, 1] = 4.0
    found = nearest_neighbour_entropy(draws)
    assert found[0] == -torch.inf
    assert found[1] == whole[1]
