"""The table over trainings, from rows that can be checked by hand, and one small training."""

import csv

import pytest

from rehearsal_torch.studies.reproduce import main
from rehearsal_torch.studies.sepsis import trainings
from rehearsal_torch.studies.sepsis.trainings import CLAIM, COLUMNS, Training, spread


def row(training, value, quantity="improvement", feature=CLAIM, estimator="true"):
    cells = (str(training), "0", "recommended", quantity, feature, estimator, str(value))
    return dict(zip(COLUMNS, cells, strict=True))


def test_means_are_those_of_the_trainings():
    rows = [row(0, 0.02), row(0, 0.04), row(1, -0.01), row(1, 0.02), row(0, 5.0, "rmse", "GCS")]
    _, _, improvement, worse = spread(rows)
    cells = [each.strip() for each in improvement.strip("| ").split(" | ")]
    assert cells[4:] == ["1.75", "1.77", "0.5", "3", "2", "2"]
    cells = [each.strip() for each in worse.strip("| ").split(" | ")]
    assert (cells[1], *cells[4:]) == ("worse off", "25", "35.4", "0", "50", "2", "2")
    assert spread([]) == []


def test_there_are_four_trainings():
    assert [each.key for each in trainings.trainings()] == [("0",), ("1",), ("2",), ("3",)]


@pytest.mark.slow
def test_each_training_has_its_rows_and_is_made_once(tmp_path, monkeypatch):
    monkeypatch.setattr(trainings, "trainings", lambda: [Training(0), Training(1)])
    tiny = ["trainer.max_epochs=1", "surrogate.mechanism.hidden=6", "surrogate.levels=3"]
    typed = ["study=sepsis", f"out={tmp_path / 'out'}", f"cache={tmp_path / 'cache'}", "workers=1"]
    typed += ["stages=[trainings]", "episodes=2", "dataset.patients=60", *tiny]
    assert main(typed) == 0
    assert not (tmp_path / "cache").exists()
    with (tmp_path / "out" / "trainings.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {each["training"] for each in rows} == {"0", "1"}
    claimed = [each for each in rows if each["estimator"] == "claimed"]
    assert len(claimed) == 4
    assert {each["feature"] for each in claimed} == {CLAIM}
    before = (tmp_path / "out" / "trainings.csv").read_text()
    monkeypatch.setattr(trainings, "retrained", lambda *_: pytest.fail("made again"))
    assert main(typed) == 0
    assert (tmp_path / "out" / "trainings.csv").read_text() == before
