"""Sweeps: their folder, their table, and the shards in them."""

import json

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.job import statuses
from rehearsal_torch.cli.main import main as program
from rehearsal_torch.cli.sweep import begin, finish
from rehearsal_torch.cli.verbs.collect import collect, main
from rehearsal_torch.cli.verbs.decide import decide
from rehearsal_torch.run_folder import SECONDS, RunFolder


def shard(sweep, job, number, indices, shards=2, state="ok", **config):
    folder = RunFolder(sweep / str(job))
    folder.write_yaml(
        "config.yaml", {"name": "toy", "shard": number, "shards": shards, "out": str(job), **config}
    )
    folder.write_json(
        "run.json",
        {"seconds": 1.5, "overrides": [f"shard={number}", f"shards={shards}", "seed=0"], "script": "decide"},
    )
    folder.write(
        "decisions.jsonl",
        "".join(f'{{"index": {index}, "status": "no_action", "value":  {index}.50}}\n' for index in indices),
    )
    folder.write_metrics([(index, SECONDS, 0.1) for index in indices])
    folder.close(state, "", [], 1.5)


def test_lines_are_merged_as_they_are_in_the_order_of_their_indices(tmp_path):
    shard(tmp_path, 0, 1, [1, 3])
    shard(tmp_path, 1, 0, [0, 2, 4])
    (merged,) = collect(tmp_path)
    assert merged.path == tmp_path
    assert (tmp_path / "decisions.jsonl").read_text() == "".join(
        f'{{"index": {index}, "status": "no_action", "value":  {index}.50}}\n' for index in range(5)
    )
    assert [step for step, _, _ in merged.metrics()] == list(range(5))
    assert merged.read_json("run.json") == {
        "seconds": 3.0,
        "overrides": ["seed=0"],
        "script": "decide",
        "merged_from": 2,
    }
    assert merged.read_yaml("config.yaml") == {"name": "toy", "shard": 0, "shards": 1, "out": str(tmp_path)}


def test_several_cohorts_are_kept_apart(tmp_path):
    for job, (seed, number) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        shard(tmp_path, job, number, [number], seed=seed)
    assert [merged.path.name for merged in collect(tmp_path)] == ["cohort-0", "cohort-1"]
    assert [merged.read_yaml("config.yaml")["seed"] for merged in collect(tmp_path)] == [0, 1]


def test_what_is_not_whole_is_not_merged(tmp_path, capsys):
    with pytest.raises(UserError, match="holds no shards"):
        collect(tmp_path)
    with pytest.raises(UserError, match="there is no such folder"):
        collect(tmp_path / "nothing")
    shard(tmp_path, 0, 0, [0])
    with pytest.raises(UserError, match="shard 1 of 2 is missing or unfinished"):
        collect(tmp_path)
    shard(tmp_path, 1, 1, [1], state="failed")
    assert main([str(tmp_path)]) == 2
    assert "shard 1 of 2 is missing or unfinished" in capsys.readouterr().err
    assert not (tmp_path / "decisions.jsonl").exists()
    assert main([]) == 2


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
    assert f"Go on with: python scripts/decide.py resume={tmp_path} hydra/launcher=joblib" in out
    assert "killed, or out of memory" in out
    assert "never started" in out


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


def test_a_damaged_shard_is_named_and_what_was_merged_stays(tmp_path, capsys):
    shard(tmp_path, 0, 0, [0, 2])
    shard(tmp_path, 1, 1, [1, 3])
    collect(tmp_path)
    merged = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with (tmp_path / "1/decisions.jsonl").open("a") as file:
        file.write("hello\n")
    assert main([str(tmp_path)]) == 2
    assert "1/decisions.jsonl, line 3: " in capsys.readouterr().err
    (tmp_path / "0/config.yaml").write_text("shards: many\n")
    assert main([str(tmp_path)]) == 2
    assert "shards: expected a whole number; got many" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == merged
    assert finish(tmp_path, [["shard=0"], ["shard=1"]], ["python", "scripts/decide.py"]) == 1
    assert "Not merged: " in capsys.readouterr().err


@pytest.mark.slow
def test_a_key_that_only_the_swept_decisions_have_reaches_every_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few = ["dataset=bank", "dataset.rows=30", "dataset.contexts=1", "workers=1", "out=sweep"]
    assert program(decide, ["-m", "decision=none,micns", "surrogate.draws=16", *few]) == 0
    for job, decision in enumerate(("none", "micns")):
        folder = RunFolder(tmp_path / "sweep" / str(job))
        assert folder.read_yaml("config.yaml")["surrogate"]["draws"] == 16
        run = folder.read_json("run.json")
        assert {f"decision={decision}", "surrogate.draws=16"} <= set(run["overrides"])
        assert run["kind"] == "rehearse"
