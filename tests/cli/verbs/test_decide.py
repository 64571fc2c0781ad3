"""What to type next: the same data, decided in another way that fits it. What a checkpoint has seen."""

import sys
from types import SimpleNamespace

import pytest

from rehearsal_torch.cli.verbs.decide import _next_step, _other_method
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.trials.benchmark_functions import Dropwave
from rehearsal_torch.problems.trials.user_experiments import ExperimentTable
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.round_record import Round
from rehearsal_torch.run_folder import RunFolder
from tests.toys.foresight import Market


@pytest.fixture
def after(tmp_path):
    def run(decision, overrides, problem):
        folder = RunFolder(tmp_path)
        folder.write_json("run.json", {"overrides": overrides, "choices": {"decision": decision}})
        return _other_method(folder, problem, "runs/x/checkpoint")

    return run


def test_episodes_are_decided_again_with_the_same_checkpoint(after):
    kept = ["+experiment=sepsis", "objective.changes=2"]
    assert after("branch_and_bound", [*kept, "shard=0", "search.leaves=3"], Market()) == [
        *kept,
        "decision=greedy",
        "checkpoint=runs/x/checkpoint",
    ]
    assert "decision=closed_form" in after("greedy", [*kept, "decision=greedy"], Market())


@pytest.mark.parametrize(
    ("decision", "other"),
    [("outcome_regression", "care"), ("care", "outcome_regression"), ("none", "care"), ("grad_rh", "care")],
)
def test_in_foresight_another_method_fits_a_surrogate_of_its_own(after, decision, other):
    overrides = [
        "+experiment=auf",
        f"decision={decision}",
        "surrogate.task=null",
        "objective.caution=1",
        "choose.cases=3",
        "search=no_action",
        "checkpoint=there",
        "seed=3",
    ]
    assert after(decision, overrides, Loan(size=SampleSize(rows=30))) == [
        "+experiment=auf",
        "seed=3",
        f"decision={other}",
    ]


def test_ones_own_experiment_is_carried_out_before_the_next_is_chosen(tmp_path):
    (tmp_path / "experiments.csv").write_text("x,y\n0.1,1\n0.5,2\n0.9,1.5\n0.3,1.2\n0.7,1.9\n0.2,1.1\n")
    task = {"graph": {"parents": {"x": [], "y": ["x"]}}, "actions": {"x": [0, 1]}, "reward": "y"}
    problem = ExperimentTable(tmp_path / "experiments.csv", task)
    folder = RunFolder(tmp_path / "run")
    folder.write_json(
        "run.json",
        {"overrides": ["+experiment=own_system", "path=experiments.csv"], "choices": {"decision": "excbo"}},
    )
    folder.write_yaml("config.yaml", {"path": "experiments.csv"})
    again = "python scripts/decide.py +experiment=own_system path=experiments.csv"
    assert (
        _next_step(folder, problem, "c")
        == f"run the experiment, add it as a row to experiments.csv, and type {again}"
    )
    assert _next_step(folder, Dropwave(), "c") == f"{again} decision=ucb"
    nothing = Decision(None, 1.9, reason=Finding("no_gain", "all wait"))
    line = Round(0, problem.case(0), nothing, None, {}, kind="optimise").line()
    folder.write("decisions.jsonl", f"{line}\n")
    told = f"fill in the results that experiments.csv waits for, and type {again}"
    assert _next_step(folder, problem, "c") == told


def test_a_problem_file_is_followed_by_the_page_that_asks_its_model(tmp_path, monkeypatch):
    verb = sys.modules[_next_step.__module__]
    problem = SimpleNamespace(kind="rehearse")
    folder = RunFolder(tmp_path / "run")
    folder.write_json("run.json", {"overrides": ["path=problem.yaml", "+experiment=own_problem"]})
    folder.write_yaml("config.yaml", {"path": "problem.yaml"})
    monkeypatch.setattr(verb, "has_app", lambda: True)
    assert _next_step(folder, problem, "c") == f"python scripts/explore.py {folder.path}"
    monkeypatch.setattr(verb, "has_app", lambda: False)
    assert _next_step(folder, problem, "c") == f"open {folder.path / 'report.html'}"
