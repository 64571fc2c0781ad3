"""Posterior success: one action and many give the same shares; the shares are the truth where it is known."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.outcome import posterior_success
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.outcome.posterior_success import (
    SuccessInContexts,
    TabulatedSuccess,
    resampled,
    with_actions,
)
from rehearsal_torch.training.fit import fit
from tests.toys.rehearsal_toys import (
    confounded,
    confounded_table,
    confounded_truth,
    sequential,
    sequential_table,
    sequential_truth,
)

SMALL = {"members": 2, "frequencies": 40, "evidence_rows": 80, "iterations": 8}
TINY = {"members": 2, "frequencies": 8, "evidence_rows": 30, "iterations": 2}


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_many_actions_and_one_have_the_same_shares(place):
    task, table = (
        (confounded(candidates=[["a"], ["a", "c"]]), confounded_table(120))
        if place < 2
        else (sequential(), sequential_table(120))
    )
    model = fit(OutcomeRegression(task, **TINY), table)
    which = place % 2
    success = model.success(which, draws=5, points=7, purpose=0)
    assert success.draws == 6, "a multiple of the number of fits"
    contexts, actions = drawn(3, 1), drawn(4, 3, len(task.candidates[which]), seed=1)
    many = SuccessInContexts(success, contexts)
    assert many.shares(actions).shape == (4, 3, 6)
    single = torch.stack([success.once(contexts, each) for each in actions])
    desired = torch.stack([success.desired_once(contexts, each) for each in actions])
    assert torch.equal(desired.double().mean(-1), single)
    assert torch.equal(many.shares(actions), single)
    assert torch.equal(many.mean(actions), single.mean(-1))


class Largest(TorchDispatchMode):
    """The number of cells of the largest tensor that is made."""

    cells = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.cells = max(self.cells, made.numel())
        return made


def test_a_mediator_between_two_actions_takes_a_tile_of_memory_at_a_time(monkeypatch):
    model = fit(OutcomeRegression(sequential(), **TINY), sequential_table(120))
    success = model.success(0, draws=6, points=40, purpose=0)
    contexts, actions = drawn(12, 1), drawn(30, 12, 2, seed=1)
    whole = SuccessInContexts(success, contexts).shares(actions)
    point = success.draws * success.points * success.width
    monkeypatch.setattr(posterior_success, "CHUNK", 3 * point)
    with Largest() as largest:
        tiled = SuccessInContexts(success, contexts).shares(actions)
    assert torch.equal(tiled, whole)
    # 12 cases and 30 actions at once would be 360 of these.
    assert largest.cells <= 3 * point


@pytest.mark.parametrize("shape", [(3,), (4, 3)])
def test_values_are_those_of_every_point_by_itself(shape):
    model = fit(OutcomeRegression(confounded(), **TINY), confounded_table(120))
    success = model.success(0, draws=6, points=7, purpose=0)
    contexts, actions = drawn(3, 1), drawn(*shape, 1, seed=1)
    points = with_actions(success.known(contexts), actions)
    assert points.shape == (*shape, 6, 7, 3), "context, covariate and action of every point"
    members = zip(success.models.outcomes, success.functions, points.split(3, -3), strict=True)
    wanted = torch.cat([member.drawn(functions, part) for member, functions, part in members], -3)
    found = success.values(contexts, actions)
    assert torch.allclose(found, wanted, rtol=0, atol=1e-10)
    assert torch.equal(success.share(found), success.share(wanted))


def test_shares_are_the_probability_after_the_alteration_not_the_one_observed():
    model = fit(OutcomeRegression(confounded(), **SMALL), confounded_table(500))
    x, success = torch.tensor([[0.0]], dtype=torch.float64), model.success(0, 60, 100, 0)
    for action in (-0.5, 0.8, 1.4):
        a = torch.tensor([[action]], dtype=torch.float64)
        shares = success.once(model.contexts(x), model.scaler.standardised(("a",), a))
        assert float(shares.mean()) == pytest.approx(float(confounded_truth(x[0, 0], a[0, 0])), abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("actions", [(1.0, 1.0), (-0.5, 1.0), (0.5, -0.5)])
def test_what_follows_the_first_alteration_is_accounted_for(actions):
    model = fit(OutcomeRegression(sequential()), sequential_table(600))
    x, a = torch.tensor([[0.4]], dtype=torch.float64), torch.tensor([actions], dtype=torch.float64)
    shares = model.success(0, 60, 100, 0).once(model.contexts(x), model.scaler.standardised(("a", "b"), a))
    truth = float(sequential_truth(torch.tensor(0.4), torch.tensor(actions)))
    assert float(shares.mean()) == pytest.approx(truth, abs=0.05)


def test_residuals_keep_their_rows_together_and_are_spread_evenly():
    residuals = torch.stack((torch.arange(100.0), -torch.arange(100.0)), -1).double()[torch.randperm(100)]
    some = resampled(residuals, 6, 20, generator(0))
    assert some.shape == (6, 20, 2)
    assert torch.equal(some[..., 0], -some[..., 1])
    strata = (some[..., 0] / 5).long().sort(-1).values
    assert torch.equal(strata, torch.arange(20).expand(6, -1))
    assert not torch.equal(some[0], some[1])


SMALL = {"members": 2, "frequencies": 8, "evidence_rows": 30, "iterations": 2}
LOWER = torch.tensor([[-1.0], [0.2], [0.5]], dtype=torch.float64)
UPPER = torch.tensor([[2.0], [0.3], [0.5]], dtype=torch.float64)


def success_of(task=None, table=None, which=0, **settings):
    task, table = task or confounded(), table or confounded_table(120)
    return fit(OutcomeRegression(task, **{**SMALL, **settings}), table).success(which, 6, 40, 0)


@pytest.mark.parametrize("adjusted", [True, False])
@pytest.mark.parametrize("chunk", [None, 1])
def test_a_table_counts_what_the_drawn_outcomes_count(adjusted, chunk, monkeypatch):
    if chunk is not None:
        monkeypatch.setattr(posterior_success, "CHUNK", chunk)
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
