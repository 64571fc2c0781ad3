import torch

from rehearsal_torch.surrogates.network.distinct_points import at_distinct
from rehearsal_torch.surrogates.network.network_model import NetworkModel
from rehearsal_torch.surrogates.network.network_posterior import plausible_values
from tests.toys.fitted_pair import fitted_pair

DOUBLE = torch.float64
POINTS = torch.rand(3, 4, 2, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)


def waves(points):
    """(P, 2) -> (3, P, 2)."""
    both = torch.stack([points.prod(-1).sin(), points.square().sum(-1)], -1)
    return torch.stack([both, both.exp(), both + 1])


def test_values_and_gradients_are_those_of_the_function():
    for size in (1, 5, 100):
        assert torch.allclose(
            at_distinct(waves, POINTS, size), waves(POINTS.reshape(-1, 2)).reshape(3, 3, 4, 2)
        )
        assert torch.autograd.gradcheck(
            lambda points, size=size: at_distinct(waves, points, size), POINTS.clone().requires_grad_()
        )


def test_a_point_that_comes_often_is_evaluated_once_and_again_only_for_a_gradient():
    asked = []

    def counted(points):
        asked.append(len(points))
        return waves(points)

    points = torch.cat([POINTS[:1].expand(3, 4, 2), POINTS[1:, :1].new_tensor([[[0.1, 0.2]]] * 3)], 1)
    points = points.clone().requires_grad_()
    values = at_distinct(counted, points, 6)
    assert asked == [5]
    values[:, 1, 2].sum().backward()
    assert asked == [5, 1]
    assert (points.grad != 0).any(-1).nonzero().tolist() == [[1, 2]]


def test_few_points_are_evaluated_once_with_their_graph():
    asked = []

    def counted(points):
        asked.append(len(points))
        return waves(points)

    points = POINTS[0].clone().requires_grad_()
    at_distinct(counted, points, 2).sum().backward()
    assert asked == [4]
    at_distinct(counted, points, 1).sum().backward()
    assert asked == [4, 1, 1, 1, 1, 1, 1, 1, 1]


def test_the_posterior_of_a_network_is_what_it_was():
    model = NetworkModel(fitted_pair(), ("X", "Y"))
    twice = torch.cat([POINTS, POINTS[:, :2]], 1)
    plain = plausible_values(model.network, twice, model.noise, model.epistemic, lambda values: values)
    torch.testing.assert_close(model.posterior(twice).values, plain)
