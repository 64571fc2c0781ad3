"""A run folder that was damaged: resuming it ends well, or with a paragraph that names file and remedy;
nothing that was computed is lost."""

import json
import shutil
import time

import pytest

from rehearsal_torch.reporting import run_report
from rehearsal_torch.run_folder import RunFolder

pytestmark = pytest.mark.slow

FIGURES = run_report.figures


def as_user_error(resume, *words, code=2):
    began = time.perf_counter()
    found, said = resume()
    assert time.perf_counter() - began < 5
    assert found == code, said
    assert len(said.splitlines()) == 1, said
    for word in words:
        assert word in said
    return said


def test_a_record_that_cannot_be_read(run, resume):
    (run / "run.json").write_bytes(b'{"script": "dec')
    decisions = (run / "decisions.jsonl").read_bytes()
    as_user_error(resume, "run.json")
    assert (run / "decisions.jsonl").read_bytes() == decisions
    assert (run / "run.json").read_bytes() == b'{"script": "dec'


def test_a_configuration_that_calls_is_not_read(run, resume):
    call = b"a: !!python/object/apply:os.mkdir [attacked]\n"
    (run / "config.yaml").write_bytes(call)
    as_user_error(resume, "config.yaml")
    assert (run / "config.yaml").read_bytes() == call
    assert not (run.parent / "attacked").exists()


def test_a_corrupt_line_is_named_and_nothing_is_lost(run, resume):
    lines = (run / "decisions.jsonl").read_bytes().splitlines()
    damaged = b"\n".join([lines[0], b"hello", lines[1], b""])
    (run / "decisions.jsonl").write_bytes(damaged)
    said = as_user_error(
        resume,
        "decisions.jsonl, line 2:",
        "Nothing was changed",
        "delete line 2 and all lines after it",
        "the 1 before it are kept",
    )
    assert len(said) < 600
    assert (run / "decisions.jsonl").read_bytes() == damaged


def test_a_corrupt_row_of_the_metrics_is_named(run, resume):
    rows = (run / "metrics.csv").read_bytes().splitlines()
    damaged = b"\n".join([*rows[:2], b"1,decision/seconds,soon", *rows[2:], b""])
    (run / "metrics.csv").write_bytes(damaged)
    as_user_error(resume, "metrics.csv, line 3:", "delete line 3")
    assert (run / "metrics.csv").read_bytes() == damaged


@pytest.mark.parametrize(
    "tail", [b'{"index": 1, "ident', b"\0" * 500, b"\xff", b'{"index": 5, "status": "leave"}']
)
def test_a_torn_last_line_is_decided_again(run, resume, tail):
    lines = (run / "decisions.jsonl").read_bytes().splitlines(keepends=True)
    (run / "decisions.jsonl").write_bytes(lines[0] + tail)
    with (run / "metrics.csv").open("ab") as file:
        file.write(tail)
    assert resume() == (0, "")
    assert (run / "decisions.jsonl").read_bytes() == b"".join(lines)


@pytest.mark.parametrize(
    "name", ["decisions.jsonl", "metrics.csv", "status.json", "data.yaml", "table.csv", "checkpoint"]
)
def test_what_is_missing_is_made_again(run, resume, name):
    lines = (run / "decisions.jsonl").read_bytes()
    shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink()
    assert resume() == (0, "")
    assert (run / "decisions.jsonl").read_bytes() == lines
    assert (run / name).exists()


@pytest.mark.parametrize("name", ["config.yaml", "run.json"])
def test_without_its_record_a_folder_is_nobodys(run, resume, name):
    (run / name).unlink()
    as_user_error(resume, "run")
    assert (run / "decisions.jsonl").is_file()


@pytest.mark.parametrize(
    "name",
    ["config.yaml", "run.json", "status.json", "data.yaml", "decisions.jsonl", "metrics.csv", "table.csv"],
)
def test_a_folder_in_the_place_of_a_file(run, resume, name):
    (run / name).unlink()
    (run / name).mkdir()
    (run / name / "mine.txt").write_text("kept")
    as_user_error(resume, "run")
    assert (run / name / "mine.txt").read_text() == "kept"


@pytest.mark.parametrize("name", ["checkpoint", "figures"])
def test_a_file_in_the_place_of_a_folder(run, resume, monkeypatch, name):
    if name == "figures":
        monkeypatch.setattr("rehearsal_torch.reporting.run_report.figures", FIGURES)
    shutil.rmtree(run / name)
    (run / name).write_text("mine")
    as_user_error(resume, f"run/{name}")
    assert (run / name).read_text() == "mine"


CHECKPOINTS = {
    "no configuration": lambda path: (path / "config.yaml").unlink(),
    "no weights": lambda path: (path / "weights.safetensors").unlink(),
    "weights cut off": lambda path: (path / "weights.safetensors").write_bytes(
        (path / "weights.safetensors").read_bytes()[:40]
    ),
    "no YAML": lambda path: (path / "config.yaml").write_text("a: [1"),
    "nothing in it": lambda path: [each.unlink() for each in path.iterdir()],
    "another class": lambda path: (path / "config.yaml").write_text("_target_: os.mkdir\npath: attacked\n"),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_damaged_checkpoint(run, resume, name):
    CHECKPOINTS[name](run / "checkpoint")
    as_user_error(resume, "checkpoint")
    assert not (run.parent / "attacked").exists()


@pytest.mark.parametrize("content", [b"hello", b"[]", b"\0", b"[" * 50_000, b'{"state": []}'])
def test_a_status_that_cannot_be_read_is_written_anew(run, resume, content):
    (run / "status.json").write_bytes(content)
    assert resume() == (0, "")
    assert RunFolder(run).read_json("status.json")["state"] == "ok"


@pytest.mark.parametrize("key", ["identity", "given"])
def test_a_line_that_lacks_something_is_told_with_a_trace_for_us(run, resume, key):
    lines = [json.loads(line) for line in (run / "decisions.jsonl").read_text().splitlines()]
    del lines[0][key]
    damaged = "".join(f"{json.dumps(line)}\n" for line in lines)
    (run / "decisions.jsonl").write_text(damaged)
    code, said = resume()
    assert (code, len(said.splitlines())) in ((2, 1), (0, 0)), said
    assert (run / "decisions.jsonl").read_text() == damaged


def test_other_data_under_the_same_configuration_is_told(run, resume):
    folder = RunFolder(run)
    folder.write_json("run.json", folder.read_json("run.json") | {"data_fingerprint": "0" * 64})
    as_user_error(resume, "started with other data (000000000000 there")
