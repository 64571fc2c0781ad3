from dataclasses import replace

import pytest
import torch

from rehearsal_torch.estimators.gp_posterior import Posterior
from rehearsal_torch.mechanisms.gp_mechanism import ClosedForm, Decoded, Noise, noise_input

DOUBLE = torch.float64


def number(value):
    return torch.tensor(value, dtype=DOUBLE)


def constant(mean, std):
    """A process without inputs: what it knows is one number, up to a standard deviation."""
    empty = torch.zeros(0, dtype=DOUBLE)
    return Posterior(
        empty,
        torch.zeros(0, 0, dtype=DOUBLE),
        empty,
        empty,
        torch.zeros(0, 0, dtype=DOUBLE),
        number(mean),
        number(std),
    )


def closed(predictive, shift=0.0):
    empty = torch.zeros(0, dtype=DOUBLE)
    noise = Noise(number(0.09), number(0.0))
    return ClosedForm(
        empty, empty, number(10.0), number(2.0), constant(0.5, 0.4), noise, number(shift), predictive
    )


PARENTS, NOISE = torch.zeros(1, 0, dtype=DOUBLE), torch.tensor([[-1.0], [0.0], [2.0]], dtype=DOUBLE)


def test_the_closed_form_scales_noise_by_its_own_or_by_the_predictive_standard_deviation():
    for predictive, sigma in ((False, 0.3), (True, 0.5)):
        expected = 10 + 2 * (0.5 + sigma * NOISE)
        assert torch.allclose(closed(predictive).forward(PARENTS, NOISE), expected)
        assert torch.allclose(closed(predictive).abduct(PARENTS, expected), NOISE)
        mean, std = closed(predictive).belief(PARENTS, NOISE)
        assert torch.allclose(mean, expected)
        assert std.tolist() == [[0.8]]


def test_the_closed_form_counts_the_uncertainty_of_recovered_noise():
    made, value = closed(False), number([[11.0]])
    low, high = (
        replace(made, posterior=constant(mean, 0.0)).abduct(PARENTS, value) for mean in (0.5 - 0.4, 0.5 + 0.4)
    )
    sigma_h = (low - high) / 2  # the noise is linear in the process: one standard deviation to either side
    assert float(2 * 0.3 * sigma_h) == pytest.approx(0.8)
    assert float(made.belief(PARENTS, made.abduct(PARENTS, value))[1]) == pytest.approx(0.8)


def test_inputs_are_scaled_to_the_unit_cube():
    made = closed(False)
    wide = ClosedForm(
        number([1.0, -1.0]),
        number([2.0, 4.0]),
        made.centre,
        made.scale,
        made.posterior,
        made.noise,
        made.shift,
        False,
    )
    assert wide.scaled(number([[1.0, -1.0], [3.0, 1.0]])).tolist() == [[0.0, 0.0], [1.0, 0.5]]


def test_the_decoder_has_the_noise_among_its_inputs_and_the_encoder_takes_it_back():
    one = torch.ones(1, dtype=DOUBLE)
    # A single observation at noise 0 with weight 1: k is 1 there and falls to both sides.
    bump = Posterior(
        one, number([[0.5]]), number([0.125]), one, torch.zeros(1, 1, dtype=DOUBLE), number(0.0), number(1.0)
    )
    made = Decoded(closed(False), bump)
    expected = 10 + 2 * (-0.5 * (noise_input(NOISE) - 0.5).square()).exp()
    assert torch.allclose(made.forward(PARENTS, NOISE), expected)
    assert torch.allclose(made.belief(PARENTS, NOISE)[0], expected)
    assert torch.equal(made.abduct(PARENTS, expected), made.encoder.abduct(PARENTS, expected))
    vague = replace(made, encoder=replace(made.encoder, posterior=constant(0.5, 0.9)))
    for one_part, other in zip(made.belief(PARENTS, NOISE), vague.belief(PARENTS, NOISE), strict=True):
        assert torch.equal(one_part, other), "the noise of the rows counts as known"
