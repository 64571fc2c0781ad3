"""What a mechanism must say before it can be made, and what follows from the pair alone."""

from dataclasses import dataclass

import pytest
import torch

from rehearsal_torch.mechanisms.mechanism import (
    GenerativeMechanism,
    Mechanism,
    NodeMechanism,
    TransitionMechanism,
)
from tests.toys.causal_toys import WrittenLaw

DOUBLE = torch.float64


@dataclass(frozen=True)
class Scaled(Mechanism):
    """v_i = (1 + |pa|^2) u_i: a frozen record."""

    name: str = "scaled"

    def forward(self, parents, noise):
        return (1 + parents.square().sum(-1, keepdim=True)) * noise

    def abduct(self, parents, values):
        return values / (1 + parents.square().sum(-1, keepdim=True))


class Module(torch.nn.Module, Mechanism):
    """v = pa W + u: a module with parameters."""

    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.tensor([[2.0], [-1.0]], dtype=DOUBLE))

    def forward(self, parents, noise):
        return parents @ self.weights + noise

    def abduct(self, parents, values):
        return values - parents @ self.weights


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("made", [Scaled(), Module()], ids=["record", "module"])
def test_records_and_modules_are_mechanisms_and_counterfactuals_follow_from_the_pair(made):
    parents, other, noise = drawn(6, 2), drawn(6, 2, seed=1), drawn(6, 1, seed=2)
    assert isinstance(made, Mechanism)
    assert made.exact
    values = made.forward(parents, noise)
    recovered = made.abduct(parents, values)
    torch.testing.assert_close(recovered, noise)
    # Abduction, action, prediction: under the same parents nothing changes, under others the noise stays.
    torch.testing.assert_close(made.forward(parents, recovered), values)
    torch.testing.assert_close(made.forward(other, recovered), made.forward(other, noise))


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        (Mechanism, {"forward", "abduct"}),
        (GenerativeMechanism, {"forward", "abduct", "noise"}),
        (TransitionMechanism, {"forward", "abduct", "noise", "unroll"}),
        (NodeMechanism, {"forward", "abduct", "scaled", "belief"}),
    ],
)
def test_nothing_can_be_left_out(kind, missing):
    assert kind.__abstractmethods__ == missing
    for left_out in missing:
        parts = {name: lambda *_: None for name in missing - {left_out}}
        with pytest.raises(TypeError, match=f"abstract method '?{left_out}'?"):
            type("Partial", (kind,), parts)()


def test_a_node_deviates_alike_everywhere_unless_it_knows_its_covariance_and_takes_no_observations():
    law = WrittenLaw(lambda w: w[..., 0], lambda w: 1 + w[..., 0])
    parents, noise = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64), torch.zeros(3, 1)
    root = law.joint_root(parents, noise)
    stds = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    torch.testing.assert_close(root @ root.mT, stds.unsqueeze(-1) * stds)
    with pytest.raises(TypeError, match="WrittenLaw cannot be conditioned on further observations: fit"):
        law.conditioned(parents, noise)
