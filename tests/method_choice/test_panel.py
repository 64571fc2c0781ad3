"""The weights of a panel of methods."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.method_choice.panel import panel_weights


def drawn(methods, rows, seed):
    stream = torch.Generator().manual_seed(seed)
    predicted = torch.rand(methods, rows, generator=stream, dtype=torch.float64)
    desired = (torch.rand(rows, generator=stream, dtype=torch.float64) < predicted[0]).double()
    return predicted, desired, 0.5 + torch.rand(rows, generator=stream, dtype=torch.float64)


def test_of_two_methods_the_weight_is_the_closed_form():
    predicted, desired, weights = drawn(2, 300, 1)
    apart = predicted[0] - predicted[1]
    best = (weights * (desired - predicted[1]) * apart).sum() / (weights * apart.square()).sum()
    expected = [float(best), 1 - float(best)]
    assert 0 < expected[0] < 1
    assert panel_weights(predicted, desired, weights).tolist() == pytest.approx(expected, abs=1e-6)


def test_a_method_that_is_right_judges_alone():
    predicted, desired, weights = drawn(3, 50, 2)
    predicted[1] = desired
    assert panel_weights(predicted, desired, weights).tolist() == pytest.approx([0, 1, 0], abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(2, 40), st.integers(0, 10_000))
def test_the_mixture_is_a_mixture_and_no_worse_than_any_method(methods, rows, seed):
    predicted, desired, weights = drawn(methods, rows, seed)
    found = panel_weights(predicted, desired, weights)
    assert bool((found >= 0).all())
    assert float(found.sum()) == pytest.approx(1.0)
    score = (weights * (found @ predicted - desired).square()).mean()
    alone = (weights * (predicted - desired).square()).mean(1)
    assert float(score) <= float(alone.min()) + 1e-6


def test_methods_that_say_the_same_share_the_weight():
    predicted, desired, weights = drawn(1, 30, 3)
    found = panel_weights(predicted.repeat(2, 1), desired, weights)
    assert float(found.sum()) == pytest.approx(1.0)
    assert torch.allclose(found @ predicted.repeat(2, 1), predicted[0])
