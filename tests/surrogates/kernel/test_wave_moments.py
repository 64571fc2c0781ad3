import math

import pytest
import torch

from rehearsal_torch.surrogates.kernel import wave_moments
from rehearsal_torch.surrogates.kernel.wave_moments import misplaced, moments, ridge_factor, times, waves_of


def test_moments_are_sums_over_rows_whatever_the_blocks(monkeypatch):
    stream = torch.Generator().manual_seed(0)
    phases = torch.randn(7, 3, dtype=torch.float64, generator=stream)
    targets = torch.randn(7, 2, dtype=torch.float64, generator=stream)
    expected = torch.cat((phases.cos(), phases.sin()), -1) / math.sqrt(3)
    for size in (wave_moments.CHUNK, 12):
        monkeypatch.setattr(wave_moments, "CHUNK", size)
        moment, cross = moments(phases, targets)
        torch.testing.assert_close(moment, expected.mT @ expected)
        torch.testing.assert_close(cross, expected.mT @ targets)
    # The targets leave the moments as they are, to the last bit.
    assert torch.equal(moments(phases, targets[:, :0])[0], moment)
    factor = ridge_factor(moment, torch.tensor([0.5], dtype=torch.float64))
    torch.testing.assert_close(factor @ factor.mT, moment + 0.5 * torch.eye(6, dtype=torch.float64))


def test_products_of_waves_add_their_phases():
    one, other = (torch.tensor(each, dtype=torch.float64) for each in ([0.3, -2.0], [1.1, 0.4]))
    torch.testing.assert_close(times(waves_of(one), waves_of(other)), waves_of(one + other))


@pytest.mark.parametrize("places", [[0.0, 2.0], [0.0, 1.0, 3.0], [0.0, 1.0, -1.0], [0.0, 1.0, 0.5]])
def test_places_are_whole_numbers_of_rows(places):
    assert misplaced(torch.tensor([2.0, 0.0, 1.0]), 3, 3) == ""
    assert misplaced(torch.tensor(places), 3, 3).startswith("places: expected 3 whole numbers from 0 to 2;")


def test_each_fold_is_predicted_from_the_others():
    waves = torch.ones(4, 1, dtype=torch.float64)
    answers, folds = torch.tensor([1.0, 3.0, 5.0, 9.0], dtype=torch.float64), torch.tensor([0, 0, 1, 1])
    # A constant feature has nothing left to explain once the mean is taken off.
    found = wave_moments.held_out(waves, answers, folds, torch.tensor([1.0], dtype=torch.float64))
    torch.testing.assert_close(found, torch.tensor([7.0, 7.0, 2.0, 2.0], dtype=torch.float64))
