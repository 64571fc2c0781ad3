"""One fit of an unchanged table, and never one of another table."""

from functools import partial

import pytest
import torch

from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.kept_fit import KeptFit
from tests.toys.causal_toys import plain

TASK = plain({"X": ["a"], "Y": ["X", "b"]}, {"a": [0, 1], "b": [0, 2]}, "Y")
PLAIN = partial(ExogenousModel, phi="homoskedastic", components=1)


def rows(count):
    cells = torch.rand(count, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return Table(("a", "b", "X", "Y"), cells, torch.zeros(count, 4, dtype=torch.bool))


def test_the_same_table_is_fitted_once_and_another_one_anew():
    table, kept = rows(20), KeptFit()
    first, again = kept(PLAIN, TASK, table), kept(PLAIN, TASK, rows(20))
    assert kept.fits == 1
    for key, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[key]), key
    kept(PLAIN, TASK, rows(21))
    kept(ExogenousModel, TASK, rows(21))
    assert kept.fits == 3


def test_what_a_caller_does_to_a_copy_does_not_last():
    table, kept = rows(20), KeptFit()
    changed = kept(PLAIN, TASK, table)
    changed.condition(rows(30))
    assert len(kept(PLAIN, TASK, table).visited()) == 20


def test_a_failed_fit_is_not_kept():
    kept = KeptFit()
    trained = partial(PLAIN, fitting="train")
    for _ in range(2):
        with pytest.raises(ValueError, match="is trained by gradients: pass a trainer"):
            kept(trained, TASK, rows(20))
    with_trainer = KeptFit(Descent(max_epochs=3, precision="64-true", progress=False))
    assert len(with_trainer(trained, TASK, rows(20)).visited()) == 20
