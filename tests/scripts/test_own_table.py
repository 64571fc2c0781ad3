"""A table of one's own, from the command line: decided for, or answered in words before anything is
fitted."""

import pandas as pd
import pytest
import torch
import yaml

from rehearsal_torch.cli.main import decide, main
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
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
    "surrogate.members=2",
    "surrogate.blocks=4",
    "surrogate.frequencies=50",
    "surrogate.evidence_rows=150",
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
