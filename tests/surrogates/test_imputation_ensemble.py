"""Surrogates of imputed tables: each is that of its own table, saved and loaded with the others."""

from functools import partial

import pytest
import torch

from rehearsal_torch.checkpoint import load, save
from rehearsal_torch.data.imputation import ImputedTable
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.task_compatibility import OtherQuestionError
from rehearsal_torch.surrogates.imputation_ensemble import ImputedSurrogate
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain, managing

WORLD = chain()


def with_holes(rows=80, seed=0):
    table = WORLD.table(rows)
    holes = table.values.clone()
    holes[torch.rand(holes.shape, generator=torch.Generator().manual_seed(seed)) < 0.15] = torch.nan
    return ImputedTable.of(table.names, holes, 3, seed)


@pytest.fixture(scope="module")
def table():
    return with_holes()


@pytest.fixture(scope="module")
def fitted(table):
    return fit(ImputedSurrogate(WORLD.task, partial(LinearStructural), 3), table)


def states_are_equal(one, other):
    first, second = one.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    return all(torch.equal(first[key], second[key]) for key in first)


def test_each_surrogate_is_that_of_its_own_table(fitted, table):
    for model, own in zip(fitted.each, table.completed, strict=True):
        assert states_are_equal(model, fit(LinearStructural(WORLD.task), own))
    assert not states_are_equal(*fitted.each[:2])
    assert fitted.overlap.rows.shape[0] == 80


def test_without_missing_cells_all_are_equal():
    made = fit(ImputedSurrogate(WORLD.task, partial(LinearStructural), 2), WORLD.table(40))
    assert states_are_equal(*made.each)


def test_it_is_saved_and_loaded(fitted, tmp_path):
    config = {
        "_target_": "rehearsal_torch.surrogates.imputation_ensemble.ImputedSurrogate",
        "task": WORLD.task.to_plain(),
        "member": {
            "_target_": "rehearsal_torch.surrogates.structural.linear_scm.LinearStructural",
            "_partial_": True,
        },
        "count": 3,
    }
    again = load(save(fitted, config, tmp_path), task=WORLD.task)
    assert states_are_equal(again, fitted)
    assert again.faults() == []
    with pytest.raises(ValueError, match="fitted for another question"):
        load(tmp_path, task=managing().task)


def test_all_answer_the_question_that_is_taken_over(fitted):
    made = fit(ImputedSurrogate(WORLD.task, partial(LinearStructural), 2), WORLD.table(40))
    plain = WORLD.task.to_plain()
    bounds = {name: [low + 0.1, high - 0.1] for name, (low, high) in WORLD.task.box.bounds().items()}
    made.adopt(plain | {"box": bounds})
    for model in (made, *made.each):
        assert {name: list(each) for name, each in model.task.box.bounds().items()} == bounds
    with pytest.raises(OtherQuestionError):
        made.adopt(managing().task)


def test_what_does_not_go_together_is_refused(fitted, table):
    with pytest.raises(ValueError, match="imputed 2 times; got one of 3"):
        fit(ImputedSurrogate(WORLD.task, partial(LinearStructural), 2), table)
    with pytest.raises(ValueError, match="from 2 to 200; got 1"):
        ImputedSurrogate(WORLD.task, partial(LinearStructural), 1)
    holes = table.values.masked_fill(table.missing, torch.nan)
    with pytest.raises(ValueError, match="are missing or infinite"):
        fit(ImputedSurrogate(WORLD.task, partial(LinearStructural), 2), Table.observed(table.names, holes))
