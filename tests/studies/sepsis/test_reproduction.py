import csv
import json

import pytest

from rehearsal_torch.studies.reproduce import main
from rehearsal_torch.studies.sepsis import documents, lipschitz_cells, reproduction, searches
from rehearsal_torch.studies.sepsis.episode_rows import COLUMNS, Case
from rehearsal_torch.studies.sepsis.lipschitz_cells import Cell
from rehearsal_torch.studies.sepsis.searches import BOUND, DEFAULT, Planned

pytestmark = pytest.mark.slow

# Nine actions instead of 25: the searches go through a tenth of the sequences of three changes.
TINY = (
    "trainer.max_epochs=1",
    "surrogate.mechanism.hidden=6",
    "surrogate.levels=3",
    "dataset.patients=60",
)


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def small(monkeypatch):
    bound = Case(12, 1, BOUND, "", 0, 1.0)
    few = {
        "lipschitz": [Planned(DEFAULT)],
        "samples": [],
        "changes": [Planned(bound), Planned(Case(12, 3, BOUND, "", 0, 1.0))],
        "anchors": [],
    }
    few["truth"] = [Planned(Case(12, changes, BOUND, "", 0, 1.0)) for changes in (1, 2, 3)]
    for module in (searches, documents):
        monkeypatch.setattr(module, "planned", few.__getitem__)
    monkeypatch.setattr(lipschitz_cells, "cells", lambda: [Cell(None, None), Cell(1.0, 0.1)])


def run(folder, *stages, episodes=2, settings=TINY):
    typed = [f"stages=[{','.join(stages)}]", f"out={folder / 'out'}", f"cache={folder / 'cache'}"]
    return main(["study=sepsis", *typed, "workers=1", "grid_epochs=1", f"episodes={episodes}", *settings])


def test_the_study_runs_end_to_end_and_goes_on_where_it_ended(small, tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert run(tmp_path, "changes", episodes=1) == 0
    first = (out / "episodes.csv").read_text()
    assert first.splitlines()[0] == ",".join(COLUMNS)
    assert len(rows(out / "episodes.csv")) == 2

    assert run(tmp_path, "lipschitz", "changes", "truth", "grid", "figures") == 0
    assert (out / "episodes.csv").read_text().startswith(first)
    assert len(rows(out / "episodes.csv")) == 6
    found = {path.stem for path in (out / "figures").glob("*.svg")}
    assert found == {
        "efficiency",
        "improvement_by_changes",
        "improvement",
        "patient",
        "lipschitz_grid",
        "truth_errors",
    }
    grid = rows(out / "lipschitz_grid.csv")
    assert {(row["L_h"], row["L_phi"]) for row in grid} == {("", ""), ("1", "0.1")}
    assert len(grid) == 2 * 5
    told = json.loads((out / "run.json").read_text())
    assert len(told["commands"]) == 2
    assert told["limit_seconds"] == 60
    assert told["commit"] is None or len(told["commit"]) >= 40
    assert "Values under the true distribution, k = 3" in (out / "README.md").read_text()

    def refuse(*_):
        raise AssertionError("a row that is there was computed again")

    monkeypatch.setattr(reproduction, "solved", refuse)
    monkeypatch.setattr(reproduction, "evaluated", refuse)
    monkeypatch.setattr(lipschitz_cells, "validated", refuse)
    before = {name: (out / name).read_text() for name in ("episodes.csv", "truth.csv", "lipschitz_grid.csv")}
    assert run(tmp_path, "lipschitz", "changes", "truth", "grid") == 0
    assert before == {name: (out / name).read_text() for name in before}


def test_all_searches_of_a_patient_agree_on_the_optimum(small, tmp_path):
    assert run(tmp_path, "lipschitz", "changes", episodes=2) == 0
    three = [row for row in rows(tmp_path / "out" / "episodes.csv") if row["k"] == "3"]
    assert {row["proven"] for row in three} == {"True"}
    for episode in {row["episode"] for row in three}:
        values = [float(row["value"]) for row in three if row["episode"] == episode]
        assert len(values) == 2
        assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_rows_of_other_models_are_not_mixed_in(small, tmp_path, capsys):
    assert run(tmp_path, "changes", episodes=1) == 0
    assert run(tmp_path, "changes", episodes=1, settings=(*TINY[:-1], "dataset.patients=61")) == 2
    assert "another configuration" in capsys.readouterr().err
    (tmp_path / "cache").rename(tmp_path / "elsewhere")
    assert run(tmp_path, "changes", episodes=1, settings=(*TINY[:-1], "dataset.patients=61")) == 2
    assert "came from other models" in capsys.readouterr().err


def test_more_episodes_than_patients_are_refused(small, tmp_path, capsys):
    assert run(tmp_path, "changes", episodes=500) == 2
    assert "500 episodes were asked for" in capsys.readouterr().err
