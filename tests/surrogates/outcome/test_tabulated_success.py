"""Shares along one action: the same counts as from drawn outcomes at every action."""

import pytest
import torch

from rehearsal_torch.surrogates.outcome import tabulated_success
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.outcome.posterior_success import SuccessInContexts
from rehearsal_torch.surrogates.outcome.tabulated_success import TabulatedSuccess
from rehearsal_torch.training.fit import fit
from tests.toys.rehearsal_toys import confounded, confounded_table, sequential, sequential_table

TINY = {"members": 2, "frequencies": 8, "evidence_rows": 30, "iterations": 2}
LOWER = torch.tensor([[-1.0], [0.2], [0.5]], dtype=torch.float64)
UPPER = torch.tensor([[2.0], [0.3], [0.5]], dtype=torch.float64)


def success_of(task=None, table=None, which=0, **settings):
    task, table = task or confounded(), table or confounded_table(120)
    return fit(OutcomeRegression(task, **{**TINY, **settings}), table).success(which, 6, 40, 0)


@pytest.mark.parametrize("adjusted", [True, False])
@pytest.mark.parametrize("chunk", [None, 1])
def test_a_table_counts_what_the_drawn_outcomes_count(adjusted, chunk, monkeypatch):
    if chunk is not None:
        monkeypatch.setattr(tabulated_success, "CHUNK", chunk)
    success = success_of(confounded(adjusted))
    stream = torch.Generator().manual_seed(0)
    contexts = torch.randn(3, 1, generator=stream, dtype=torch.float64)
    actions = LOWER + torch.rand(30, 3, 1, generator=stream, dtype=torch.float64) * (UPPER - LOWER)
    table = TabulatedSuccess.over(success, contexts, LOWER, UPPER)
    assert torch.allclose(table._values(actions), success.values(contexts, actions), rtol=0, atol=1e-10)
    plain = SuccessInContexts(success, contexts)
    assert torch.equal(table.shares(actions), plain.shares(actions))
    assert table.mean(actions).std() > 0.01
    assert torch.equal(table.mean(actions), plain.mean(actions))


def test_what_has_no_cheaper_form_has_no_table():
    success, contexts = success_of(), torch.zeros(3, 1, dtype=torch.float64)
    assert TabulatedSuccess.over(success, contexts, LOWER, 1e5 * UPPER) is None, "too many waves"
    several = success_of(confounded(candidates=[["a", "c"]]))
    bounds = LOWER.expand(-1, 2), UPPER.expand(-1, 2)
    assert TabulatedSuccess.over(several, contexts, *bounds) is None, "two actions"
    assert TabulatedSuccess.over(success_of(sequential(), sequential_table(120)), contexts, *bounds) is None
