import torch

from rehearsal_torch.mechanisms.conditional_flow import ConditionalFlow
from rehearsal_torch.mechanisms.linear_flow import LinearFlow
from rehearsal_torch.mechanisms.linear_gaussian import LinearGaussian

DOUBLE = torch.float64


def fitted():
    stream = torch.Generator().manual_seed(0)
    parents = torch.randn(300, 3, generator=stream, dtype=DOUBLE)
    noise = torch.randn(300, 2, generator=stream, dtype=DOUBLE) @ torch.tensor(
        [[1.0, 0.7], [0.0, 0.4]], dtype=DOUBLE
    )
    values = parents @ torch.randn(3, 2, generator=stream, dtype=DOUBLE) + noise
    made = LinearGaussian(3, 2)
    made.solve(parents, values)
    return made, parents, values


def test_whitened_residuals_are_uncorrelated_with_variance_one():
    linear, parents, values = fitted()
    whitened = LinearFlow(linear, None).whitened(parents, values)
    assert torch.allclose(whitened.T.cov(), torch.eye(2, dtype=DOUBLE), atol=0.02)
    assert torch.allclose(LinearFlow(linear, None).whitened(parents[0], values[0]), whitened[0])


def test_a_flow_that_is_not_trained_leaves_the_linear_mechanism():
    linear, parents, values = fitted()
    plain, curved = LinearFlow(linear, None), LinearFlow(linear, ConditionalFlow(3, 2).double())
    noise = plain.noise((300,))
    assert torch.allclose(plain.forward(parents, noise), curved.forward(parents, noise), atol=1e-10)
    assert torch.allclose(plain.abduct(parents, values), curved.abduct(parents, values), atol=1e-10)


def test_a_flow_in_single_precision_answers_in_the_precision_of_its_arguments():
    linear, parents, values = fitted()
    made = LinearFlow(linear, ConditionalFlow(3, 2))
    noise = made.abduct(parents, values)
    assert noise.dtype == made.forward(parents, noise).dtype == DOUBLE
    assert torch.allclose(made.forward(parents, noise), values, atol=1e-5)
