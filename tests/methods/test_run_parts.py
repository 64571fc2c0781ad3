"""Everything that a configuration names, built and checked once."""

import pytest

from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.methods.run_parts import build
from rehearsal_torch.user_error import UserError

BANK = ("dataset=bank", "dataset.size.rows=30", "decision=micns")


def configured(*overrides):
    return composed(list(overrides), multirun=False)[0]


def test_a_run_holds_what_the_configuration_names():
    run = build(configured(*BANK, "seed=3"))
    assert (run.kind, run.seed, run.learn, run.certify) == ("rehearse", 3, False, None)
    assert run.problem.seed == 3
    assert run.config["surrogate"]["task"] == run.problem.task.to_plain()
    assert "hydra" not in run.config
    assert run.trainer(None).folder is None


@pytest.mark.slow
def test_a_problem_that_was_built_before_is_taken():
    problem = build(configured(*BANK)).problem
    assert build(configured(*BANK), problem).problem is problem


def test_an_objective_of_another_kind_is_refused():
    with pytest.raises(UserError, match=r"decision: this decides for .*; Loan has cases with a context"):
        build(configured(*BANK, "objective=posterior_mean"))


def test_a_search_of_another_kind_is_refused_with_what_to_choose():
    with pytest.raises(UserError, match="search: AcquisitionSearch searches for rounds of trials") as refused:
        build(configured(*BANK, "search=acquisition"))
    assert "Leave search= out and choose a decision for such data" in str(refused.value)
    assert "decision=outcome_regression or decision=care or decision=none; or choose a dataset" in str(
        refused.value
    )


def test_what_is_no_search_is_refused():
    config = configured(*BANK)
    config.search = {"_target_": "rehearsal_torch.certificate.PacBound"}
    with pytest.raises(UserError, match="search: expected a search; got PacBound"):
        build(config)


def test_auto_is_refused_where_no_method_was_taken():
    with pytest.raises(UserError, match=r"decision=auto: auto takes one of the methods by the rows"):
        build(configured("dataset=bank", "dataset.size.rows=30", "decision=auto"))
