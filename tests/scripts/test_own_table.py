"""A table of one's own, from the command line: decided for, or answered in words before anything is
fitted."""

import pandas as pd
import pytest
import torch
import yaml

from rehearsal_torch.cli.main import main
from rehearsal_torch.cli.verbs.decide import decide
from rehearsal_torch.problems.rehearsal.loan import Loan
from rehearsal_torch.problems.world_size import SampleSize
from tests.scripts.typing_in import lines

TASK = {
    "graph": {"parents": {"A2": ["X1", "X2", "U1"], "Y1": ["X2", "U1", "A2"], "Y2": ["U1", "A2"]}},
    "context": ["X1", "X2"],
    "box": {"A2": [0, 1]},
    "region": {"Y1": [0.6, None], "Y2": [0.3, None]},
}
TYPED = [
    "+experiment=own_table",
    "path=table.csv",
    "dataset.task=task.yaml",
    "dataset.contexts=cases.csv",
    "out=run",
    "workers=1",
]
SMALL = [
    "surrogate.indicator.estimator.members=1",
    "surrogate.indicator.estimator.features=100",
    "surrogate.indicator.estimator.direction_rows=150",
    "surrogate.indicator.estimator.width_rows=150",
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    table = Loan(size=SampleSize(rows=400)).observations()
    pd.DataFrame(table.values.numpy(), columns=list(table.names)).to_csv(tmp_path / "table.csv", index=False)
    pd.DataFrame({"who": ["ann", "bob"], "X1": [0.3, 0.6], "X2": [0.4, 0.9]}).to_csv(
        tmp_path / "cases.csv", index=False
    )
    write(tmp_path, TASK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, task):
    (folder / "task.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")


def test_cases_of_ones_own_are_decided_for(folder):
    assert main(decide, [*TYPED, *SMALL, "dataset.identity=who"]) == 0
    answers = lines(folder / "run")
    assert [answer["identity"] for answer in answers] == ["ann", "bob"]
    world = Loan()
    for answer in answers:
        assert 0.15 < answer["alteration"]["A2"] < 0.6
        assert answer["estimate"]["lower"] <= answer["estimate"]["point"] <= answer["estimate"]["upper"]
        assert answer["estimate"]["point"] > answer["baseline"]["point"]
        assert answer["score"] == {}
    contexts = pd.read_csv(folder / "cases.csv")[["X1", "X2"]].to_numpy().copy()
    rates = torch.tensor([[answer["alteration"]["A2"]] for answer in answers], dtype=torch.float64)
    true = world.probability(torch.from_numpy(contexts), ("A2",), rates)
    assert (true > 0.7).all()
    assert yaml.safe_load((folder / "run/data.yaml").read_text())["cases"] == 2


def test_a_box_without_support_is_refused_with_the_reason(folder):
    write(folder, TASK | {"box": {"A2": [5, 6]}})
    assert main(decide, [*TYPED, *SMALL]) == 0
    answer = lines(folder / "run")[0]
    assert answer["alteration"] is None
    assert answer["reason"].startswith("no support")
    assert "outside the observed" in (folder / "run/data.yaml").read_text()


SLIPS = [
    ({"box": {"A2": [1, 0]}}, "box.A2: expected lower <= upper; got [1, 0]: swap them"),
    (
        {"region": {"names": ["Y1"], "normals": [[1], [-1]], "offsets": [0, -1]}},
        "region: no outcome satisfies all faces",
    ),
    ({"context": ["X1", "X3"]}, "context: 'X3' is not in the graph; there are X1, X2"),
    ({"graph": {"parents": {"A2": ["Y1"], "Y1": ["A2"]}}}, "the edges form a cycle"),
]


@pytest.mark.parametrize(("change", "words"), SLIPS, ids=[words[:30] for _, words in SLIPS])
def test_a_task_that_cannot_be_is_answered_before_fitting(folder, capsys, change, words):
    write(folder, TASK | change)
    assert main(decide, TYPED) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert "fitting" not in told.out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.head(9), "expected at least 10 rows; got 9"),
        (lambda frame: frame.assign(X2=0.5), "X2: all 400 values are 0.5"),
        (
            lambda frame: frame.assign(Y1=frame["Y1"].mask(frame.index == 7)),
            "Y1: 1 of 400 values are missing or infinite in line 9",
        ),
        (lambda frame: frame.assign(U1="high"), "U1: expected numbers; got 'high' in line 2"),
        (lambda frame: frame.rename(columns={"A2": "A_2"}), "no column 'A2'; did you mean 'A_2'?"),
    ],
)
def test_a_table_that_teaches_nothing_is_answered_before_fitting(folder, capsys, change, words):
    change(pd.read_csv("table.csv")).to_csv("table.csv", index=False)
    assert main(decide, TYPED) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert "fitting" not in told.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["+experiment=own_table"], "path: this data set is read from a file, which must be given"),
        (["+experiment=own_table", "path=table.csv"], "no task is given: set dataset.task=task.yaml"),
        (["+experiment=own_table", "path=tables.csv"], "Did you mean table.csv"),
        (
            ["+experiment=own_table", "path=table.csv", "dataset.task=tasks.yaml"],
            "there is no task file tasks.yaml",
        ),
        ([*TYPED, "dataset.contexts=case.csv"], "there is no file case.csv: check dataset.contexts="),
        ([*TYPED, "dataset.identity=name"], "cases.csv has no column 'name'"),
    ],
)
def test_files_that_are_not_there_are_asked_for(folder, capsys, arguments, words):
    assert main(decide, [*arguments, *(["out=run"] if "out=run" not in arguments else [])]) == 2
    assert words in capsys.readouterr().err


def test_a_checkpoint_is_asked_its_own_question(folder, capsys):
    assert main(decide, [*TYPED, *SMALL]) == 0
    again = [*TYPED[:-2], "workers=1", "checkpoint=run"]
    write(folder, TASK | {"region": {"Y1": [0.9, None], "Y2": [0.3, None]}})
    assert main(decide, [*again, "out=other"]) == 2
    assert "region: it was fitted with [Y1 >= 0.6], and is used with [Y1 >= 0.9]" in capsys.readouterr().err
    write(folder, TASK | {"graph": {"parents": TASK["graph"]["parents"] | {"Y2": ["U1", "A2", "X1"]}}})
    assert main(decide, [*again, "out=another"]) == 2
    assert (
        "graph: it was fitted with nothing in their place, and is used with [X1 -> Y2]"
        in capsys.readouterr().err
    )
    write(folder, TASK | {"box": {"A2": [0.1, 0.15]}})
    assert main(decide, [*again, "out=narrow"]) == 0
    assert all(
        0.1 - 1e-9 <= each["alteration"]["A2"] <= 0.15 + 1e-9
        for each in lines(folder / "narrow")
        if each["alteration"]
    )
    assert [each["alteration"] for each in lines(folder / "narrow")] != [
        each["alteration"] for each in lines(folder / "run")
    ]
