"""A problem file that asks for trials: the same as its table and task."""

from rehearsal_torch.problems.causal.own_experiments import ExperimentTable
from rehearsal_torch.problems.written.own_trials import OwnTrials
from tests.problems.written.conftest import experiments


def test_it_is_the_table_with_the_task(trials):
    file = trials()
    problem = OwnTrials(file)
    table = ExperimentTable(file.parent / "experiments.csv", problem.task)
    assert problem.card() == table.card()
    assert problem.case(0).facts() == table.case(0).facts()
    assert problem.wording() == {"units_of": {"dose": "ml", "temperature": "degrees"}}
    assert problem.to_begin() is None
    assert OwnTrials(trials(method="ucb")).method_named() == "ucb"


def test_what_is_held_is_held_unless_something_else_is_typed(trials):
    file = trials(fixed={"dose": 2})
    assert OwnTrials(file).case(0).levels["dose"] == (2.0,)
    assert OwnTrials(file, fixed={"dose": 5}).case(0).levels["dose"] == (5.0,)


def test_with_too_few_experiments_the_first_ones_are_listed(trials, tmp_path):
    assert len(OwnTrials(trials(data=None)).to_begin()) == 6
    experiments(3).to_csv(tmp_path / "experiments.csv", index=False)
    assert 0 < len(OwnTrials(trials()).to_begin()) <= 6
