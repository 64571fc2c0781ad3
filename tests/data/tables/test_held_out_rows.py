"""Which rows are held out."""

import pytest

from rehearsal_torch.data.tables.held_out_rows import held_out_rows


def test_a_fifth_is_held_out_unless_the_cases_are_elsewhere():
    assert len(held_out_rows(100, None, "random", 0, False, None)) == 20
    assert len(held_out_rows(40, None, "random", 0, False, None)) == 10
    assert held_out_rows(100, None, "random", 0, True, None) == []
    assert held_out_rows(100, 0.1, "last", 0, True, None) == list(range(90, 100))


def test_the_choice_depends_on_the_seed_alone():
    first = held_out_rows(100, 0.3, "random", 3, False, None)
    assert first == sorted(first) == held_out_rows(100, 0.3, "random", 3, False, None)
    assert first != held_out_rows(100, 0.3, "random", 4, False, None)


def test_units_stay_together():
    units = [str(row // 5) for row in range(100)]
    found = held_out_rows(100, 0.2, "random", 0, False, units)
    assert len(found) == 20
    assert {units[row] for row in found}.isdisjoint(units[row] for row in range(100) if row not in found)


def test_too_few_rows_are_told():
    with pytest.raises(ValueError, match="12 rows: 10 held out and 2 to learn from"):
        held_out_rows(12, None, "random", 0, False, None)
