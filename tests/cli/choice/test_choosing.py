"""The choice for a problem, and its record."""

import csv

import pytest

from rehearsal_torch.cli.build import problem_of
from rehearsal_torch.cli.choice.applicable import with_method
from rehearsal_torch.cli.choice.choosing import TABLE, choose, record, recorded
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.method_choice.rule import SIMPLEST_FIRST, chosen
from rehearsal_torch.run_folder import RunFolder
from tests.cli.test_run import configured
from tests.method_choice.test_rule import NOTHING, found

BANK = ("dataset=bank", "dataset.size.rows=60", "dataset.size.contexts=2", "decision=auto")


def made():
    return chosen(found({"care": [0.6] * 4}, NOTHING), 200, SIMPLEST_FIRST)


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
def test_the_methods_that_apply_are_compared():
    config = configured(*BANK, "choose.repeats=2", "choose.cases=2")
    lines = []
    choice = choose(config, problem_of(config), lines.append)
    compared = [each.method for each in choice.standings if each.compared]
    assert compared == list(SIMPLEST_FIRST)
    assert (choice.rows, choice.of, choice.halves, choice.cases) == (60, 60, 4, 2)
    assert all(0 <= choice.standing(name).value <= 1 for name in compared)
    assert len(lines) == 2
