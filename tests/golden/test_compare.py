"""Golden folders that were made up: what is equal, what differs, and what only has another name."""

import json
import math
import struct

import pytest

from tests.golden.compare import compare, same
from tests.golden.kept import cell, kept
from tests.golden.names import RENAMED, Names
from tests.golden.record import write


def made(folder, **runs):
    folder.mkdir()
    for name, lines in runs.items():
        write(
            folder / f"{name}.json",
            {"exit_code": 0, "state": "ok", "data": None, "files": {"decisions.jsonl": lines}},
        )
    return folder


def line(**more):
    return {"index": 0, "status": "recommended", "alteration": {"A2": 0.1 + 0.2}, **more}


def test_equal_folders_are_equal(tmp_path, capsys):
    two = [line(value=1.0), line(value=-2.5)]
    folders = [made(tmp_path / name, one=[line()], two=two) for name in ("old", "new")]
    assert compare(*folders) == 0
    assert capsys.readouterr().out.splitlines() == [
        "one: equal",
        "two: equal",
        "2 equal, 0 differs, 0 missing, 0 new; 10 numbers compared",
    ]


def test_the_last_bit_of_a_number_counts(tmp_path, capsys):
    value = 0.1 + 0.2
    old = made(tmp_path / "old", one=[line(), line(value=value)])
    new = made(tmp_path / "new", one=[line(), line(value=math.nextafter(value, 1))])
    assert compare(old, new) == 1
    told = "files > decisions.jsonl > 1 > value: 0.30000000000000004 before, 0.3000000000000001 now"
    assert f"one: differs at 1 places, first {told}" in capsys.readouterr().out
    assert compare(old, new, tolerance=1e-12) == 0


def test_runs_that_are_missing_or_new_are_named(tmp_path, capsys):
    old, new = (
        made(tmp_path / "old", one=[line()], two=[line()]),
        made(tmp_path / "new", one=[line()], three=[line()]),
    )
    assert compare(old, new) == 1
    assert capsys.readouterr().out.splitlines()[:3] == ["one: equal", "three: new", "two: missing"]


@pytest.mark.parametrize(
    "content",
    [[], [line(), line()], [{**line(), "value": None}], [line(status="refused")]],
    ids=["fewer", "more", "key", "word"],
)
def test_what_is_there_on_one_side_alone_differs(tmp_path, content):
    assert compare(made(tmp_path / "old", one=[line()]), made(tmp_path / "new", one=content)) == 1


def test_renamed_keys_files_classes_and_words_are_found_again(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    tensor = {"shape": [2], "dtype": "F64", "sha256": "ab"}
    before = {
        "table.csv": {"rows": 1, "columns": {"auf": [0.5], "method": ["cme"]}},
        "model/weights": {"law.deviation": tensor},
    }
    after = {
        "rows.csv": {"rows": 1, "columns": {"success": [0.5], "method": ["kernel"]}},
        "model/weights": {"law.scale": tensor},
    }
    write(old / "one.json", {"files": {**before, "is": "package.old.Thing"}})
    write(new / "one.json", {"files": {**after, "is": "package.new.Thing"}})
    names = Names(
        {"auf": "success", "deviation": "scale"},
        {"table.csv": "rows.csv"},
        {"package.old": "package.new"},
        {"cme": "kernel"},
    )
    assert compare(old, new) == 1
    assert compare(old, new, names) == 0
    assert compare(old, new, Names({"auf": "success", "deviation": "scale"})) == 1


def test_two_keys_never_get_one_name(tmp_path):
    old = made(tmp_path / "old", one=[{"a": 1, "b": 2}])
    with pytest.raises(ValueError, match="get the same name"):
        compare(old, old, Names({"a": "b"}))


def test_undefined_numbers_are_equal_among_themselves(tmp_path):
    folders = [made(tmp_path / name, one=[line(value=float("nan"))]) for name in ("old", "new")]
    assert compare(*folders) == 0
    other = made(tmp_path / "other", one=[line(value=0.0)])
    assert compare(folders[0], other) == 1
    assert compare(folders[0], other, tolerance=0.5) == 1


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (0.0, -0.0, False),
        (True, 1, False),
        (None, float("nan"), False),
        ("a", "a", True),
        (math.inf, -math.inf, False),
    ],
)
def test_leaves_are_compared_by_value_and_sign(one, other, equal):
    assert same(one, other, 0.0) is equal


def test_empty_folders_show_nothing(tmp_path):
    assert compare(made(tmp_path / "old"), made(tmp_path / "new")) == 1
    with pytest.raises(ValueError, match="there is no such folder"):
        compare(tmp_path / "old", tmp_path / "nowhere")


def test_a_run_folder_is_kept_without_clock_and_commit(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    values = struct.pack("<2d", 0.5, -1.0)
    told = {"__metadata__": {"a": "b"}, "law.mean": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}
    header = json.dumps(told).encode()
    weights = len(header).to_bytes(8, "little") + header + values
    (tmp_path / "checkpoint/weights.safetensors").write_bytes(weights)
    (tmp_path / "metrics.csv").write_text("step,name,value\n0,decision/seconds,0.3\n1,loss,nan\n")
    rows = ["method,auf,seconds,commit,reason", "cme,0.30000000000000004,3,abc,too few", "none,,4,abc,"]
    (tmp_path / "table.csv").write_text("\n".join([*rows, ""]))
    decided = {"value": 0.1, "warnings": ["far"], "trace": {"seconds": 3, "nodes": 2}}
    (tmp_path / "decisions.jsonl").write_text(json.dumps(decided) + "\n")
    (tmp_path / "status.json").write_text('{"state": "ok", "seconds": 3.5}')
    (tmp_path / "run.json").write_text('{"data_fingerprint": "5e", "commit": "abc"}')
    (tmp_path / "0").mkdir()
    (tmp_path / "0/table.csv").write_text("value\n1\n")
    found = kept(tmp_path, apart=("0",))
    assert (found["state"], found["data"]) == ("ok", "5e")
    assert set(found["files"]) == {
        "checkpoint/weights.safetensors",
        "metrics.csv",
        "table.csv",
        "decisions.jsonl",
    }
    assert found["files"]["table.csv"] == {
        "rows": 2,
        "columns": {"method": ["cme", "none"], "auf": [0.1 + 0.2, None]},
    }
    assert found["files"]["metrics.csv"]["rows"] == 1
    assert found["files"]["decisions.jsonl"] == [{"value": 0.1, "trace": {"nodes": 2}}]
    tensor = found["files"]["checkpoint/weights.safetensors"]["law.mean"]
    assert (tensor["shape"], tensor["dtype"], len(tensor["sha256"])) == ([2], "F64", 64)


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("-0.0", -0.0), ("1e-07", 1e-7), ("1_000", "1_000"), ("0.5+0.2", "0.5+0.2"), ("", None)],
)
def test_cells_are_numbers_only_where_they_are_written_as_such(text, value):
    assert cell(text) == value
    assert type(cell(text)) is type(value)


def test_what_is_typed_is_translated():
    table = {
        "decision=random": "decision=random_changes",
        "objective.seek": "objective.scenarios",
        "surrogate.estimator": "surrogate.regression",
    }
    names = Names(overrides=table)
    assert names.typed("decision=greedy,random") == "decision=greedy,random_changes"
    assert names.typed("objective.seek=200") == "objective.scenarios=200"
    assert names.typed("+surrogate.estimator.rank=3") == "+surrogate.regression.rank=3"
    assert names.typed("--stages") == "--stages"


def test_the_table_that_comes_with_the_project_can_be_read(tmp_path):
    assert isinstance(Names.read(RENAMED), Names)
    (tmp_path / "odd.yaml").write_text("columns: {a: b}\n")
    with pytest.raises(ValueError, match="expected tables keys, files"):
        Names.read(tmp_path / "odd.yaml")
