"""How many units had a dose in a step like this one, counted one by one, and what follows for searches."""

import pytest
import torch

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.surrogates.dose_support import CELLS, EACH, OTHERS, SHARE, ComparableSteps

DOUBLE = torch.float64


def steps(units=60, length=10, features=3, seed=0, wide=1.0):
    """Features, actions of two doses of three levels, and which rows begin a unit."""
    draws = torch.Generator().manual_seed(seed)
    rows = units * length
    features = wide * torch.randn(rows, features, generator=draws, dtype=DOUBLE)
    actions = torch.randint(9, (rows,), generator=draws)
    begins = torch.arange(rows) % length == 0
    return features, actions, begins


def fitted(*examples):
    doses = DoseLevels(["drug", "water"], 3).fix([[0.0, 1.0, 2.0], [0.0, 5.0, 9.0]])
    part = ComparableSteps(examples[0].shape[1], doses)
    part.solve(*examples)
    assert not part.faults()
    return part


def cell_of(part, features):
    away = (features - part.centre) / part.spread
    return (away.unsqueeze(1) - part.middles).norm(dim=-1).argmin(1)


def test_a_unit_counts_once_in_a_cell():
    features, actions, begins = steps()
    part = fitted(features, actions, begins)
    cells, unit = cell_of(part, features), begins.cumsum(0) - 1
    found = part.counts(features)
    assert found.shape == (600, 1, 9), "of one pair of doses, the number of which is that of the action"
    for row in (0, 17, 333, 599):
        for action in (0, 4, 8):
            units = unit[(actions == action) & (cells == cells[row])].unique()
            assert int(found[row, 0, action]) == len(units)


@pytest.mark.parametrize("units", [20, 60, 400])
def test_cells_are_as_fine_as_leaves_what_was_given_with_five_others(units):
    features, actions, begins = steps(units)
    part = fitted(features, actions, begins)
    own = part.counts(features)[:, 0].gather(1, actions.unsqueeze(1))[:, 0]
    share = float((own[actions > 0] > OTHERS).double().mean())
    assert share >= SHARE or len(part.middles) == 1
    assert len(part.middles) <= min(CELLS, len(features) // EACH)


def test_neither_unit_nor_order_of_columns_matters():
    features, actions, begins = steps()
    found = fitted(features, actions, begins).counts(features)
    scaled = features * torch.tensor([1e3, 1.0, 1e-6], dtype=DOUBLE) + 7
    assert torch.equal(fitted(scaled, actions, begins).counts(scaled), found)


def test_a_dose_that_nobody_had_where_states_are_high_has_no_units_there():
    features, actions, begins = steps(300)
    high = features[:, 0] > 0.5
    actions = torch.where(high, actions % 3, actions)  # no drug
    part = fitted(features, actions, begins)
    found, edge = part.counts(features)[:, 0], features[:, 0]
    assert float((found[edge > 1.5, 3:] >= 5).double().mean()) < 0.02
    assert int(found[edge > 1.5, :3].min()) >= 5
    assert int(found[edge < -0.5, 3:].max()) >= 5


def test_a_state_beyond_those_of_its_cell_is_comparable_with_none():
    features, actions, begins = steps()
    part = fitted(features, actions, begins)
    assert int(part.counts(features).sum(-1).min()) > 0
    assert int(part.counts(100 * features[:20]).max()) == 0


def test_doses_that_were_never_given_together_are_told_from_those_that_were():
    features, actions, begins = steps(300)
    actions = torch.where((actions // 3 > 0) & (actions % 3 > 0), actions % 3, actions)
    doses = DoseLevels(["a", "b", "c"], 3).fix([[0.0, 1.0, 2.0]] * 3)
    part = ComparableSteps(3, doses)
    part.solve(features, 9 * (actions // 3) + 3 * (actions % 3), begins)
    assert part.pairs == [(0, 1), (0, 2), (1, 2)]
    never, alone = (part.codes(torch.tensor(number)) for number in (9 + 3, 9))
    counts = part.counts(features[:50])
    assert int(counts[:, 0, never[0]].max()) == 0
    assert int(counts[:, 0, alone[0]].max()) >= 5


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda part: {"units": torch.empty(0, dtype=DOUBLE)}, "units: expected numbers"),
        (lambda part: {"middles": torch.empty(0, dtype=DOUBLE)}, "middles: expected numbers"),
        (lambda part: {"spread": 0 * part.spread}, "spread: a number is too low"),
        (lambda part: {"units": part.units - 1e3}, "units: a number is too low"),
        (lambda part: {"reach": part.reach[1:]}, "expected the size"),
    ],
)
def test_damaged_cells_are_found(damage, said):
    part = fitted(*steps())
    for name, value in damage(part).items():
        setattr(part, name, value)
    assert any(said in fault for fault in part.faults())
