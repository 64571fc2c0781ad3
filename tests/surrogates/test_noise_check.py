"""How well the noise that a model abducts can be predicted, where it is noise and where it is error."""

import math
from types import SimpleNamespace

import pytest
import torch

from rehearsal_torch.checkpoint import load, save
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.noise_check import predictable_noise
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.fit import fit
from tests.test_checkpoint import CONFIG
from tests.toys.episodes import equation_episode, transition_model
from tests.toys.transitions import NAMES, model, observations, patients

DOUBLE = torch.float64


def rows(count: int, seed: int) -> Table:
    draws = torch.randn(count, 3, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)
    return Table.observed(("x", "a", "u"), draws)


def abducting(error: float, members: int = 2):
    """A model of one step that takes u + error sin(2 x) a for noise of its first state."""

    def noise(table: Table):
        x, a, u = table.values.T
        found = torch.stack([u + error * torch.sin(2 * x) * a, 0 * u], -1)
        return table.values[:, :2], found.unsqueeze(1).expand(-1, members, -1)

    return SimpleNamespace(noise=noise)


@pytest.mark.slow
def test_noise_cannot_be_predicted_and_error_can():
    for error, low, high in ((0.0, -0.5, 0.02), (2.0, 0.5, 1.0)):
        first, second = predictable_noise(abducting(error), rows(800, 1), rows(300, 2)).tolist()
        assert low < first < high
        assert second == 0


def test_nothing_is_said_of_few_rows_nor_of_a_model_that_abducts_none():
    for learnt, held_out in ((800, None), (800, 99), (99, 300), (30, 300), (None, 300)):
        given = [None if count is None else rows(count, count) for count in (learnt, held_out)]
        assert predictable_noise(abducting(2.0), *given).numel() == 0
    truth = equation_episode(0).surrogate
    assert predictable_noise(truth, rows(800, 1), rows(300, 2)).numel() == 0
    truth.check_noise(rows(800, 1), rows(300, 2))
    assert truth.predictable_noise is None
    assert truth.noise_shares() == {}


@pytest.mark.parametrize(("place", "stray"), [(0, math.inf), (2, math.inf), (2, math.nan), (1, -math.inf)])
def test_rows_whose_noise_is_not_finite_are_left_out(place, stray):
    given = [rows(200, 1), rows(150, 2)]
    plain = predictable_noise(
        abducting(2.0), *(Table.observed(each.names, each.values[1:]) for each in given)
    )
    for each in given:
        each.values[0, place] = stray
    assert torch.equal(predictable_noise(abducting(2.0), *given), plain)
    given[1].values[:51, place] = stray
    assert predictable_noise(abducting(2.0), *given).numel() == 0


@pytest.mark.parametrize("which", [0, 1])
def test_noise_beyond_arithmetic_is_not_judged(which):
    given = [rows(200, 1), rows(150, 2)]
    given[which].values[0, 2] = 1e300
    assert predictable_noise(abducting(2.0), *given).numel() == 0


def test_a_checkpoint_keeps_it_and_one_without_it_is_read(tmp_path):
    fitted, mechanism = transition_model(0), CONFIG["mechanism"] | {"hidden": 8}
    config = CONFIG | {"varying": ["x0", "x1"], "doses": ["drug0"], "mechanism": mechanism}
    save(fitted, config, tmp_path / "before")
    assert load(tmp_path / "before").predictable_noise.numel() == 0
    shares = torch.tensor([0.25, -0.125], dtype=DOUBLE)
    fitted.noise_check.shares = shares
    save(fitted, config, tmp_path / "after")
    assert torch.equal(load(tmp_path / "after").predictable_noise, shares)
    assert load(tmp_path / "after").noise_shares() == {"x0": 0.25, "x1": -0.125}


def observations_of(count: int, seed: int) -> Table:
    """Episodes of the model's own class."""
    return observations(count, 6, seed)


def bent(count: int, seed: int) -> Table:
    """Episodes of no location-scale class: a fold of the state, which a dose turns over."""
    found, stream = [], torch.Generator().manual_seed(seed)
    for each in patients(count, 6, seed):
        values = each.values.clone()
        for time in range(1, 6):
            sign = 1 - 2 * (values[time - 1, 4] > 0).to(DOUBLE)
            values[time, 0] = 2 * torch.sin(3 * values[time - 1, 0]) * sign + 0.3 * torch.randn(
                (), generator=stream, dtype=DOUBLE
            )
        found.append(Episode(each.identity, NAMES, values))
    return transitions(found)


@pytest.mark.slow
def test_it_speaks_where_the_world_is_of_another_class_and_not_where_it_is_of_the_models_own():
    trainer = Descent(max_epochs=60, learning_rate=1e-2, progress=False)
    for world, low, high in ((observations_of, -0.5, 0.1), (bent, 0.3, 1.0)):
        learnt, held_out = world(300, 1000), world(80, 1001)
        fitted = fit(model(hidden=32), learnt, trainer, held_out)
        assert low < fitted.noise_shares()["x"] < high
