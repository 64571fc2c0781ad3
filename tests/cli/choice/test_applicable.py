"""Which methods apply, by their own refusals."""

import pytest
from omegaconf import OmegaConf

from rehearsal_torch.cli.choice.applicable import CHOOSE, GROUPS, applicable, fits, rehearsing, with_method
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.method_choice.rule import NOT_COMPARED, SIMPLEST_FIRST
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
from tests.cli.test_run import configured
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
    assert {each.name: each.within for each in candidates}["cme"] == ("cme_stack", "indicator")


@pytest.mark.slow
def test_a_hidden_cause_beside_an_arrow_leaves_the_methods_that_only_adjust():
    task = chain().task.to_plain()
    parents = {"a": ["x"], "m": ["a"], "y": ["m", "x"]}
    task = task | {"graph": {"parents": parents, "bidirected": [["x", "y"]]}}
    candidates, others = asked(task)
    assert [each.name for each in candidates] == ["outcome_regression", "cme", "cme_stack"]
    assert not others["care"].applies
    assert not others["none"].applies
    assert others["care"].reason == others["none"].reason
    assert "x -> y" in others["care"].reason
    assert others["cme_nystrom"].applies


def test_auto_is_no_method_of_its_own():
    assert "auto" not in rehearsing()
    assert {"care", "none", "grad_rh"} <= set(rehearsing())


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
