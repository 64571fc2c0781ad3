"""Runs from the first line to the last: alone, interrupted, in shards, in sweeps."""

import csv
import json
import signal

import pytest

from tests.scripts.run_bytes import content
from tests.scripts.typing_in import TOY, called, gone, lines, typed, typed_and_killed

FILES = [
    "config.yaml",
    "run.json",
    "status.json",
    "metrics.csv",
    "decisions.jsonl",
    "table.csv",
    "report.html",
    "checkpoint/config.yaml",
    "checkpoint/weights.safetensors",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with one finished training, which the other tests share: `trained`."""
    folder = tmp_path_factory.mktemp("place")
    answer = typed(folder, "train", *TOY, "out=trained")
    assert answer.code == 0, answer.err
    (folder / "answer.txt").write_text(answer.out)
    return folder


@pytest.fixture(scope="module")
def cohort(place):
    """All decisions of the test patients, made by one process: the reference of the others."""
    answer = called(place, "decide", *TOY, "checkpoint=trained", "out=whole", "workers=1")
    assert answer.code == 0, answer.err
    return (place / "whole/decisions.jsonl").read_bytes()


def metrics(folder):
    with (folder / "metrics.csv").open() as file:
        return [
            (row["step"], row["name"], row["value"] if row["name"] != "decision/seconds" else "")
            for row in csv.DictReader(file)
        ]


def test_training_leaves_a_whole_run_folder(place):
    run = place / "trained"
    assert [name for name in FILES if not (run / name).is_file()] == []
    assert {path.suffix for path in (run / "figures").iterdir()} == {".png", ".svg"}
    record = json.loads((run / "run.json").read_text())
    assert {"command", "seed", "versions", "commit", "data_fingerprint", "machine", "seconds"} <= set(record)
    assert record["seconds"] > 0
    assert len(record["data_fingerprint"]) == 64
    assert json.loads((run / "status.json").read_text())["state"] == "ok"
    made = lines(run)
    assert [line["index"] for line in made] == list(range(5))
    assert all(
        line["identity"] == f"patient-{line['index']}" and line["score"]["unknown"] is None for line in made
    )
    names = {name for _, name, _ in metrics(run)}
    assert {name for name in names if not name.startswith("lipschitz/")} == {
        "mechanism/train_loss",
        "mechanism/held_out_loss",
        "decision/seconds",
    }
    assert {"lipschitz/bound_largest", "lipschitz/jacobian_largest"} <= names


def test_a_training_that_was_killed_ends_like_one_that_was_not(place):
    last = place / "broken/training/mechanism/last.ckpt"
    typed_and_killed(place, "train", *TOY, "out=broken", once=last.is_file)
    assert not (place / "broken/checkpoint").exists()
    answer = called(place, "train", *TOY[:2], "resume=broken")
    assert answer.code == 0, answer.err
    for name in ("decisions.jsonl", "checkpoint/weights.safetensors"):
        assert (place / "broken" / name).read_bytes() == (place / "trained" / name).read_bytes()
    assert metrics(place / "broken") == metrics(place / "trained")


@pytest.mark.bench
def test_two_processes_share_a_training(place):
    answer = typed(place, "train", *TOY, "trainer.devices=2", "out=shared")
    assert answer.code == 0, answer.err
    # What takes seconds differs.
    found, expected = (
        [row for row in metrics(place / name) if row[1] != "decision/seconds"]
        for name in ("shared", "trained")
    )
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    for (*_, one), (*_, other) in zip(found, expected, strict=True):
        assert float(one) == pytest.approx(float(other), rel=1e-3, abs=1e-4)


def test_a_job_of_a_sweep_has_one_device(place):
    answer = typed(place, "train", "-m", *TOY, "seed=0,1", "trainer.devices=2", "out=devices")
    assert answer.code != 0
    assert "trainer.devices" in answer.err
    assert "expected one device for each job of a sweep; got 2" in answer.err
    assert "Traceback" not in answer.err


def test_decisions_that_were_killed_go_on_behind_the_last_whole_line(place, cohort):
    path = place / "stopped/decisions.jsonl"
    slow = (*TOY, "checkpoint=trained", "dataset.pause=0.8", "out=stopped")
    _, workers = typed_and_killed(
        place,
        "decide",
        *slow,
        "workers=2",
        once=lambda: path.is_file() and path.read_bytes().count(b"\n") >= 6,
    )
    assert 6 <= path.read_bytes().count(b"\n") < 20
    assert len(workers) >= 2
    assert gone(workers), "the workers outlived the run"
    with path.open("a") as file:
        file.write('{"index": 17, "ident')
    answer = called(place, "decide", *TOY[:2], "resume=stopped", "workers=1")
    assert answer.code == 0, answer.err
    assert path.read_bytes() == cohort
    assert sorted(int(step) for step, _, _ in metrics(place / "stopped")) == list(range(20))


def test_a_run_that_is_asked_to_end_says_so_and_ends_its_workers(place, cohort):
    path = place / "asked/decisions.jsonl"
    slow = (*TOY, "checkpoint=trained", "dataset.pause=0.3", "out=asked", "workers=2")

    def second():
        answer = called(place, "decide", *TOY[:2], "resume=asked")
        assert (answer.code, "asked is in use by process" in answer.err) == (2, True), answer.err

    code, workers = typed_and_killed(
        place, "decide", *slow, once=path.is_file, by=signal.SIGTERM, meanwhile=second
    )
    assert code == 143
    assert gone(workers)
    again = f"python scripts/decide.py {' '.join(TOY[:2])} resume=asked"
    told = (place / "killed.log").read_text().splitlines()[-1]
    assert told == f"Interrupted by SIGTERM; to continue, type {again}"
    assert json.loads((place / "asked/status.json").read_text())["state"] == "interrupted"
    assert not list((place / "asked").glob(".rehearsal-lock*"))
    answer = called(place, "decide", *TOY[:2], "resume=asked", "workers=1")
    assert answer.code == 0, answer.err
    assert path.read_bytes() == cohort


def test_a_run_is_resumed_as_it_was_begun(place, cohort):
    again = called(place, "decide", *TOY[:2], "resume=whole", "decision=exhaustive", "objective.changes=2")
    assert again.code == 0, again.err
    assert (place / "whole/decisions.jsonl").read_bytes() == cohort
    for arguments, words in (
        (["resume=whole", "decision=greedy"], "contradicts decision=exhaustive"),
        (["resume=whole", "objective.changes=1"], "contradicts objective.changes=2"),
        (["resume=nowhere"], "holds none"),
    ):
        answer = called(place, "decide", *TOY[:2], *arguments)
        assert (answer.code, words in answer.err) == (2, True), answer.err
    other = called(place, "train", *TOY[:2], "resume=whole")
    assert (other.code, "scripts/decide.py" in other.err) == (2, True)


@pytest.mark.bench
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_shards_merge_to_the_same_bytes(place, cohort, launcher):
    out = f"shards-{launcher}"
    answer = typed(
        place,
        "decide",
        "-m",
        *TOY,
        "checkpoint=trained",
        "shard=range(3)",
        "shards=3",
        f"out={out}",
        f"hydra/launcher={launcher}",
    )
    assert answer.code == 0, answer.err
    assert content(place / out) == content(place / "whole")
    assert (place / out / "decisions.jsonl").read_bytes() == cohort
    assert len((place / out / "1/decisions.jsonl").read_bytes().splitlines()) == 7
    # The report and its figures are those of the merged run, and drawn once.
    assert not list((place / out / "1").glob("**/*.png")) + list((place / out / "1").glob("*.html"))
    assert (place / out / "report.html").is_file()
    assert "3 jobs in" in answer.out.rstrip().rpartition("Merged 20 decisions")[2], (
        "the table of jobs comes last"
    )
    (place / out / "decisions.jsonl").unlink()
    assert called(place, "collect", out).code == 0
    assert (place / out / "decisions.jsonl").read_bytes() == cohort
    (place / out / "1/status.json").unlink()
    missing = typed(place, "collect", out)
    assert (missing.code, "shard 1 of 3 is missing" in missing.err) == (2, True), missing.err


def test_a_failed_job_does_not_sink_a_sweep(place):
    sweep = ("-m", *TOY, "checkpoint=trained", "dataset.broken=true,false", "limit=1", "out=sweep")
    answer = called(place, "decide", *sweep)
    assert answer.code == 1, answer.err
    states = [json.loads((place / f"sweep/{number}/status.json").read_text()) for number in (0, 1)]
    assert [state["state"] for state in states] == ["failed", "ok"]
    assert "repair it" in states[0]["message"]
    assert "dataset.broken=True" in states[0]["overrides"]
    assert "Traceback" not in answer.err
    table = answer.out[answer.out.index("2 jobs in") :]
    assert "failed" in table
    assert "ok" in table


@pytest.mark.bench
def test_a_killed_submission_is_told(place):
    sweep = ("-m", *TOY, "checkpoint=trained", "dataset.fatal=true,false", "limit=1", "out=killed")
    answer = typed(place, "decide", *sweep, "hydra/launcher=submitit_local")
    assert answer.code == 2, answer.err
    assert "Traceback" not in answer.err
    assert "what was submitted ended before its jobs did" in answer.err
    assert json.loads((place / "killed/0/status.json").read_text())["state"] == "failed"
