"""The command of each paper, made tiny: it runs, goes on where it ended, and writes its page."""

import csv
import json

import pytest

from rehearsal_torch.user_error import UserError
from reproduction.commits import check_clean
from reproduction.plan import study
from reproduction.record import unpack
from reproduction.run import defaults, main
from reproduction.sepsis import documents as sepsis_documents
from reproduction.sepsis import jobs as sepsis_jobs
from reproduction.sepsis import lipschitz_cells, searches
from reproduction.sepsis.episode_rows import Case
from reproduction.sepsis.lipschitz_cells import Cell
from reproduction.sepsis.searches import BOUND, DEFAULT, Planned
from tests.places import ROOT
from tests.reproduction.kept import copied, paper, record_in, regenerated

PATIENTS = ["trainer.max_epochs=1", "surrogate.mechanism.hidden=6", "dataset.patients=60"]
# Paper to the arguments of a tiny run, and what its page says.
TINY = {
    "auf": (
        "stages=[table1] worlds=[bank] methods=[none,care] seeds=[0] contexts=2",
        "overrides=[dataset.size.rows=120]",
        "table1.csv",
        ["| world | no action |", "0.598 ± 0.066", "planned jobs are missing", "The NHANES generator"],
    ),
    "cbo": (
        "stages=[main] methods=[random] seeds=[0,1] rounds=2",
        "worlds=['dropwave lambda=1 sigma=0.1']",
        "traces.csv",
        ["main setting of each problem", "## Missing repeats"],
    ),
    "campaigns": (
        "stages=[others] worlds=[knobs] seeds=[0]",
        "trials=6",
        "campaigns.csv",
        ["whole numbers and texts", "| 6 | 1 |"],
    ),
    "online": (
        "stages=[rounds] worlds=[ride_hailing] methods=[qwz23,associative] settings=[0.7] seeds=[0]",
        "scenarios=100 rounds=2",
        "rounds.csv",
        ["## Table 1", "## Without bi-directional edges", "## Missing"],
    ),
    "calibration": (
        "stages=[rehearsal] worlds=[bank] methods=[care] seeds=[900]",
        "contexts=3",
        "rehearsal.csv",
        ["| bank | `care` | 1 | 3 |"],
    ),
}


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", TINY)
def test_a_paper_goes_on_where_it_ended_and_writes_its_page(tmp_path, capsys, name):
    typed, more, file, parts = TINY[name]
    words = [*typed.split(), *([more] if "'" in more else more.split()), "workers=1", f"out={tmp_path}"]
    assert main(paper(name), words) == 0
    first = (tmp_path / file).read_text()
    # A job without a line is not finished: its rows are dropped, and it begins anew.
    lines = (tmp_path / "jobs.csv").read_text().splitlines()
    (tmp_path / "jobs.csv").write_text("\n".join(lines[:-1]) + "\n")
    words[0] = words[0].replace("]", ",figures]")
    assert main(paper(name), words) == 0
    assert ": 1 jobs to do" in capsys.readouterr().out
    timed = [[{**row, "seconds": ""} for row in csv.DictReader(first.splitlines())], rows(tmp_path / file)]
    assert timed[0] == [{**row, "seconds": ""} for row in timed[1]]
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert [part for part in parts if part not in text] == []
    assert len(json.loads((tmp_path / "run.json").read_text())["commands"]) == 2


def test_the_sepsis_paper_goes_on_where_it_ended_and_writes_its_page(tmp_path, monkeypatch, capsys):
    bound = Case(12, 1, BOUND, "", 0, 1.0)
    three = Case(12, 3, BOUND, "", 0, 1.0)
    few = {"lipschitz": [DEFAULT], "samples": [], "changes": [bound, three], "anchors": [], "truth": [three]}
    for module in (searches, sepsis_documents):
        monkeypatch.setattr(module, "planned", lambda stage: [Planned(case) for case in few[stage]])
    monkeypatch.setattr(lipschitz_cells, "cells", lambda: [Cell(None, None), Cell(1.0, 0.1)])
    monkeypatch.setattr(sepsis_jobs.trainings, "trainings", lambda: [sepsis_jobs.trainings.Training(0)])
    overrides = ",".join([*PATIENTS, "surrogate.levels=3"])
    typed = ["workers=1", "episodes=2", "grid_epochs=1", f"overrides=[{overrides}]"]
    typed += [f"out={tmp_path / 'out'}", f"cache={tmp_path / 'cache'}"]
    assert main(paper("sepsis"), typed) == 0
    found = rows(tmp_path / "out/episodes.csv")
    assert len(found) == 6
    for episode in {row["episode"] for row in found}:
        values = [float(row["value"]) for row in found if row["episode"] == episode and row["k"] == "3"]
        assert values[0] == pytest.approx(values[1], abs=1e-6), "all searches find the optimum"
    assert len(rows(tmp_path / "out/lipschitz_grid.csv")) == 2 * 5
    assert {row["training"] for row in rows(tmp_path / "out/trainings.csv")} == {"0"}
    assert {path.stem for path in (tmp_path / "out/figures").glob("*.svg")} >= {"patient", "truth_errors"}
    text = (tmp_path / "out/README.md").read_text(encoding="utf-8")
    assert "### Values under the true distribution, k = 3" in text
    assert "### Several trainings of the default model" in text
    capsys.readouterr()
    assert main(paper("sepsis"), [*typed, "stages=[lipschitz,changes,truth,grid,trainings]"]) == 0
    assert capsys.readouterr().out.count(": 0 jobs to do") == 5


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("worlds=[dropwave]", "worlds: there is no dropwave"),
        ("methods=[exbo]", "Did you mean excbo"),
        ("workers=0", "expected workers of at least 1"),
        ("rounds=1.5", "rounds: expected a int; got 1.5"),
        ("search.starts=8", "An override of every job is typed in overrides=[...]"),
        ("stages=[main", "while parsing"),
    ],
)
def test_a_slip_is_told_before_anything_runs(tmp_path, capsys, typed, message):
    assert main(paper("cbo"), ["stages=[main]", f"out={tmp_path / 'new'}", typed]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert len(told.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_a_job_that_fails_says_so_and_lets_the_others_go_on(tmp_path, capsys):
    typed = ["stages=[table1]", "worlds=[bank]", "methods=[none,care]", "seeds=[0]", "workers=1"]
    assert main(paper("auf"), [*typed, f"out={tmp_path}", "overrides=[dataset.size.rows=5]"]) == 1
    lines = rows(tmp_path / "jobs.csv")
    assert [line["state"] for line in lines] == ["failed"] * 2
    assert all("size.rows: expected" in line["message"] for line in lines)
    assert "size.rows: expected" in capsys.readouterr().out
    assert not (tmp_path / "table1.csv").exists()


def test_two_processes_make_the_rows_of_one(tmp_path):
    typed = ["stages=[rehearsal]", "worlds=[bank]", "methods=[care]", "seeds=[900,901]", "contexts=2"]
    found = {}
    for workers in (1, 2):
        out = tmp_path / str(workers)
        assert main(paper("calibration"), [*typed, f"workers={workers}", f"out={out}"]) == 0
        timed = rows(out / "rehearsal.csv")
        found[workers] = sorted(str({**row, "seconds": ""}) for row in timed)
    assert found[1] == found[2]


def test_results_in_git_come_from_clean_commits(tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.commits.changed_files", lambda *given: ["a.py"])
    check_clean(tmp_path)
    with pytest.raises(UserError, match=r"clean commits only; a\.py differs from the commit"):
        check_clean(ROOT / study("auf")["out"])


@pytest.mark.parametrize(
    "name",
    [
        "auf",
        "calibration",
        "campaigns",
        *(pytest.param(each, marks=pytest.mark.bench) for each in ("cbo", "online")),
    ],
)
def test_a_page_is_that_of_its_rows(tmp_path, name):
    assert regenerated(name, tmp_path)


@pytest.mark.parametrize(("name", "stage", "count"), [("auf", "eta", 1405), ("online", "taus", 235)])
def test_what_is_committed_is_not_done_again(tmp_path, name, stage, count):
    out = copied(name, tmp_path)
    unpack(out)
    record = record_in(name, out, stage)
    assert len(record.lines) == count
    assert record.todo(paper(name).planned(name, defaults(name), stage)) == []
