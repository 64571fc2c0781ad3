"""Run folders: whole files, whole lines, and nothing of the clock in them."""

import json

import pytest
import torch

from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.round_record import Round
from rehearsal_torch.run_folder import SECONDS, RunFolder, replace_folder
from rehearsal_torch.spaces.box import Alteration


def round_(index, seconds=0.5):
    decision = Decision(
        Alteration(("a",), torch.tensor([1.0])),
        2.0,
        reason=Finding("note", "é"),
        trace={"gap": float("inf"), "actions": [1, 0]},
        seconds=seconds,
    )
    return Round(
        index,
        RehearsalCase(f"case-{index}", {"age": torch.tensor(60.0)}, {}),
        decision,
        None,
        {"regret": float("nan")},
    )


def test_a_line_is_plain_json_without_clock_times():
    line = round_(3).line()
    assert line == round_(3, seconds=9.0).line()
    assert json.loads(line) == {
        "index": 3,
        "identity": "case-3",
        "kind": "",
        "given": {"age": 60.0},
        "status": "may",
        "alteration": {"a": 1.0},
        "value": 2.0,
        "estimate": None,
        "baseline": None,
        "findings": [],
        "reason": {"kind": "note", "text": "é"},
        "trace": {"gap": None, "actions": [1, 0]},
        "score": {"regret": None},
    }


def test_lines_are_there_as_soon_as_they_are_made(tmp_path):
    folder = RunFolder(tmp_path)
    for number, each in enumerate(folder.record(round_(index) for index in range(3)), 1):
        assert [line["index"] for line in folder.decisions()] == list(range(number))
        assert folder.metrics()[-1] == (each.index, SECONDS, 0.5)


@pytest.mark.parametrize("torn", ['{"index": 2, "ident', '{"index": 2}', "é"[:1]])
def test_torn_lines_are_dropped(tmp_path, torn):
    folder = RunFolder(tmp_path)
    folder.write_metrics([(0, "mechanism/train_loss", 1.5)])
    list(folder.record(round_(index) for index in range(2)))
    whole = (tmp_path / "decisions.jsonl").read_bytes()
    with (tmp_path / "decisions.jsonl").open("a") as lines, (tmp_path / "metrics.csv").open("a") as rows:
        lines.write(torn)
        rows.write("2,decision/seconds,0.25\n3,decis")
    assert [line["index"] for line in folder.mend()] == [0, 1]
    assert (tmp_path / "decisions.jsonl").read_bytes() == whole
    assert folder.metrics() == [(0, "mechanism/train_loss", 1.5), (0, SECONDS, 0.5), (1, SECONDS, 0.5)]


def test_an_empty_folder_holds_nothing(tmp_path):
    folder = RunFolder(tmp_path / "none")
    assert not folder.begun
    assert (
        folder.mend(),
        folder.decisions(),
        folder.metrics(),
        folder.read_json("run.json"),
        folder.read_yaml("config.yaml"),
    ) == ([], [], [], {}, {})


def test_files_are_replaced_whole(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_json("run.json", {"value": float("nan"), "list": (1, 2)})
    folder.write_json("run.json", {"value": 1})
    folder.write_yaml("config.yaml", {"name": "ä"})
    assert folder.read_json("run.json") == {"value": 1}
    assert folder.read_yaml("config.yaml") == {"name": "ä"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "run.json"]
    assert folder.begun
    folder.close("failed", "why", ["seed=1"], 1.23456)
    assert folder.read_json("status.json") == {
        "state": "failed",
        "message": "why",
        "overrides": ["seed=1"],
        "seconds": 1.235,
    }


def test_folders_are_replaced_whole(tmp_path):
    for text in ("old", "new"):
        (tmp_path / "beside/inner").mkdir(parents=True)
        (tmp_path / "beside/inner/file").write_text(text)
        replace_folder(tmp_path / "kept", tmp_path / "beside")
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "kept",
        "kept/inner",
        "kept/inner/file",
    ]
    assert (tmp_path / "kept/inner/file").read_text() == "new"


def test_who_takes_the_lock_removes_what_a_killed_process_left(tmp_path):
    run, left = RunFolder(tmp_path), (".report.html.41.part", "figures/.a.png.41.part")
    for name in (*left, "checkpoint/.card.yaml.41.part", "figures/a.png"):
        run.write(name, "half")
    with run.lock():
        assert not list(tmp_path.rglob("*.part"))
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")] == ["figures/a.png"]
