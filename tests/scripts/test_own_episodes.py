"""Episodes of one's own, from the command line: trained on, decided for, reported in their own words."""

import csv
import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from rehearsal_torch.cli.main import main
from rehearsal_torch.cli.verbs.decide import decide
from rehearsal_torch.cli.verbs.prepare import main as prepare
from rehearsal_torch.cli.verbs.train import train
from tests.scripts.typing_in import lines
from tests.toys.read_page import Page

TYPED = ["+experiment=own_episodes", "path=machines.csv", "dataset.task=machines.yaml", "workers=1"]
SMALL = ["trainer.max_epochs=2", "trainer.progress=false", "surrogate.member.mechanism.hidden=20"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machines")
    assert prepare(["machines", f"out={folder}", "machines=120", "seed=1"]) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(train, [*TYPED, *SMALL, "preview=4", "out=trained"]) == 0
    return folder


@pytest.mark.bench
def test_a_parquet_file_in_blocks_gives_the_run_of_the_table(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained)
    frame = pd.read_csv("machines.csv")
    Path("parts").mkdir()
    frame.iloc[:700].to_parquet("parts/1.parquet", row_group_size=100)
    frame.iloc[700:].to_parquet("parts/2.parquet", row_group_size=333)
    typed = [TYPED[0], "dataset=episode_file", "path=parts", *TYPED[2:]]
    assert main(train, [*typed, *SMALL, "preview=4", "out=blocks"]) == 0
    for name in ("decisions.jsonl", "checkpoint/weights.safetensors"):
        assert Path("blocks", name).read_bytes() == Path("trained", name).read_bytes()
    assert "the model is fitted to" not in capsys.readouterr().out, "all rows are in the sample"
    more = [*typed[:-1], "decision=greedy", "checkpoint=blocks/checkpoint", "limit=5", "workers=2"]
    assert main(decide, [*more, "out=shared"]) == 0
    alone = [*TYPED, "decision=greedy", "checkpoint=trained/checkpoint", "limit=5", "out=alone"]
    assert main(decide, alone) == 0
    assert lines(Path("shared")) == lines(Path("alone"))


@pytest.mark.bench
def test_other_models_say_that_they_need_the_table_in_memory(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained)
    pd.read_csv("machines.csv").to_parquet("machines.parquet")
    typed = ["dataset=episode_file", "path=machines.parquet", TYPED[2], "reward=weights_score_costs"]
    assert main(train, [*typed, "decision=branch_and_bound", "trainer.devices=2", "out=none"]) == 2
    assert "expected devices=1 for rows that are read in blocks; got 2" in capsys.readouterr().err


def test_a_trained_model_decides_for_units_of_its_own(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained)
    typed = [*TYPED, "decision=greedy", "checkpoint=trained/checkpoint", "limit=5", "out=decided"]
    assert main(decide, typed) == 0
    answers = lines(trained / "decided")
    assert len(answers) == 5
    for answer in answers:
        assert answer["score"] in ({}, None)
        if answer["status"] == "recommended":
            for doses in answer["doses"].values():
                assert doses[0] in (0, 1, 2)
                assert doses[1] in (0, 1)
        # The last action keeps what it was: its cost alone would make it the first to go.
        assert answer["trajectory"]["actions"][-1] == answer["trajectory"]["observed_actions"][-1]
    said = " ".join(capsys.readouterr().out.split())
    assert "risk and cost" in said
    assert "with costs by" in said


def test_a_run_that_was_stopped_goes_on_from_its_folder(trained, monkeypatch):
    monkeypatch.chdir(trained)
    typed = [*TYPED, "decision=greedy", "checkpoint=trained/checkpoint", "limit=3", "out=stopped"]
    assert main(decide, typed) == 0
    whole = lines(trained / "stopped")
    path = trained / "stopped" / "decisions.jsonl"
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:1]), encoding="utf-8")
    (trained / "stopped" / "status.json").unlink()
    assert main(decide, ["resume=stopped"]) == 0
    assert lines(trained / "stopped") == whole


def test_reports_speak_of_machines_alone(trained, capsys):
    figures = trained / "trained" / "figures"
    assert (figures / "machine.svg").is_file()
    texts = [path.read_text(encoding="utf-8") for path in figures.glob("*.svg")]
    texts += [(trained / "trained" / name).read_text(encoding="utf-8") for name in ("table.csv", "data.yaml")]
    for word in ("patient", "dose", "SOFA", "vasopressor", "stay"):
        assert not any(word.lower() in text.lower() for text in texts), word
    assert any("Machines" in text for text in texts)
    assert "Cumulative risk and cost, as observed" in (figures / "outcomes.svg").read_text(encoding="utf-8")


def test_the_page_speaks_of_machines_and_says_what_the_terminal_says(trained, capsys):
    page = Page((trained / "trained" / "report.html").read_text(encoding="utf-8"))
    said = page.said.partition("The whole configuration")[0]
    for word in ("patient", "dose", "SOFA", "vasopressor", "fluids", "cumulative reward"):
        assert word.lower() not in said.lower(), word
    assert "An action sets service (none, minor, major) and load (full, reduced)." in said
    assert "4 machines; " in said
    (row,) = csv.DictReader((trained / "trained" / "table.csv").read_text(encoding="utf-8").splitlines())
    observed = [-line["trajectory"]["observed"] for line in lines(trained / "trained")]
    assert float(row["observed"]) == pytest.approx(sum(observed) / 4)
    for value in observed:
        assert f"Cumulative risk and cost: {value:g} as observed" in said or (
            f"Cumulative risk and cost as observed: {value:g}." in said
        )


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


def test_faults_are_answered_in_words_before_anything_is_fitted(trained, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(trained)
    task = yaml.safe_load((trained / "machines.yaml").read_text(encoding="utf-8"))
    task["varying"]["waer"] = None
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
    out = tmp_path / "run"
    assert main(train, [*TYPED[:2], f"dataset.task={tmp_path / 'task.yaml'}", f"out={out}"]) == 2
    said = capsys.readouterr().err
    assert "no column 'waer'; did you mean 'wear'?" in said
    assert "Traceback" not in said
    assert main(train, ["+experiment=own_episodes", "path=machines.csv", f"out={tmp_path / 'none'}"]) == 2
    assert "no task is given: set dataset.task=task.yaml" in capsys.readouterr().err
