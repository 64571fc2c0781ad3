"""Episodes of one's own, from the command line: trained on, decided for, reported in their own words."""

import json
from pathlib import Path

import pandas as pd
import pytest

from rehearsal_torch.cli.main import decide, main, train
from rehearsal_torch.console_command import run
from tests.scripts.typing_in import lines

TYPED = ["+experiment=own_episodes", "path=machines.csv", "dataset.task=machines.yaml", "workers=1"]
SMALL = ["trainer.progress=false"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machines")
    assert run("prepare", ["machines", f"out={folder}", "machines=120", "seed=1"]) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(train, [*TYPED, *SMALL, "preview=4", "out=trained"]) == 0
    return folder


@pytest.mark.bench
def test_a_folder_of_parquet_files_gives_the_run_of_the_table(trained, monkeypatch):
    monkeypatch.chdir(trained)
    frame = pd.read_csv("machines.csv")
    Path("parts").mkdir()
    frame.iloc[:700].to_parquet("parts/1.parquet", row_group_size=100)
    frame.iloc[700:].to_parquet("parts/2.parquet", row_group_size=333)
    typed = [TYPED[0], "path=parts", *TYPED[2:]]
    assert main(train, [*typed, *SMALL, "preview=4", "out=again"]) == 0
    for name in ("decisions.jsonl", "checkpoint/weights.safetensors"):
        assert Path("again", name).read_bytes() == Path("trained", name).read_bytes()


def test_a_trained_model_decides_for_units_of_its_own(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained)
    typed = [*TYPED, "decision=greedy", "checkpoint=trained/checkpoint", "limit=5", "out=decided"]
    assert main(decide, typed) == 0
    answers = lines(trained / "decided")
    assert len(answers) == 5
    for answer in answers:
        assert answer["score"] in ({}, None)
        if answer["alteration"] is not None:
            for doses in answer["doses"].values():
                assert doses[0] in (0, 1, 2)
                assert doses[1] in (0, 1)
        # The last action keeps what it was: its cost alone would make it the first to go.
        assert answer["trajectory"]["actions"][-1] == answer["trajectory"]["observed_actions"][-1]
    said = " ".join(capsys.readouterr().out.split())
    assert "risk and cost" in said
    assert "with costs by" in said


def test_the_run_records_the_words_and_the_reward_of_the_task(trained):
    run = json.loads((trained / "trained" / "run.json").read_text(encoding="utf-8"))
    assert run["words"]["units"] == "machines"
    assert run["actions"] == ["service", "load"]
    assert run["words"]["levels"] == {"service": ["none", "minor", "major"], "load": ["full", "reduced"]}
    assert run["reward"]["costs"] == {"service": [0, 1, 4], "load": [0, 1]}


def test_the_world_knows_what_its_decisions_bring(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    typed = ["dataset=machines", "dataset.machines=120", "dataset.horizon=10", "decision=greedy", *SMALL]
    assert main(train, [*typed, "objective.changes=2", "preview=4", "workers=1", "out=run"]) == 0
    for answer in lines(tmp_path / "run"):
        score = answer["score"]
        assert score["true_observed"] == pytest.approx(answer["trajectory"]["observed"], rel=1e-9)
        assert max(score["true_observed"], score["true_value"]) <= score["true_optimum"] <= 0
    assert (tmp_path / "run" / "figures" / "truth.svg").is_file()
