"""Regressions of many rows beside those that solve for all of them together."""

from dataclasses import replace

import pytest
import torch

from rehearsal_torch.estimators import function_draws
from rehearsal_torch.estimators.function_draws import FunctionDraws
from rehearsal_torch.estimators.gp_kernel import MANY, Rows, factors
from rehearsal_torch.estimators.gp_posterior import HyperParameters, Posterior
from rehearsal_torch.estimators.inducing_points import LearntOfMany, inducing, learnt

DOUBLE = torch.float64
LOG_NOISES = torch.tensor([-3.0, -2.0], dtype=DOUBLE)
LOG_LENGTHS = torch.tensor([[-0.5, -0.2], [-0.8, 0.0]], dtype=DOUBLE)
AT = torch.rand(40, 2, generator=torch.Generator().manual_seed(5), dtype=DOUBLE)


def rows(count, kind=0):
    """Regressions on two inputs and on one."""
    stream = torch.Generator().manual_seed(1)
    inputs = torch.rand(2, count, 2, generator=stream, dtype=DOUBLE)
    used = torch.tensor([[True, True], [True, False]])
    inputs = inputs * used.unsqueeze(1)
    noise = 0.2 * torch.randn(2, count, generator=stream, dtype=DOUBLE)
    targets = (5 * inputs[..., 0]).sin() + inputs[..., 1] + noise
    ratios = 0.5 + torch.rand(2, count, generator=stream, dtype=DOUBLE)
    kept = torch.ones_like(targets, dtype=torch.bool)
    return Rows(inputs, targets, kept, used, ratios, torch.full((2,), kind))


def both(given):
    """What is learnt by inducing points and by all rows together, with the posteriors."""
    found = learnt(given, LOG_LENGTHS, LOG_NOISES), factors(given, LOG_LENGTHS, LOG_NOISES)
    hyper = HyperParameters(LOG_LENGTHS, LOG_NOISES)
    return found, [[Posterior.of(given, each, hyper, place, 2 - place) for place in (0, 1)] for each in found]


@pytest.mark.parametrize("kind", [0, 2])
def test_with_all_rows_as_inducing_points_the_answers_are_exact(kind):
    given = rows(MANY + 50, kind)
    kept = given.kept.clone()
    kept[0, 90:], kept[1, :-70] = False, False
    given = replace(given, kept=kept, targets=given.targets * kept, inputs=given.inputs * kept.unsqueeze(-1))
    (found, exact), posteriors = both(given)
    assert isinstance(found, LearntOfMany)
    near = {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(found.mean, exact.mean, **near)
    for own, other in zip(
        (*found.left_out(), *found.in_sample()), (*exact.left_out(), *exact.in_sample()), strict=True
    ):
        torch.testing.assert_close(own[kept], other[kept], **near)
    for place, (own, other) in enumerate(zip(*posteriors, strict=True)):
        at = AT[:, : 2 - place]
        for one, two in zip(own.belief(at), other.belief(at), strict=True):
            torch.testing.assert_close(one, two, **near)


def test_many_rows_of_a_smooth_function_say_what_they_say_together():
    given = rows(1500)
    (found, exact), posteriors = both(given)
    assert all(len(part.points) < 120 for part in found.parts)
    for place, (own, other) in enumerate(zip(*posteriors, strict=True)):
        (mean, std), (exact_mean, exact_std) = (each.belief(AT[:, : 2 - place]) for each in (own, other))
        assert float(((mean - exact_mean) / exact_std).abs().max()) < 0.02
        torch.testing.assert_close(std, exact_std, rtol=0.01, atol=0)
    for one, two in zip(found.left_out(), exact.left_out(), strict=True):
        torch.testing.assert_close(one, two, rtol=0.01, atol=1e-3)


def test_a_row_that_no_point_tells_of_counts_with_noise_of_its_own():
    given = rows(1200, 2).only(torch.tensor([0]))
    lengths, stream = torch.full((1, 2), -2.5, dtype=DOUBLE), torch.Generator().manual_seed(0)
    root = factors(given, lengths, LOG_NOISES[:1]).root
    drawn = root @ torch.randn(1, 1200, 1, generator=stream, dtype=DOUBLE)
    given = replace(given, targets=drawn.squeeze(-1))
    found, exact = (call(given, lengths, LOG_NOISES[:1]).left_out() for call in (learnt, factors))
    squares, wanted = ((residual.square() / variance).mean() for residual, variance in (found, exact))
    torch.testing.assert_close(squares, wanted, rtol=0.05, atol=0)
    torch.testing.assert_close(found[1].mean(), exact[1].mean(), rtol=0.1, atol=0)


@pytest.mark.parametrize("kind", [0, 2])
def test_functions_with_all_rows_as_inducing_points_are_the_same_functions(kind, monkeypatch):
    given = rows(60, kind)
    lengths = LOG_LENGTHS[torch.tensor([0, 1, 0])].exp()
    arguments = (
        kind, given.inputs[0], lengths, given.targets[0].expand(3, -1), 0.1 * given.ratios[[0, 1, 0]],
        torch.tensor([1.0, 0.7, 1.3], dtype=DOUBLE), 4,
    )  # fmt: skip
    exact = FunctionDraws.of(*arguments)
    monkeypatch.setattr(function_draws, "MANY", 50)
    found = FunctionDraws.of(*arguments)
    near = {"rtol": 0, "atol": 1e-4}
    torch.testing.assert_close(found(AT.unsqueeze(0)), exact(AT.unsqueeze(0)), **near)
    more = AT[:2], torch.ones(2, dtype=DOUBLE), torch.full((2,), 0.1, dtype=DOUBLE)
    after = [each.conditioned(*more, seed=0)(AT.unsqueeze(0)) for each in (found, exact)]
    torch.testing.assert_close(*after, **near)


def test_functions_of_many_rows_vary_as_the_posterior_of_all():
    given, pairs = rows(1000), 400
    variances = LOG_NOISES[0].exp() * given.ratios[0]
    functions = FunctionDraws.of(
        0, given.inputs[0], LOG_LENGTHS[:1].exp().expand(pairs, -1), given.targets[0].expand(pairs, -1),
        variances.expand(pairs, -1), torch.ones(pairs, dtype=DOUBLE), 0,
    )  # fmt: skip
    assert len(functions.places) < 120
    exact = both(given)[1][1][0]
    values, (mean, std) = functions(AT.unsqueeze(0)), exact.belief(AT)
    assert float(((values.mean(0) - mean) / std).abs().max()) < 0.02
    # The uncertain mean counts as well: at most a little.
    torch.testing.assert_close(values.std(0), std, rtol=0.15, atol=0)


def test_a_regression_without_inputs_is_a_mean_and_equal_rows_are_one_point():
    given = rows(MANY + 100)
    bare = replace(given, used=torch.zeros_like(given.used), inputs=0 * given.inputs)
    found, exact = (call(bare, 0 * LOG_LENGTHS, LOG_NOISES) for call in (learnt, factors))
    torch.testing.assert_close(found.mean, exact.mean)
    for one, two in zip(found.left_out(), exact.left_out(), strict=True):
        torch.testing.assert_close(one, two)
    levels = (given.inputs[1, :, :1] * 3).floor()
    chosen = inducing(levels, LOG_LENGTHS[0, :1], 2)
    assert levels[chosen, 0].sort().values.tolist() == [0, 1, 2]
