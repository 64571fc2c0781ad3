"""Sweeps: their folder, their table, and the shards in them."""

import json

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.job import statuses
from rehearsal_torch.cli.sweep import begin, finish
from rehearsal_torch.run_folder import RunFolder
from tests.cli.verbs.test_collect import shard


def test_every_job_has_a_status_even_those_that_said_nothing(tmp_path, capsys):
    shard(tmp_path, 0, 0, [0])
    shard(tmp_path, 1, 1, [1])
    (tmp_path / "1/status.json").unlink()
    jobs = [["shard=0", "out=x"], ["shard=1"], ["shard=2"]]
    found = statuses(tmp_path, jobs)
    assert [row["state"] for row in found] == ["ok", "failed", "skipped"]
    assert json.loads((tmp_path / "2/status.json").read_text())["overrides"] == ["shard=2"]
    assert finish(tmp_path, jobs, ["python", "scripts/decide.py"], again=["hydra/launcher=joblib"]) == 1
    out = capsys.readouterr().out
    assert f"Continue with: python scripts/decide.py resume={tmp_path} hydra/launcher=joblib" in out
    assert "killed, or out of memory" in out
    assert "never started" in out


def test_a_job_that_still_runs_is_no_failed_one_and_its_folder_stays_as_it_is(tmp_path, capsys):
    shard(tmp_path, 0, 0, [0])
    (tmp_path / "0/status.json").unlink()
    with RunFolder(tmp_path / "0").lock(), RunFolder(tmp_path / "1").lock():
        before = sorted(path.name for path in tmp_path.glob("*/*"))
        assert finish(tmp_path, [["shard=0"], ["shard=1"]], ["rehearsal", "decide"]) == 1
        assert sorted(path.name for path in tmp_path.glob("*/*")) == before
    out = " ".join(capsys.readouterr().out.split())
    assert (out.count("running"), out.count("in use by process")) == (2, 2)
    assert "killed" not in out
    assert "never started" not in out


def test_a_sweeps_folder_is_its_own(tmp_path):
    begin(tmp_path / "new", "decide", ["seed=0,1", "workers=1"])
    begin(tmp_path / "new", "decide", ["seed=0,1", "hydra/launcher=joblib"])
    kept = ["seed=0,1", "workers=1"]
    assert RunFolder(tmp_path / "new").read_json("sweep.json") == {
        "script": "decide",
        "overrides": kept,
        "decisive": ["seed=0,1"],
    }
    with pytest.raises(UserError, match="another sweep"):
        begin(tmp_path / "new", "decide", ["seed=0,2"])
    with pytest.raises(UserError, match="holds no sweep"):
        begin(tmp_path, "decide", ["seed=0,1"])


def test_a_sweep_whose_shards_cannot_be_merged_ends_with_the_reason(tmp_path, capsys):
    shard(tmp_path, 0, 0, [0, 2])
    shard(tmp_path, 1, 1, [1, 3])
    (tmp_path / "0/config.yaml").write_text("shards: many\n")
    assert finish(tmp_path, [["shard=0"], ["shard=1"]], ["python", "scripts/decide.py"]) == 1
    assert "Not merged: " in capsys.readouterr().err
