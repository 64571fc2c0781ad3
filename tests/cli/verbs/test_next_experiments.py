"""What to run next, as files: the initial design, and tables with rows to be filled in; whole sessions."""

import json

import numpy as np
import pandas as pd
import pytest
import yaml

from rehearsal_torch.cli.verbs.decide import write_initial_design, write_proposals
from rehearsal_torch.console_command import main
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.trials.trials_file import OwnTrials
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.run_folder import RunFolder
from tests.problems.conftest import TRIALS, experiments, trials  # noqa: F401

MEASURED = ["ambient", "temperature", "waste", "yield"]


def test_the_initial_design_is_a_table_to_be_filled_in(trials, tmp_path, capsys):  # noqa: F811
    problem, folder = OwnTrials(trials(data=None)), RunFolder(tmp_path / "run")
    assert write_initial_design(problem, folder, 0) == "0 experiments, no model yet; 6 to run first"
    design = np.genfromtxt(tmp_path / "run/start_design.csv", delimiter=",", names=True)
    blank = pd.read_csv(tmp_path / "run/next.csv")
    assert list(blank.columns) == [*problem.task.actions, *problem.task.nodes]
    assert blank[MEASURED].isna().all(axis=None)
    np.testing.assert_allclose(blank["valve"], design["valve"], rtol=1e-9)
    assert f"{tmp_path / 'run' / 'next.csv'} is this table with these rows, to be filled in." in (
        capsys.readouterr().out
    )
    # The rows are under way, and nothing else is to be run.
    blank.to_csv(tmp_path / "experiments.csv", index=False)
    told = write_initial_design(OwnTrials(trials(data="experiments.csv")), RunFolder(tmp_path / "two"), 0)
    assert told.startswith("0 experiments, and 6 that wait for a result, no model yet; nothing else")
    out = capsys.readouterr().out
    assert "experiments.csv has 0 experiments, and 6 that wait for a result (a model needs 5 completed" in out
    assert not (tmp_path / "two/next.csv").exists()
    assert write_initial_design(OwnTrials(_with(trials, tmp_path, experiments())), folder, 0) == ""


def test_an_outcome_that_was_always_the_same_is_answered_with_the_start_design(trials, tmp_path, capsys):  # noqa: F811
    """It was refused: take it out of the nodes."""
    table = experiments().assign(**{"yield": 0.0})
    table["state"] = ["failed"] + [None] * (len(table) - 1)
    told = write_initial_design(OwnTrials(_with(trials, tmp_path, table)), RunFolder(tmp_path / "run"), 0)
    assert told == "7 experiments, and 1 that failed, no model yet; 1 to run first"
    assert "(yield was 0 in all 7 experiments). Run these" in capsys.readouterr().out
    found = pd.read_csv(tmp_path / "run/next.csv")
    assert (len(found), found.loc[0, "state"]) == (9, "failed")
    assert found.loc[8, [*MEASURED, "state"]].isna().all()


def _with(write, folder, table):
    table.to_csv(folder / "experiments.csv", index=False)
    return write()


def test_proposals_are_appended_to_all_columns_of_the_table(trials, tmp_path):  # noqa: F811
    table = experiments().assign(note="warm")
    problem, folder = OwnTrials(_with(trials, tmp_path, table)), RunFolder(tmp_path / "run")
    made = [{"index": 0, "status": "may", "alteration": {"valve": 0.25, "dose": 2.0}}]
    folder.write("decisions.jsonl", "".join(json.dumps(each) + "\n" for each in made))
    assert write_proposals(problem, folder) == str(tmp_path / "run" / "next.csv")
    found = pd.read_csv(tmp_path / "run/next.csv")
    pd.testing.assert_frame_equal(found.head(8), table, check_dtype=False)
    assert found.loc[8, ["valve", "dose"]].tolist() == [0.25, 2]
    assert found.loc[8, [*MEASURED, "note"]].isna().all()


def test_nothing_is_written_where_nothing_is_proposed(trials, tmp_path):  # noqa: F811
    folder = RunFolder(tmp_path / "run")
    assert write_proposals(Loan(size=SampleSize(rows=20)), folder) == ""
    folder.write("decisions.jsonl", '{"index": 0, "status": "leave", "alteration": null}\n')
    assert write_proposals(OwnTrials(trials()), folder) == ""
    assert not (tmp_path / "run/next.csv").exists()


def lines(run):
    return [json.loads(line) for line in (run / "decisions.jsonl").read_text().splitlines()]


def measured(row):
    """What the experiment of a row brings."""
    temperature = 16 + 40 * row["valve"]
    reward = 5 - (temperature - 35) ** 2 / 100 - (row["dose"] - 2) ** 2
    return {"ambient": 16.1, "temperature": temperature, "waste": row["dose"] + 0.3, "yield": reward}


def filled(file, places):
    table = pd.read_csv(file)
    for place in places:
        for name, value in measured(table.loc[place]).items():
            table.loc[place, name] = value
    table.to_csv("experiments.csv", index=False)


@pytest.mark.bench
def test_a_session_of_tables_that_are_filled_in(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "problem.yaml").write_text(yaml.safe_dump({**TRIALS, "limits": None, "method": "excbo"}))
    experiments().to_csv("experiments.csv", index=False)
    proposed = []
    # Two proposals, the second while the first is under way.
    for number in (1, 2):
        assert main(["decide", "problem.yaml", "workers=1", "quiet=true", f"out=run{number}"]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert f"(it is the last row of run{number}/next.csv, to be filled in)" in out
        proposed.append(pd.read_csv(f"run{number}/next.csv").loc[7 + number, ["valve", "dose"]].tolist())
        (tmp_path / "experiments.csv").write_bytes((tmp_path / f"run{number}/next.csv").read_bytes())
    assert proposed[0] != proposed[1]
    (first,), (second,) = (lines(tmp_path / f"run{number}") for number in (1, 2))
    assert (first["identity"], second["identity"]) == ("experiment 9", "experiment 10")
    assert second["trace"]["pending"] == 1
    assert [second["alteration"][name] for name in ("valve", "dose")] == proposed[1]
    # Claims follow from what was measured, which is the same.
    assert second["recommendation"]["dose"] == first["recommendation"]["dose"]
    assert second["estimate"]["point"] == pytest.approx(first["estimate"]["point"], abs=0.05)
    assert main(["check", "problem.yaml"]) == 0
    out = capsys.readouterr().out
    assert "no faults. 8 experiments of experiments.csv" in out
    assert "2 rows without a value of yield or waste wait for their result (lines 10, 11)" in out
    # Both are filled in, and learnt from.
    filled("run2/next.csv", [8, 9])
    assert main(["check", "problem.yaml"]) == 0
    out = capsys.readouterr().out
    assert "no faults. 10 experiments of experiments.csv" in out
    assert "wait" not in out
    assert main(["decide", "problem.yaml", "workers=1", "quiet=true", "out=run3"]) == 0
    (third,) = lines(tmp_path / "run3")
    assert third["identity"] == "experiment 11"
    assert "pending" not in third["trace"]
    assert len(pd.read_csv("run3/next.csv")) == 11
    assert yaml.safe_load((tmp_path / "run3/data.yaml").read_text())["rows"] == 10
