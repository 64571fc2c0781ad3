import math

import pytest
import torch

from rehearsal_torch.mechanisms.conditional_flow import ConditionalFlow
from rehearsal_torch.training.gradient_descent import Descent


def moved(parents, outputs, seed=0, hidden=(16,), by=0.7):
    """A flow far from the identity, in float64."""
    flow, stream = ConditionalFlow(parents, outputs, hidden).double(), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for each in flow.parameters():
            each.copy_(by * torch.randn(each.shape, generator=stream, dtype=torch.float64))
    return flow


def curved(count, seed):
    """v | p ~ N(sin 2p + p^2 / 2, (.2 + .3 sigmoid(q))^2), and its mean negative log-likelihood."""
    stream = torch.Generator().manual_seed(seed)
    parents, noise = torch.randn(count, 2, generator=stream), torch.randn(count, 1, generator=stream)
    scale = 0.2 + 0.3 * torch.sigmoid(parents[:, 1:])
    mean = torch.sin(2 * parents[:, :1]) + parents[:, :1].square() / 2 - 0.5
    truth = (noise.square() / 2 + scale.log()).mean() + math.log(2 * math.pi) / 2
    return parents, mean + scale * noise, float(truth)


@pytest.mark.parametrize(("parents", "outputs"), [(0, 1), (0, 3), (2, 1), (3, 2)])
def test_abduction_gives_the_noise_back(parents, outputs):
    flow, stream = moved(parents, outputs), torch.Generator().manual_seed(1)
    seen = torch.randn(4, 50, parents, generator=stream, dtype=torch.float64)
    noise = torch.randn(4, 50, outputs, generator=stream, dtype=torch.float64)
    values = flow(seen, noise)
    assert values.shape == (4, 50, outputs)
    assert (values - noise).abs().max() > 0.5
    assert torch.allclose(flow.abduct(seen, values), noise, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_density_integrates_to_one(outputs):
    flow = moved(2, outputs, seed=3, by=0.3)
    line = torch.linspace(-15, 15, 40001 if outputs == 1 else 601, dtype=torch.float64)
    grid = torch.cartesian_prod(*[line] * outputs).reshape(-1, outputs)
    with torch.no_grad():
        mass = (
            flow.log_density(torch.tensor([0.3, -1.0], dtype=torch.float64).expand(len(grid), 2), grid)
            .exp()
            .sum()
        )
    assert float(mass * (line[1] - line[0]) ** outputs) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.slow
def test_a_curved_law_is_learnt():
    torch.manual_seed(0)
    flow = ConditionalFlow(2, 1)
    parents, values, _ = curved(800, 1)
    seen, kept, _ = curved(300, 2)
    test_parents, test_values, truth = curved(4000, 3)
    start = float(flow.loss(test_parents, test_values).detach())
    Descent(100, 128, 5e-3, 20, progress=False).train(flow, (parents, values), (seen, kept))
    with torch.no_grad():
        reached = float(flow.loss(test_parents, test_values))
        drawn = flow(
            torch.tensor([[1.0, 0.0]]).expand(20000, 2),
            torch.randn(20000, 1, generator=torch.Generator().manual_seed(4)),
        )
    assert start - truth > 1.0
    assert reached - truth < 0.2
    assert float(drawn.mean()) == pytest.approx(math.sin(2) + 0.5 - 0.5, abs=0.1)
    assert float(drawn.std()) == pytest.approx(0.35, abs=0.1)
