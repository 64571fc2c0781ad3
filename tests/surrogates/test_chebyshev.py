"""Interpolation in Chebyshev nodes: exact for bounded frequencies and polynomials."""

import math

import pytest
import torch

from rehearsal_torch.surrogates.chebyshev import EXACT, ChebyshevNodes, nodes_for

LOWER = torch.tensor([-2.0, 5.0, 1.0], dtype=torch.float64)
UPPER = torch.tensor([3.0, 5.5, 1.0], dtype=torch.float64)


def inside(count=50):
    return LOWER + torch.rand(count, 3, dtype=torch.float64) * (UPPER - LOWER)


@pytest.mark.parametrize("frequency", [0.0, 0.3, 2.0, 13.0, 80.0])
def test_waves_up_to_the_frequency_are_met_everywhere(frequency):
    nodes = ChebyshevNodes(LOWER, UPPER, nodes_for(frequency, 200))
    points = torch.cat((inside(), LOWER.unsqueeze(0), UPPER.unsqueeze(0), nodes.places))
    for share in (1.0, 0.6):
        scale = share * frequency / torch.tensor([2.5, 0.25, 1.0], dtype=torch.float64)
        for wave in (torch.cos, torch.sin):
            values = (nodes.weights(points) * wave(scale * nodes.places).mT).sum(-1)
            assert torch.allclose(values, wave(scale * points), rtol=0, atol=2e-12)


def test_squares_need_no_frequency():
    nodes = ChebyshevNodes(LOWER, UPPER, nodes_for(0.0, 200))
    points = inside()
    assert torch.allclose((nodes.weights(points) * nodes.places.square().mT).sum(-1), points.square())


def test_the_number_of_nodes_is_the_smallest_that_the_bound_allows():
    for frequency in (0.5, 4.0, 20.0):
        count = nodes_for(frequency, 200)
        bound = [8 * (frequency / 2) ** n / math.factorial(n) for n in (count - 1, count)]
        assert bound[1] <= EXACT < bound[0]
    assert nodes_for(100.0, 200) >= 100


def test_weights_sum_to_one_and_beyond_the_interval_are_those_of_its_end():
    nodes = ChebyshevNodes(LOWER, UPPER, 20)
    points = inside()
    assert torch.allclose(nodes.weights(points).sum(-1), torch.ones_like(points))
    beyond, end = nodes.weights(UPPER + 1), nodes.weights(UPPER)
    assert torch.equal(beyond[:2], end[:2]), "the third interval is a point"


def test_values_at_fewer_nodes_are_lifted_to_more():
    fewer, more = ChebyshevNodes(LOWER, UPPER, 5), ChebyshevNodes(LOWER, UPPER, 9)
    lifted = more.lift(fewer) @ fewer.places**4
    assert torch.allclose(lifted, more.places**4)
    assert torch.allclose(more.lift(more), torch.eye(9, dtype=torch.float64))


@pytest.mark.parametrize("frequency", [90.0, 1e12, math.inf, math.nan])
def test_more_nodes_than_allowed_are_not_counted_one_by_one(frequency):
    assert nodes_for(frequency, 96) is None
