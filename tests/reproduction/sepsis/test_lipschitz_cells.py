"""The grid of Lipschitz constants."""

import pytest

from reproduction.record import Record
from reproduction.sepsis.lipschitz_cells import COLUMNS, LAYOUT, STAGE, Cell, cells, decreases
from tests.places import ROOT


def rows(cell, *scaled):
    return [
        dict(zip(COLUMNS, (*cell.key, fold, 10, 5, 0.0, value, 0.0), strict=True))
        for fold, value in enumerate(scaled)
    ]


def test_decreases_are_shares_of_the_free_model(tmp_path):
    record = Record(tmp_path, {STAGE: LAYOUT})
    record.add(Cell(1.0, 0.1), rows(Cell(1.0, 0.1), 8.0, 10.0), {"state": "ok"})
    assert decreases(tmp_path / LAYOUT.file) == {}, "nothing to compare with"
    record.add(Cell(None, None), rows(Cell(None, None), 9.0, 11.0), {"state": "ok"})
    assert decreases(tmp_path / LAYOUT.file) == {(1.0, 0.1): pytest.approx(10.0)}
    assert record.todo([Cell(1.0, 0.1), Cell(1.0, 0.5)]) == [Cell(1.0, 0.5)]


def test_the_committed_grid_is_whole():
    record = Record(ROOT / "docs/results/sepsis", {STAGE: LAYOUT})
    assert record.todo(cells()) == []
