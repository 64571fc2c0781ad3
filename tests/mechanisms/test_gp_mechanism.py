from dataclasses import replace

import pytest
import torch

from rehearsal_torch.estimators.gaussian_process import GaussianProcesses
from rehearsal_torch.estimators.gp_posterior import HyperParameters, Posterior
from rehearsal_torch.mechanisms.gp_mechanism import (
    ClosedForm,
    Decoded,
    Modes,
    Noise,
    NormalRegression,
    noise_input,
)

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


def test_a_shift_is_added_to_the_noise():
    moved = closed(False, shift=0.25)
    assert torch.allclose(moved.forward(PARENTS, NOISE), closed(False).forward(PARENTS, NOISE + 0.25))


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


def smooth(modes=None):
    """A process of one input with two rows."""
    rows = GaussianProcesses([1])
    rows.adopt(HyperParameters(number([[-1.0]]), number([0.0])))
    two = torch.ones(2, 1, dtype=torch.bool)
    rows.hold(number([[[0.2]], [[0.7]]]), number([[0.5], [-0.5]]), two, number([[0.09], [0.09]]))
    one = torch.ones(1, dtype=DOUBLE)
    noise = Noise(number(0.09), number(0.0))
    return ClosedForm(
        0 * one, one, number(10.0), number(2.0), rows.posteriors()[0], noise, number(0.0), False, modes
    )


def test_an_observation_pulls_the_process_to_it_and_narrows_it():
    at, seen = number([[0.5]]), number([[14.0]])
    before, after = smooth(), smooth().conditioned(at, seen)
    mean, std = before.belief(at, 0 * seen)
    # Kalman's gain, in the node's unit: the noise variance is 4 * .09.
    gain = std.square() / (std.square() + 0.36)
    assert torch.allclose(after.forward(at, 0 * seen), mean + gain * (seen - mean), atol=0.02)
    assert torch.allclose(after.belief(at, 0 * seen)[1], (1 - gain).sqrt() * std, atol=1e-9)


def test_an_observation_between_two_modes_counts_for_the_likelier_one():
    modes = Modes(number([0.5, 0.5]), number([-3.0, 3.0]), number([0.01, 0.01]))
    std, wide = number(0.3), number(0.1)
    target, variance = modes.attributed(number([1.4, -0.4]), std, number([0.5, 0.5]), wide)
    assert torch.allclose(target, number([1.4 - 0.9, -0.4 + 0.9]), atol=1e-6)
    assert torch.allclose(variance, number([0.09 * 0.01]), atol=1e-9)
    # In the middle nothing is known: the modes cancel.
    target, _ = modes.attributed(number([0.5]), std, number([0.5]), wide)
    assert torch.allclose(target, number([0.5]))
    at, seen = number([[0.5]]), smooth().belief(number([[0.5]]), number([[0.0]]))[0] + 1.8
    assert float(smooth(modes).conditioned(at, seen).belief(at, 0 * seen)[1]) < 0.2 * float(
        smooth().conditioned(at, seen).belief(at, 0 * seen)[1]
    )


def test_a_decoder_deviates_jointly_and_takes_no_observations():
    made = Decoded(closed(False), smooth().posterior)
    root = made.joint_root(PARENTS.expand(3, 0), NOISE)
    std = made.belief(PARENTS, NOISE)[1].squeeze(-1)
    assert torch.allclose((root @ root.mT).diagonal(), std.square(), atol=1e-6)
    with pytest.raises(TypeError, match="decoder=closed_form"):
        made.conditioned(PARENTS, NOISE[:1])


def doubted(shift=0.0):
    """A process beside one under normal noise: 0.5 and 0.3 in standardised units, the second wider."""
    return replace(closed(False, shift), plain=NormalRegression(constant(0.3, 0.6), number(0.25)))


def test_a_process_beside_another_is_as_unsure_as_the_two_together():
    mean, std = doubted().belief(PARENTS, NOISE)
    assert torch.equal(mean, closed(False).belief(PARENTS, NOISE)[0])
    assert torch.allclose(std, number([[2 * (0.36 + 0.5 * 0.04) ** 0.5]]))
    # What differs is the conditional mean of the node: with noise of mean -2/3 the two agree.
    assert torch.allclose(doubted(-2 / 3).belief(PARENTS, NOISE)[1], number([[1.2]]))
    assert torch.equal(doubted().abduct(PARENTS, mean), closed(False).abduct(PARENTS, mean))


def test_without_doubts_about_the_fit_the_first_process_counts_alone():
    plain = closed(False).belief(PARENTS, NOISE)
    assert all(
        torch.equal(*pair) for pair in zip(doubted().as_fitted().belief(PARENTS, NOISE), plain, strict=True)
    )
    decoded = Decoded(closed(False), closed(False))
    assert decoded.as_fitted() is decoded


def test_two_processes_differ_everywhere_at_once():
    root = doubted().joint_root(PARENTS.expand(3, 0), NOISE)
    assert torch.allclose(root @ root.mT, number(4 * (0.36 + 0.02)).expand(3, 3), atol=1e-3)


def test_an_observation_moves_both_processes():
    at, seen = number([[0.5]]), number([[14.0]])
    plain = NormalRegression(smooth().posterior, number(0.36))
    after = replace(smooth(), plain=plain).conditioned(at, seen)
    assert after.plain is not None
    alone = replace(smooth(), noise=Noise(number(0.36), number(0.0))).conditioned(at, seen)
    own = after.plain.posterior.belief(at)
    assert all(torch.equal(*pair) for pair in zip(own, alone.posterior.belief(at), strict=True))
    apart = after.posterior.posterior_mean(at) - own[0]
    expected = 2 * (own[1].square() + 0.5 * apart.square()).sqrt()
    assert torch.allclose(after.belief(at, 0 * seen)[1].flatten(), expected.flatten())
