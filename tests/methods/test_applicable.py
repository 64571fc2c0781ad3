"""Which methods apply, by their own refusals."""

import csv

import pytest
from omegaconf import OmegaConf

from rehearsal_torch.cli.method_of_problem import TABLE, record, recorded
from rehearsal_torch.methods.instantiate import problem_of
from rehearsal_torch.methods.method_choice import (
    NOT_COMPARED,
    SIMPLEST_FIRST,
    applicable,
    choose,
    chosen,
    fits,
    with_method,
)
from rehearsal_torch.methods.presets import CHOOSE, GROUPS
from rehearsal_torch.problems.cases.user_table import RehearsalTable
from rehearsal_torch.progress import Progress
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError
from tests.methods.test_method_choice import NOTHING, found
from tests.methods.test_run_parts import configured
from tests.toys.linear_truth import chain


def asked(task):
    config = configured("+experiment=own_table", "decision=auto", "dataset.path=table.csv", "dataset.task=t")
    problem = RehearsalTable(chain().table(40), task)
    candidates, others = applicable(config, problem)
    return candidates, {each.method: each for each in others}


@pytest.mark.slow
def test_all_methods_apply_to_a_plain_task():
    candidates, others = asked(chain().task.to_plain())
    assert [each.name for each in candidates] == [name for name in SIMPLEST_FIRST if name != "none"]
    assert {name: each.reason for name, each in others.items()} == NOT_COMPARED
    assert all(each.applies and not each.compared for each in others.values())


@pytest.mark.slow
def test_a_hidden_cause_beside_an_arrow_leaves_the_methods_that_only_adjust():
    task = chain().task.to_plain()
    parents = {"a": ["x"], "m": ["a"], "y": ["m", "x"]}
    task = task | {"graph": {"parents": parents, "bidirected": [["x", "y"]]}}
    candidates, others = asked(task)
    assert [each.name for each in candidates] == ["outcome_regression", "cme"]
    assert not others["care"].applies
    assert not others["none"].applies
    assert others["care"].reason == others["none"].reason
    assert "x -> y" in others["care"].reason
    assert others["cme_nystrom"].applies


@pytest.mark.slow
def test_a_named_method_is_refused_where_it_cannot_decide():
    task = chain().task.to_plain()
    fits(RehearsalTable(chain().table(40), task), "care")
    parents = {"a": ["x"], "m": ["a"], "y": ["m", "x"]}
    task = task | {"graph": {"parents": parents, "bidirected": [["x", "y"]]}}
    with pytest.raises(UserError, match="x -> y"):
        fits(RehearsalTable(chain().table(40), task), "care")


def resolved(config, group):
    return OmegaConf.to_container(config[group], resolve=True)


def test_the_parts_of_a_preset_take_the_place_of_others_and_the_rest_stays():
    auto = configured("dataset=bank", "dataset.size.rows=30", "decision=auto", "seed=7", "choose.cases=3")
    made, typed = with_method(auto, "care"), configured("dataset=bank", "decision=care", "seed=7")
    assert all(resolved(made, group) == resolved(typed, group) for group in GROUPS)
    assert made.surrogate.seed == 7
    assert made.dataset == auto.dataset
    assert CHOOSE not in made
    assert (auto[CHOOSE].cases, auto[CHOOSE].rows) == (3, 1000)


BANK = ("dataset=bank", "dataset.size.rows=60", "dataset.size.contexts=2", "decision=auto")


def made():
    return chosen(found({"care": [0.6] * 4}, NOTHING), 200)


def test_a_choice_is_written_and_read_again(tmp_path):
    folder, config = RunFolder(tmp_path), with_method(configured(*BANK), "care")
    assert recorded(folder) == {}
    record(made(), config, folder)
    again = recorded(folder)
    assert (again["chosen"], again["best"], again["value"], again["rows"]) == ("care", "care", 0.6, 200)
    assert again["configuration"]["surrogate"]["_target_"].endswith("LinearStructural")
    rows = list(csv.DictReader((tmp_path / TABLE).read_text().splitlines()))
    assert [(row["method"], row["chosen"]) for row in rows] == [("none", "no"), ("care", "yes")]


@pytest.mark.slow
def test_a_problem_of_another_kind_and_a_limit_out_of_range_are_refused():
    config = configured("dataset=dropwave", "decision=auto")
    with pytest.raises(UserError, match="this decides for cases with a context, actions and outcomes"):
        choose(config, problem_of(config))
    config = configured(*BANK, "choose.repeats=1")
    with pytest.raises(UserError, match=r"decision=auto: choose.repeats: expected a whole number .*; got 1"):
        choose(config, problem_of(config))


@pytest.mark.bench
def test_the_methods_that_apply_are_compared(capsys):
    config = configured(*BANK, "choose.repeats=2", "choose.cases=2")
    choice = choose(config, problem_of(config), Progress("comparing"))
    compared = [each.method for each in choice.standings if each.compared]
    assert compared == list(SIMPLEST_FIRST)
    assert (choice.rows, choice.of, choice.halves, choice.cases) == (60, 60, 4, 2)
    assert all(0 <= choice.standing(name).value <= 1 for name in compared)
    assert len(capsys.readouterr().out.splitlines()) == 3
