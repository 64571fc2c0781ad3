"""What is usually done: chances of levels and draws of doses, as the rows have them."""

import pytest
import torch

from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.outcome.behaviour_policy import MOST, UsualAction

SETTINGS = (20, 100, 8)


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def fitted(levels, given, actions, *units):
    made = UsualAction(actions.shape[1], levels, SETTINGS, 3)
    made.solve(given, actions, *units)
    return made


def usual(made, given, blocks=20, points=64):
    """Actions and weights at one z, in all blocks and points."""
    drawn = made.draws(blocks, points, generator(0))
    return made.usual(drawn, given.expand(blocks, points, -1))


def test_doses_are_those_of_the_rows_with_their_residuals():
    given = normal(800, 2)
    actions = given[:, :1] - 0.5 * given[:, 1:] + 0.3 * normal(800, 1, seed=1)
    found, weights = usual(fitted([], given, actions), torch.tensor([1.0, 0.4], dtype=torch.float64))
    assert found.shape == (20, 64, 1, 1)
    assert torch.equal(weights, torch.ones(20, 64, 1, dtype=torch.float64))
    assert float(found.mean()) == pytest.approx(0.8, abs=0.05)
    assert float(found.std()) == pytest.approx(0.3, abs=0.03)


def test_chances_of_levels_are_those_of_the_rows():
    given = normal(1500, 1)
    chances = torch.special.ndtr(given[:, 0])
    actions = (torch.rand(1500, generator=generator(1), dtype=torch.float64) < chances).double().unsqueeze(-1)
    made = fitted([0], given, actions)
    assert made.combinations.tolist() == [[0.0], [1.0]]
    for at in (-1.0, 0.0, 1.0):
        found, weights = usual(made, torch.tensor([at], dtype=torch.float64))
        assert torch.equal(found[..., 0], made.combinations[:, 0].expand(20, 64, 2))
        assert float(weights[..., 1].mean()) == pytest.approx(
            float(torch.special.ndtr(torch.tensor(at))), abs=0.06
        )
        assert torch.allclose(weights.sum(-1), torch.ones(20, 64, dtype=torch.float64))


def test_rows_of_a_unit_tell_less_of_the_chances_of_levels():
    """Each row was once counted as a unit of its own."""
    units = torch.arange(600) // 20
    own = normal(30, 1, seed=2)[units]
    given = normal(600, 1)
    actions = (own + normal(600, 1, seed=3) > 0).double()
    at = torch.zeros(1, dtype=torch.float64)

    def spread(*known):
        weights = usual(fitted([0], given, actions, *known), at, blocks=100)[1]
        return float(weights[:, 0, 1].std())

    assert spread(units) > 1.5 * spread()


def test_levels_and_doses_stand_beside_each_other():
    given = normal(600, 1)
    level = (torch.arange(600) % 3).double().unsqueeze(-1)
    actions = torch.cat((given + 0.2 * normal(600, 1, seed=1), level), -1)
    found, weights = usual(fitted([1], given, actions), torch.tensor([0.5], dtype=torch.float64))
    assert found.shape == (20, 64, 3, 2)
    assert torch.equal(found[..., 1], torch.arange(3.0).double().expand(20, 64, 3))
    assert found[..., 0].mean((0, 1)).tolist() == pytest.approx([0.5] * 3, abs=0.1)
    assert weights.mean((0, 1)).tolist() == pytest.approx([1 / 3] * 3, abs=0.08)


def test_who_is_given_no_drug_has_no_dose_of_it():
    """Both were once drawn apart, so that some had a dose of a drug that they were not given."""
    given, drug = normal(600, 1), (torch.arange(600) % 2).double()
    dose = drug * (2 + 0.5 * given[:, 0] + 0.2 * normal(600, seed=1))
    found, _ = usual(fitted([1], given, torch.stack((dose, drug), -1)), torch.zeros(1, dtype=torch.float64))
    without, taken = found[..., 0].unbind(-1)
    assert float(without.abs().max()) < 0.1
    assert (float(taken.mean()), float(taken.std())) == pytest.approx((2.0, 0.2), abs=0.1)


def test_of_many_levels_none_is_forgotten_and_all_follow_what_precedes():
    """The most frequent ones were once all that was usual."""
    given = normal(1500, 1)
    level = (12 + 4 * given + 2 * normal(1500, 1, seed=1)).round().clamp(0, 24)
    made = fitted([0], given, level)
    assert len(made.combinations) > MOST
    for at in (-1.0, 1.0):
        found, weights = usual(made, torch.tensor([at], dtype=torch.float64))
        assert weights.shape[-1] == 1
        assert set(found.flatten().tolist()) <= set(range(25))
        assert float(found.mean()) == pytest.approx(12 + 4 * at, abs=0.4)
        assert float(found.std()) == pytest.approx(2.0, abs=0.3)


def test_what_all_rows_have_is_always_done():
    actions = torch.ones(100, 1, dtype=torch.float64)
    found, weights = usual(fitted([0], normal(100, 1), actions), torch.zeros(1, dtype=torch.float64))
    assert (float(found.min()), float(found.max()), float(weights.min())) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("levels", [[], [0], [1], [0, 1]])
def test_it_is_read_again(levels):
    given = normal(200, 1)
    actions = torch.stack(((given[:, 0] > 0).double(), (torch.arange(200) % 2).double()), -1)
    actions = actions + (0 if levels else 0.1) * normal(200, 2, seed=1)
    made, again = fitted(levels, given, actions), UsualAction(2, levels, SETTINGS, 3)
    again.load_state_dict(made.state_dict())
    assert again.faults() == made.faults() == []
    at = torch.zeros(1, dtype=torch.float64)
    for one, other in zip(usual(made, at, 4, 6), usual(again, at, 4, 6), strict=True):
        assert torch.equal(one, other)
