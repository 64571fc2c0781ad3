"""The Lipschitz grid: what each cell loses against the unconstrained one."""

import csv

import pytest

from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.verbs import cross_validate as verb
from rehearsal_torch.cli.verbs.cross_validate import GRID, TABLE, grid
from rehearsal_torch.files.csv_rows import read_rows
from rehearsal_torch.methods.run_parts import build
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.training.cross_validation import cross_validate as by_hand
from rehearsal_torch.user_error import UserError

SMALL = (
    "dataset.patients=20",
    "surrogate.member.mechanism.hidden=4",
    "folds=2",
    "trainer.max_epochs=1",
    "trainer.progress=false",
)


@pytest.fixture
def validated(tmp_path):
    """Cross-validates in a run folder, as overrides say."""

    def done(*overrides):
        config, _ = composed(list(overrides), multirun=False)
        folder = RunFolder(tmp_path)
        folder.write_json("run.json", {})
        verb.work(config, folder, False)
        return [float(row["scaled"]) for row in read_rows(tmp_path / TABLE, ("scaled",), ("scaled",))]

    return done


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


@pytest.mark.slow
def test_folds_are_those_of_the_run_that_the_configuration_names(validated):
    config, _ = composed(list(SMALL), multirun=False)
    run = build(config)
    expected = by_hand(
        run.problem.episodes("train"),
        lambda: run.surrogate(settled=False),
        lambda: run.trainer(None),
        2,
        run.seed,
    )
    assert validated(*SMALL) == [score.scaled for score in expected.folds]


@pytest.mark.slow
def test_other_data_another_surrogate_and_no_trainer_are_refused(validated):
    with pytest.raises(UserError, match="dataset: cross-validation needs a data set of episodes; got Loan"):
        validated("dataset=bank", "dataset.size.rows=30", "decision=care")
    with pytest.raises(UserError, match=r"decision: this decides for cases with .*; SepsisSimulated has"):
        validated("dataset.patients=20", "surrogate=linear_structural")
    with pytest.raises(UserError, match="trainer: cross-validation trains in each fold"):
        validated("dataset.patients=20", "surrogate.member.mechanism.hidden=4", "trainer=none")
