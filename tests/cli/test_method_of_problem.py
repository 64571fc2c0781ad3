"""The run whose method is left to the rows, or named by a problem file."""

import json
import shlex

import pytest

from rehearsal_torch.cli import method_of_problem as module
from rehearsal_torch.cli.method_of_problem import settled
from rehearsal_torch.methods.method_choice import chosen, wished
from rehearsal_torch.problems.cases.cases_file import OwnProblem
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError
from tests.house.desk import PROBLEM, laid_out
from tests.methods.test_method_choice import NOTHING, found
from tests.methods.test_run_parts import configured

OWN = ("+experiment=own_problem", "path=problem.yaml")


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    laid_out(tmp_path)
    (tmp_path / "run").mkdir()
    return tmp_path


def told(desk, *typed, method="", overrides=()):
    """The run of a command line, in a folder that such a command has begun."""
    (desk / "problem.yaml").write_text(PROBLEM + method)
    folder = RunFolder(desk / "run")
    folder.write_json("run.json", {"overrides": list(overrides), "choices": {"decision": "typed"}})
    return settled(configured(*typed), folder, sweep=False), folder


def test_the_method_of_the_problem_file_decides(desk, capsys):
    (run, _, noted), folder = told(desk, *OWN, method="method: care\n")
    assert run.config["surrogate"]["_target_"].endswith("LinearStructural")
    assert noted is None
    assert folder.read_json("run.json")["choices"] == {"decision": "care"}


def test_a_typed_method_comes_before_that_of_the_file(desk, capsys):
    typed = ["decision=micns"]
    (run, _, _), folder = told(desk, *OWN, *typed, method="method: care\n", overrides=typed)
    assert type(run.search).__name__ == "CheapestAlteration"
    assert "Note: decision= was typed, so that method: care does not count." in capsys.readouterr().out
    assert folder.read_json("run.json")["choices"] == {"decision": "typed"}


@pytest.mark.slow
def test_costs_that_do_not_count_are_named_with_the_command_that_weighs_them(desk, capsys):
    text = PROBLEM.replace("{role: action, range: [-1, 1]}", "{role: action, range: [-1, 1], cost: 2}", 1)
    (desk / "problem.yaml").write_text(text)
    folder = RunFolder(desk / "run")
    folder.write_json("run.json", {"overrides": [], "choices": {}})
    settled(configured(*OWN), folder, sweep=False)
    (note,) = [line for line in capsys.readouterr().out.splitlines() if "cost" in line]
    assert note.startswith("Note: the cost of a does not count here: ")
    said = shlex.split(note.partition("suffices: ")[2])
    run, _, _ = settled(configured(*OWN, *said), folder, sweep=False)
    assert run.objective.keywords["weights"] == {"a": 2}
    assert "cost" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_method_that_there_is_not_is_refused_by_name(desk):
    with pytest.raises(UserError, match=r"method: there is no method 'caree' .* Did you mean care"):
        told(desk, *OWN, method="method: caree\n")
    with pytest.raises(UserError, match="there is no method 'ucb' for cases of a table"):
        told(desk, *OWN, method="method: ucb\n")
    (desk / "problem.yaml").write_text(PROBLEM + "method: auto\n")
    assert wished(OwnProblem(desk / "problem.yaml")) == "auto"


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "method"), [(("decision=auto",), ""), ((), "method: auto\n")])
def test_what_was_chosen_decides_and_is_kept_when_the_run_is_resumed(
    desk, capsys, monkeypatch, typed, method
):
    asked = []

    def choose(config, problem, progress, workers):
        asked.append(config.choose.cases)
        return chosen(found({"care": [0.6] * 4}, NOTHING), 200)

    monkeypatch.setattr(module, "choose", choose)
    for _ in range(2):
        (run, _, noted), folder = told(desk, *OWN, *typed, method=method, overrides=typed)
        assert run.config["surrogate"]["_target_"].endswith("LinearStructural")
        assert "choose" not in run.config
        assert noted.method == "care"
        assert noted.why.startswith("auto took care: its value 60.0 % is the best")
        assert folder.read_json("run.json")["choices"] == {"decision": "care"}
        assert noted.why in capsys.readouterr().out
    assert asked == [40]
    (desk / "run" / "method_choice.json").write_text(json.dumps({"chosen": "ucb", "sentences": ["ucb"]}))
    with pytest.raises(UserError, match="names a method that there is not: 'ucb'"):
        told(desk, *OWN, *typed, method=method, overrides=typed)
