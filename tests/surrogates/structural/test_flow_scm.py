from functools import partial

import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.mechanisms.conditional_flow import ConditionalFlow
from rehearsal_torch.mechanisms.linear_gaussian import LinearGaussian
from rehearsal_torch.spaces.box import Alteration, Box
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.structural.flow_scm import FlowStructural, LinearFlow
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import managing

BRIEFLY = {"max_epochs": 3, "batch_size": 64, "learning_rate": 5e-3, "progress": False}
FLOW = partial(ConditionalFlow, hidden=(8,), bins=4)


def pair():
    """x -> (a <-> b) -> y: setting a leaves b, which then follows from a and x."""
    graph = RehearsalGraph.of({"a": ["x"], "b": ["x"], "y": ["a", "b"]}, [("a", "b")])
    task = RehearsalTask(graph, ("x",), Box.of({"a": (-1, 1)}), Polytope.of({"y": (0, 1)}))
    stream = torch.Generator().manual_seed(0)
    noise = torch.randn(600, 4, dtype=torch.float64, generator=stream)
    x = noise[:, 0]
    a, b = x + noise[:, 1], -x + 0.8 * noise[:, 1] + 0.3 * noise[:, 2]
    return task, Table.observed(("x", "a", "b", "y"), torch.stack([x, a, b, a + b + 0.1 * noise[:, 3]], -1))


def far_from_linear(surrogate, seed=0):
    """Moves every flow away from the identity."""
    stream = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for each in surrogate.flows.parameters():
            each.add_(0.3 * torch.randn(each.shape, generator=stream))
    return surrogate


def rehearsed(made, noise, alteration, given):
    """All variables after an alteration, in the graph's order and in units, (B, n, d)."""
    values = made.scaler.standardised(alteration.names, alteration.values)
    pushforward = made.pushforward(noise, alteration.names, given, made.scaler.names)
    return made.scaler.units(made.scaler.names, pushforward(values))


def test_the_linear_option_is_the_linear_model():
    world = managing()
    table, given = world.table(300), torch.tensor([[0.2, -0.1], [0.0, 0.3]], dtype=torch.float64)
    made, law = (
        fit(FlowStructural(world.task), table),
        fit(LinearStructural(world.task, 0), table).response(("raw_cost", "self_pricing")),
    )
    values = torch.tensor([[1.0, -2.0], [3.0, 0.5]], dtype=torch.float64)
    draws = rehearsed(made, made.noise(40000, 1), Alteration(("raw_cost", "self_pricing"), values), given)
    place = [world.task.graph.names.index(name) for name in world.task.outcomes]
    assert torch.allclose(draws[..., place].mean(1), law.base(given) + values @ law.action.mT, atol=0.02)
    for each in draws[..., place]:
        assert torch.allclose(each.mT.cov(), law.covariance, rtol=0.03, atol=2e-3)


def test_what_is_set_and_seen_stands_and_earlier_variables_are_left_alone():
    world = managing()
    made = far_from_linear(fit(FlowStructural(world.task, FLOW), world.table(200), Descent(**BRIEFLY)))
    given = torch.tensor([[0.2, -0.1]], dtype=torch.float64)
    noise, names = made.noise(30, 0), world.task.graph.names
    with torch.no_grad():
        one, other = (
            rehearsed(
                made, noise, Alteration(("self_pricing",), torch.tensor([[z]], dtype=torch.float64)), given
            )[0]
            for z in (-2.0, 3.0)
        )
    column = dict(zip(names, one.T, strict=True))
    assert torch.allclose(column["self_pricing"], torch.full((30,), -2.0, dtype=torch.float64))
    assert torch.allclose(column["cf"], torch.full((30,), 0.2, dtype=torch.float64))
    differs = {name for name, a, b in zip(names, one.T, other.T, strict=True) if not torch.equal(a, b)}
    assert differs == {"self_pricing", "profit", "customers"}


def test_the_rest_of_a_clique_follows_from_what_is_set():
    task, table = pair()
    made = fit(FlowStructural(task), table)
    draws = [
        rehearsed(
            made,
            made.noise(20000, 0),
            Alteration(("a",), torch.tensor([[z]], dtype=torch.float64)),
            torch.zeros(1, 1, dtype=torch.float64),
        )[0]
        for z in (0.0, 1.0)
    ]
    b = [each[:, task.graph.names.index("b")] for each in draws]
    # E[b | x, a] = -x + .8 (a - x), the noise of a being what both share.
    assert float(b[1].mean() - b[0].mean()) == pytest.approx(0.8, abs=0.05)
    assert float(b[0].std()) == pytest.approx(0.3, abs=0.02)


def test_slopes_of_the_push_forward_are_those_of_finite_differences():
    world = managing()
    made = far_from_linear(
        fit(FlowStructural(world.task, FLOW), world.table(200), Descent(**BRIEFLY))
    ).double()
    pushforward = made.pushforward(
        made.noise(5, 0),
        ("raw_cost", "self_pricing"),
        torch.tensor([[0.2, -0.1], [0.0, 0.1]], dtype=torch.float64),
        world.task.outcomes,
    )
    at = torch.tensor([[[0.3, -0.2], [0.1, 0.5]]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(pushforward, (at,))
    assert pushforward(at).shape == (1, 2, 5, 2)


def test_part_of_the_draws_and_situations_give_the_same_numbers():
    world = managing()
    made = fit(FlowStructural(world.task), world.table(200))
    given = torch.tensor([[0.2, -0.1], [0.0, 0.1], [0.4, 0.0]], dtype=torch.float64)
    pushforward = made.pushforward(made.noise(9, 0), ("self_pricing",), given, world.task.outcomes)
    at = torch.tensor([[0.3], [0.2], [0.1]], dtype=torch.float64)
    whole, which = pushforward(at), torch.tensor([2, 0])
    assert torch.allclose(pushforward.first(4).of(which)(at[which]), whole[which, :4], atol=1e-12)


def test_columns_of_few_values_are_spread_and_others_are_not():
    task, table = pair()
    values = table.values.clone()
    values[:, 2] = values[:, 2].round().clamp(-2, 2)
    made = FlowStructural(task, FLOW)
    again = dict(
        zip(table.names, made._dequantised(Table.observed(table.names, values)).values.T, strict=True)
    )
    assert torch.equal(again["a"], values[:, 1])
    assert torch.equal(again["b"].round(), values[:, 2])
    assert len(again["b"].unique()) == len(values)


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
    noise = plain.abduct(parents, values)
    assert torch.allclose(plain.forward(parents, noise), curved.forward(parents, noise), atol=1e-10)
    assert torch.allclose(plain.abduct(parents, values), curved.abduct(parents, values), atol=1e-10)


def test_a_flow_in_single_precision_answers_in_the_precision_of_its_arguments():
    linear, parents, values = fitted()
    made = LinearFlow(linear, ConditionalFlow(3, 2))
    noise = made.abduct(parents, values)
    assert noise.dtype == made.forward(parents, noise).dtype == DOUBLE
    assert torch.allclose(made.forward(parents, noise), values, atol=1e-5)
