"""A run folder that was damaged: resuming it ends well, or with a paragraph that names file and remedy;
nothing that was computed is lost."""

import json
import shutil
import time

import pytest

from rehearsal_torch.reporting import run_report as report
from rehearsal_torch.run_folder import RunFolder

pytestmark = pytest.mark.slow

FIGURES = report._figures
BOMB = (
    "a: &a ["
    + ", ".join(["x"] * 100)
    + "]\n"
    + "".join(
        f"{name}: &{name} [{', '.join([f'*{other}'] * 100)}]\n"
        for other, name in zip("abcdef", "bcdefg", strict=True)
    )
)
NOT_JSON = {
    "empty": b"",
    "torn": b'{"script": "dec',
    "no JSON": b"hello",
    "a list": b"[]",
    "a number": b"3",
    "null": b"null",
    "a status that is none": b'{"index": 1, "status": "foo"}',
    "a refusal that sets something": b'{"index": 1, "status": "refused", "alteration": {"a": 1.0}}',
    "an estimate that is a text": b'{"index": 1, "status": "no_action", "estimate": {"point": "x"}}',
    "a case that is a list": b'{"index": 1, "status": "no_action", "kind": "rehearse", "given": [1]}',
    "deep": b"[" * 50_000,
    "huge": b'{"a": "' + b"x" * (5 * 2**20) + b'"}',
    "UTF-16": '{"script": "decide"}'.encode("utf-16"),
    "NUL bytes": b"\0" * 300,
    "a key twice": b'{"script": "decide", "script": "train", "overrides": []}',
    "nan": b'{"script": "decide", "overrides": [], "seconds": NaN}',
}
RECORDS = {
    "no script": {"overrides": []},
    "no overrides": {"script": "decide"},
    "a script that is a number": {"script": 3, "overrides": []},
    "another script": {"script": "rm -rf", "overrides": []},
    "overrides that are a text": {"script": "decide", "overrides": "seed=1"},
    "overrides that are numbers": {"script": "decide", "overrides": [1, None]},
    "choices that are a list": {"choices": []},
    "seconds that are a text": {"seconds": "long"},
    "seconds without end": {"seconds": 10**400},
    "a fingerprint that is a list": {"data_fingerprint": [1]},
}
NOT_YAML = {
    "empty": b"",
    "no YAML": b"a: [1",
    "a list": b"- 1\n- 2\n",
    "a text": b"hello",
    "deep": b"[" * 50_000,
    "an alias bomb": BOMB.encode(),
    "a call": b"a: !!python/object/apply:os.mkdir [attacked]\n",
    "UTF-16": "seed: 0".encode("utf-16"),
    "NUL bytes": b"\0" * 300,
    "groups that are lists": b"dataset: []\nsurrogate: 3\n",
    "keys that are no texts": b"1: 2\n[3]: 4\n",
}
LINES = {
    "no JSON": b"hello",
    "torn": b'{"index": 1, "ident',
    "NUL bytes": b"\0" * 40,
    "another encoding": b'{"index": 1, "status": "no_action", "identity": "\xff"}',
    "empty": b"",
    "a list": b"[]",
    "a number": b"7",
    "without an index": b'{"identity": "1"}',
    "an index that is a text": b'{"index": "1", "status": "no_action"}',
    "an index that is no whole number": b'{"index": 1.5, "status": "no_action"}',
    "a huge index": b'{"index": 100000000000000000000, "status": "no_action"}',
    "a value that is a text": b'{"index": 1, "status": "no_action", "value": "good"}',
    "a value without end": b'{"index": 1, "status": "no_action", "value": 1e999}',
    "a score that is a list": b'{"index": 1, "status": "no_action", "score": [1]}',
    "an alteration that is a list": b'{"index": 1, "status": "no_action", "alteration": [1]}',
    "an answer without rows": b'{"index": 1, "status": "no_action", "answer": {"altered": []}}',
    "an answer with columns of different "
    "lengths": b'{"index": 1, "status": "no_action", "answer": {"rows": {"a": [1], "b": [1, 2]}, "altered": '
    b"[]}}",
    "an answer with a cell "
    "outside": b'{"index": 1, "status": "no_action", "answer": {"rows": {"a": [1]}, "altered": [[0, 7]]}}',
    "deep": b'{"index": ' + b"[" * 50_000,
}
ROWS = {
    "NUL bytes": b"\0" * 30,
    "a column missing": b"1,decision/seconds",
    "a column too many": b"1,decision/seconds,0.1,0.2",
    "a step that is a text": b"one,decision/seconds,0.1",
    "a value that is a text": b"1,decision/seconds,soon",
    "another encoding": b"1,\xff,0.1",
    "an open quotation mark": b'1,"decision,0.1',
}


def as_user_error(resume, *words, code=2):
    began = time.perf_counter()
    found, said = resume()
    assert time.perf_counter() - began < 5
    assert found == code, said
    assert len(said.splitlines()) == 1, said
    for word in words:
        assert word in said
    return said


@pytest.mark.parametrize("name", NOT_JSON)
def test_a_record_that_cannot_be_read(run, resume, name):
    (run / "run.json").write_bytes(NOT_JSON[name])
    decisions = (run / "decisions.jsonl").read_bytes()
    as_user_error(resume, "run.json")
    assert (run / "decisions.jsonl").read_bytes() == decisions
    assert (run / "run.json").read_bytes() == NOT_JSON[name]


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_of_another_form(run, resume, name):
    whole = json.loads((run / "run.json").read_text())
    content = RECORDS[name] if {"script", "overrides"} & set(RECORDS[name]) else whole | RECORDS[name]
    (run / "run.json").write_text(json.dumps(content))
    as_user_error(resume, "run")


@pytest.mark.parametrize("name", NOT_YAML)
def test_a_configuration_that_cannot_be_read(run, resume, name):
    (run / "config.yaml").write_bytes(NOT_YAML[name])
    as_user_error(
        resume,
        "config.yaml" if name not in ("empty", "groups that are lists", "keys that are no texts") else "run",
    )
    assert (run / "config.yaml").read_bytes() == NOT_YAML[name]
    assert not (run.parent / "attacked").exists()


@pytest.mark.parametrize("name", LINES)
def test_a_corrupt_line_is_named_and_nothing_is_lost(run, resume, name):
    lines = (run / "decisions.jsonl").read_bytes().splitlines()
    damaged = b"\n".join([lines[0], LINES[name], lines[1], b""])
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


@pytest.mark.parametrize("name", ROWS)
def test_a_corrupt_row_of_the_metrics_is_named(run, resume, name):
    rows = (run / "metrics.csv").read_bytes().splitlines()
    damaged = b"\n".join([*rows[:2], ROWS[name], *rows[2:], b""])
    (run / "metrics.csv").write_bytes(damaged)
    as_user_error(resume, "metrics.csv, line 3:", "delete line 3")
    assert (run / "metrics.csv").read_bytes() == damaged


@pytest.mark.parametrize(
    "tail", [b'{"index": 1, "ident', b"\0" * 500, b"\xff", b'{"index": 5, "status": "no_action"}']
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
        monkeypatch.setattr("rehearsal_torch.reporting.run_report._figures", FIGURES)
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


@pytest.mark.parametrize("key", ["identity", "value", "reason", "score", "given"])
def test_a_line_that_lacks_something_is_told_with_a_trace_for_us(run, resume, key):
    lines = [json.loads(line) for line in (run / "decisions.jsonl").read_text().splitlines()]
    del lines[0][key]
    damaged = "".join(f"{json.dumps(line)}\n" for line in lines)
    (run / "decisions.jsonl").write_text(damaged)
    code, said = resume()
    assert (code, len(said.splitlines())) in ((2, 1), (0, 0)), said
    assert (run / "decisions.jsonl").read_text() == damaged


@pytest.mark.parametrize("order", [(1, 0), (0, 0), (1,), (0, 1, 1)])
def test_lines_of_other_cases_are_refused(run, resume, order):
    lines = (run / "decisions.jsonl").read_bytes().splitlines(keepends=True)
    (run / "decisions.jsonl").write_bytes(b"".join(lines[place] for place in order))
    as_user_error(resume, "holds other cases")


def test_other_data_under_the_same_configuration_is_told(run, resume):
    folder = RunFolder(run)
    folder.write_json("run.json", folder.read_json("run.json") | {"data_fingerprint": "0" * 64})
    as_user_error(resume, "started with other data (000000000000 there")
