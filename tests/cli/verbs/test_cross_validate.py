"""The Lipschitz grid: what each cell loses against the unconstrained one."""

import csv

import pytest

from rehearsal_torch.cli.verbs.cross_validate import GRID, TABLE, grid
from rehearsal_torch.run_folder import RunFolder


def cell(sweep, job, location, scale, scaled):
    folder = RunFolder(sweep / str(job))
    folder.write_yaml(
        "config.yaml", {"surrogate": {"mechanism": {"location_constant": location, "scale_constant": scale}}}
    )
    folder.write(TABLE, "fold,scaled\n" + "".join(f"{fold},{value}\n" for fold, value in enumerate(scaled)))


def rows(sweep):
    with (sweep / GRID).open() as file:
        return [tuple(row.values()) for row in csv.DictReader(file)]


@pytest.mark.slow
def test_cells_are_compared_with_the_unconstrained_one(tmp_path):
    cell(tmp_path, 0, 0.5, 0.1, [7.0, 9.0])
    cell(tmp_path, 1, None, None, [10.0, 10.0])
    cell(tmp_path, 10, None, 0.1, [12.0, 8.0])
    (tmp_path / "2").mkdir()
    grid(tmp_path)
    assert rows(tmp_path) == [
        ("0.5", "0.1", "8.0", "20.0"),
        ("", "", "10.0", "0.0"),
        ("", "0.1", "10.0", "0.0"),
    ]
    assert (tmp_path / "figures/lipschitz_grid.png").is_file()


def test_without_the_unconstrained_cell_there_is_nothing_to_compare_with(tmp_path):
    cell(tmp_path, 0, 0.5, 0.1, [7.0])
    grid(tmp_path)
    assert rows(tmp_path) == [("0.5", "0.1", "7.0", "")]
    assert not (tmp_path / "figures").exists()


def test_a_sweep_without_results_leaves_no_grid(tmp_path):
    grid(tmp_path)
    with pytest.raises(FileNotFoundError):
        rows(tmp_path)
