"""Problem files that ask for a sequence and for trials, from the command line and from Python."""

import json
import warnings

import pytest
import yaml

import rehearsal_torch as rt
from rehearsal_torch.console_command import main, run
from tests.problems.conftest import TRIALS, experiments
from tests.scripts.typing_in import lines

SMALL = {"trainer.progress": False}
TYPED = [f"{key}={str(each).lower()}" for key, each in SMALL.items()]


@pytest.fixture
def machines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("prepare", ["machines", "out=.", "machines=120", "seed=1"]) == 0
    return tmp_path


@pytest.mark.bench
def test_one_command_answers_for_a_sequence_as_the_task_does(machines, capsys):
    assert main(["check", "problem.yaml"]) == 0
    said = capsys.readouterr().out
    assert "120 machines of machines.csv" in said
    common = [*TYPED, "limit=3", "workers=1"]
    assert main(["decide", "problem.yaml", *common, "out=one"]) == 0
    task = ["+experiment=own_episodes", "dataset.task=machines.yaml"]
    assert main(["decide", "machines.csv", *task, *common, "out=two"]) == 0
    one, two = lines(machines / "one"), lines(machines / "two")
    for each in (*one, *two):
        each.pop("seconds", None)
    assert one == two
    recorded = json.loads((machines / "one/run.json").read_text())
    assert "+experiment=own_sequence" in recorded["overrides"]
    model = rt.learn_episodes("problem.yaml", **SMALL)
    found = model.look_back(model.cases[0])
    assert found.value == pytest.approx(one[0]["value"])


@pytest.mark.slow
def test_the_method_of_a_file_takes_settings_of_its_own(machines):
    problem = yaml.safe_load((machines / "problem.yaml").read_text())
    (machines / "problem.yaml").write_text(yaml.safe_dump({**problem, "method": "greedy"}))
    assert main(["decide", "problem.yaml", *TYPED, "limit=1", "workers=1", "out=run"]) == 0
    config = yaml.safe_load((machines / "run/config.yaml").read_text())
    assert config["search"]["_target_"].endswith("GreedyChanges")
    assert json.loads((machines / "run/run.json").read_text())["choices"]["decision"] == "greedy"


@pytest.mark.slow
def test_trials_are_asked_for_on_the_command_line_and_in_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "problem.yaml").write_text(yaml.safe_dump({**TRIALS, "method": "ucb"}))
    experiments().to_csv("experiments.csv", index=False)
    assert main(["decide", "problem.yaml", "workers=1", "out=run"]) == 0
    (answer,) = lines(tmp_path / "run")
    action = answer["alteration"]
    assert action["dose"] in (0, 1, 2, 5)
    assert 2 * action["valve"] + action["dose"] <= 6 + 1e-6
    assert "add it as a row to experiments.csv" in " ".join(capsys.readouterr().out.split())
    optimiser = rt.CausalOptimiser("problem.yaml", file="trials.json")
    assert [trial.state for trial in optimiser.trials] == ["completed"] * 8
    # The next session reads the same experiments, and adds none twice.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = rt.CausalOptimiser("problem.yaml", file="trials.json")
    assert len(again.trials) == 8
    (tmp_path / "problem.yaml").write_text(yaml.safe_dump({**TRIALS, "fixed": {"dose": 2}}))
    assert rt.CausalOptimiser("problem.yaml").ask()[0]["dose"] == 2
