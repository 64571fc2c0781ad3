"""Held-out rows: complete ones, by whole units, the same for a seed."""

import numpy as np

from rehearsal_torch.data.tables.held_out_rows import parted

EVERY = np.ones(100, dtype=bool)


def test_a_fifth_is_held_out_unless_cases_are_elsewhere():
    past, held = parted(EVERY, None, "random", 0, False, None)
    assert len(held) == 20
    assert sorted(past + held) == list(range(100))
    assert held == sorted(held)
    assert parted(EVERY, None, "random", 0, False, None)[1] == held
    assert parted(EVERY, None, "random", 1, False, None)[1] != held
    assert parted(EVERY, None, "random", 0, True, None) == (list(range(100)), [])
    assert parted(EVERY, 0.3, "last", 0, False, None)[1] == list(range(70, 100))


def test_only_complete_rows_are_held_out_and_all_others_learnt_from():
    complete = np.arange(100) % 4 != 0
    past, held = parted(complete, 0.4, "random", 0, False, None)
    assert len(held) == 30
    assert all(complete[held])
    assert sorted(past + held) == list(range(100))
    assert parted(complete, 0.2, "last", 0, False, None)[1][-1] == 99


def test_units_are_held_out_as_a_whole_with_their_incomplete_rows():
    complete, units = np.arange(100) % 10 != 3, [f"u{row // 10}" for row in range(100)]
    past, held = parted(complete, 0.2, "random", 0, False, units)
    away = {units[place] for place in held}
    assert len(away) == 2
    assert len(held) == 18
    assert not away & {units[place] for place in past}
    assert len(past) == 80
