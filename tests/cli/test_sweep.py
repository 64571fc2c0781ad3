"""Sweeps: their folder, their table, and the shards in them."""

import csv
import json

import pytest

from rehearsal_torch.cli.main import begin_sweep
from rehearsal_torch.cli.verbs.collect import crossed, finish, statuses
from rehearsal_torch.run_folder import SECONDS, RunFolder
from rehearsal_torch.user_error import UserError
from tests.cli.verbs.test_collect import shard


def test_every_job_has_a_status_even_those_that_said_nothing(tmp_path, capsys):
    shard(tmp_path, 0, 0, [0])
    shard(tmp_path, 1, 1, [1])
    (tmp_path / "1/status.json").unlink()
    jobs = [["shard=0", "out=x"], ["shard=1"], ["shard=2"]]
    found = statuses(tmp_path, jobs)
    assert [row["state"] for row in found] == ["ok", "failed", "skipped"]
    assert json.loads((tmp_path / "2/status.json").read_text())["overrides"] == ["shard=2"]
    assert finish(tmp_path, jobs, "decide", again=["hydra/launcher=joblib"]) == 1
    out = capsys.readouterr().out
    assert f"Continue with: python scripts/decide.py resume={tmp_path} hydra/launcher=joblib" in out
    assert "killed, or out of memory" in out
    assert "never started" in out


def test_a_job_that_still_runs_is_no_failed_one_and_its_folder_stays_as_it_is(tmp_path, capsys):
    shard(tmp_path, 0, 0, [0])
    (tmp_path / "0/status.json").unlink()
    with RunFolder(tmp_path / "0").lock(), RunFolder(tmp_path / "1").lock():
        before = sorted(path.name for path in tmp_path.glob("*/*"))
        assert finish(tmp_path, [["shard=0"], ["shard=1"]], "decide") == 1
        assert sorted(path.name for path in tmp_path.glob("*/*")) == before
    out = " ".join(capsys.readouterr().out.split())
    assert (out.count("running"), out.count("in use by process")) == (2, 2)
    assert "killed" not in out
    assert "never started" not in out


def test_a_sweeps_folder_is_its_own(tmp_path):
    begin_sweep(tmp_path / "new", "decide", ["seed=0,1", "workers=1"])
    begin_sweep(tmp_path / "new", "decide", ["seed=0,1", "hydra/launcher=joblib"])
    kept = ["seed=0,1", "workers=1"]
    assert RunFolder(tmp_path / "new").read_json("sweep.json") == {
        "script": "decide",
        "overrides": kept,
        "decisive": ["seed=0,1"],
    }
    with pytest.raises(UserError, match="another sweep"):
        begin_sweep(tmp_path / "new", "decide", ["seed=0,2"])
    with pytest.raises(UserError, match="holds no sweep"):
        begin_sweep(tmp_path, "decide", ["seed=0,1"])


def test_a_sweep_whose_shards_cannot_be_merged_ends_with_the_reason(tmp_path, capsys):
    shard(tmp_path, 0, 0, [0, 2])
    shard(tmp_path, 1, 1, [1, 3])
    (tmp_path / "0/config.yaml").write_text("shards: many\n")
    assert finish(tmp_path, [["shard=0"], ["shard=1"]], "decide") == 1
    assert "Not merged: " in capsys.readouterr().err


def job(sweep, number, overrides, auf=0.6, scored=True):
    names = dict(text.lstrip("+").partition("=")[::2] for text in overrides)
    folder = RunFolder(sweep / str(number))
    folder.write_yaml("config.yaml", {"seed": int(names.get("seed", 0))})
    folder.write_json(
        "run.json",
        {
            "kind": "rehearse",
            "choices": {key: names[key] for key in ("dataset", "decision")},
            "overrides": overrides,
        },
    )
    folder.write_metrics([(0, SECONDS, 0.1)])
    one = {"index": 0, "kind": "rehearse", "identity": "0", "status": "may", "alteration": {"a": 1.0}}
    one |= {
        "estimate": {"point": 0.7, "of": "chance", "lower": 0.5, "upper": 0.9, "level": 0.95},
        "baseline": {"point": 0.1, "of": "chance"},
    }
    one |= {
        "given": {"x": 0.0},
        "score": {"probability": auf, "no_action": 0.2, "oracle": 0.8} if scored else {},
    }
    folder.write("decisions.jsonl", json.dumps(one) + "\n")
    folder.close("ok", "decided for 1 situations", overrides, 1.0)
    return overrides


def as_user_error(sweep, number, overrides, state="ok"):
    return {"state": state, "folder": str(sweep / str(number)), "overrides": overrides}


def test_the_cross_table_is_the_last_thing_a_sweep_prints(tmp_path, capsys):
    combinations = [
        (world, method, seed) for world in ("bank", "reef") for method in ("none", "cme") for seed in (0, 1)
    ]
    jobs = [
        job(
            tmp_path,
            number,
            ["+experiment=auf", f"dataset={world}", f"decision={method}", f"seed={seed}"],
            0.2 if method == "none" else 0.5 + 0.1 * seed,
        )
        for number, (world, method, seed) in enumerate(combinations)
    ]
    assert finish(tmp_path, jobs, "decide") == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines[-1].startswith("└")
    assert [cell.strip() for cell in lines[-2].strip("│").split("│")] == [
        "reef",
        "0.200",
        "0.550 ± 0.071",
        "0.800",
    ]
    with (tmp_path / "table1.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert rows[2] == {
        "dataset": "bank",
        "method": "cme",
        "seed": "0",
        "context": "0",
        "auf": "0.5",
        "oracle": "0.8",
        "no_action": "0.2",
        "estimate": "0.7",
        "lower": "0.5",
        "upper": "0.9",
        "seconds": "0.1",
    }
    assert (tmp_path / "table1.md").read_text().splitlines()[2] == "| bank | 0.200 | 0.550 ± 0.071 | 0.800 |"
    assert (tmp_path / "figures/table1.png").stat().st_size > 5000


def test_whatever_else_varies_names_the_method_or_the_world(tmp_path):
    shared = ["+experiment=auf", "dataset=bank", "decision=cme", "objective.level=0.9"]
    own = [
        ["surrogate.sharpness=3", "dataset.rows=200"],
        ["surrogate.sharpness=9", "dataset.rows=200"],
        ["surrogate.sharpness=3", "dataset.rows=500"],
    ]
    jobs = [
        as_user_error(tmp_path, number, job(tmp_path, number, [*shared, *each]))
        for number, each in enumerate(own)
    ]
    crossed(tmp_path, jobs)
    lines = (tmp_path / "table1.md").read_text().splitlines()
    assert (
        lines[0] == "| world | no action | cme surrogate.sharpness=3 | cme surrogate.sharpness=9 | oracle |"
    )
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| bank rows=200", "| bank rows=500"]


def test_sweeps_of_anything_else_end_as_they_did(tmp_path, capsys):
    jobs = [job(tmp_path, 0, ["dataset=ward", "decision=greedy"], scored=False)]
    assert finish(tmp_path, jobs, "decide") == 0
    assert not (tmp_path / "table1.csv").exists()
    assert "Written" not in capsys.readouterr().out
    failed = [as_user_error(tmp_path, 1, job(tmp_path, 1, ["dataset=bank", "decision=cme"]), "failed")]
    assert crossed(tmp_path, failed) == ""
