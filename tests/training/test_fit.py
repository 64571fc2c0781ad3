import weakref
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lightning.pytorch.callbacks import Callback

from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.kernel.nested_ridge import NestedRidge
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.fit import Fold, KeptFit, fit, folds_of
from tests.toys.causal_toys import plain
from tests.toys.rehearsal_toys import confounded, confounded_table, small
from tests.toys.transitions import model, observations


def test_empty_tables_are_refused():
    table = observations()
    empty = type(table)(table.names, table.values[:0], table.altered[:0])
    with pytest.raises(ValueError, match="expected rows in `table`"):
        fit(model(), empty, Descent())
    with pytest.raises(ValueError, match="expected rows in `held_out`"):
        fit(model(), table, Descent(), held_out=empty)


def test_nothing_is_learnt_from_held_out_rows_but_when_to_stop():
    table = observations(seed=1)
    wild = type(table)(table.names, table.values * 3 + 1, table.altered)
    plain = fit(model(), table, Descent(max_epochs=1, progress=False))
    checked = fit(model(), table, Descent(max_epochs=1, progress=False), held_out=wild.unaltered(()))
    states = [made.state_dict() for made in (plain, checked)]
    # That of the noise is what held-out rows are for.
    assert [len(state.pop("noise_check.shares")) for state in states] == [0, 2]
    assert all(torch.equal(states[0][name], value) for name, value in states[1].items())


def test_every_fit_checks_the_noise_and_forgets_what_it_was_for_other_rows():
    stale = torch.tensor([0.9, 0.9], dtype=torch.float64)
    table, held_out, surrogate = observations(seed=1), observations(seed=2), model()
    surrogate.noise_check.shares = stale
    fit(surrogate, table, Descent(max_epochs=1, progress=False))
    assert surrogate.noise_shares() == {}
    surrogate.noise_check.shares = stale
    fit(surrogate, table, Descent(max_epochs=1, progress=False), held_out)
    assert list(surrogate.noise_shares()) == ["x", "y"]
    assert 0.9 not in surrogate.noise_shares().values()
    surrogate.noise_check.shares = stale
    with pytest.raises(ValueError, match="pass a trainer"):
        fit(surrogate, table)
    assert surrogate.noise_shares() == {}


def test_held_out_rows_are_not_looked_at_where_no_part_uses_them():
    table = confounded_table(60)
    same = Table.observed(table.names, table.values[:1].expand(12, -1))
    estimator = partial(small, members=1, features=20, iterations=2)
    made = fit(NestedRidge(confounded(), estimator), table, held_out=same)
    assert made.faults() == []


def test_training_holds_no_table_that_the_caller_does_not_keep():
    alive = []

    class Watch(Callback):
        def on_train_start(self, trainer, pl_module):
            alive.append(table() is not None)

    given = [observations(seed=1)]
    table = weakref.ref(given[0])
    how = Descent(max_epochs=1, progress=False, callbacks={"watch": Watch})
    fit(model(), given.pop(), how)
    kept = observations(seed=1)
    table = weakref.ref(kept)
    fit(model(), kept, how)
    assert alive == [False, True]


@pytest.mark.slow
def test_fit_recovers_known_parameters():
    """Linear truth, s' = A s + B a + sd e: slopes and deviations of the fitted mechanism come out in clinical
    units."""
    from tests.toys.transitions import DEVIATION, SLOPE

    table = observations(count=400, horizon=11, seed=3)
    surrogate = fit(
        model(hidden=32, location_constant=None, scale_constant=None),
        table,
        Descent(max_epochs=40, learning_rate=5e-3, progress=False),
    )
    parents, _ = surrogate.examples(table)
    width = surrogate.rescale.width[:2]
    mechanism = surrogate.mechanism
    jacobian = torch.func.vmap(torch.func.jacrev(lambda row: mechanism.moments(row)[0]))(parents[:300])[
        ..., :2
    ].double()
    slopes = (jacobian * width[:, None] / width[None, :]).mean(0).detach()
    assert torch.allclose(slopes, SLOPE, atol=0.08)
    std = (
        mechanism.moments(parents)[1].detach().double()
        * (mechanism.cholesky() @ mechanism.cholesky().mT).diagonal().sqrt().detach().double()
        * width
    )
    assert torch.allclose(std.mean(0), DEVIATION, rtol=0.15)


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


def parted(folds: list[Fold], rows: int) -> None:
    assert torch.equal(torch.cat([fold.held_out for fold in folds]).sort().values, torch.arange(rows))
    for fold in folds:
        assert torch.equal(torch.cat([fold.train, fold.held_out]).sort().values, torch.arange(rows))


@given(
    owners=st.lists(st.integers(0, 12), min_size=20, max_size=60),
    count=st.integers(2, 5),
    seed=st.integers(0, 100),
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_no_unit_stands_on_both_sides(owners: list[int], count: int, seed: int):
    identities = [f"p{owner}" for owner in [*range(5), *owners]]
    folds = folds_of(len(identities), identities, count, seed)
    parted(folds, len(identities))
    held = [{identities[row] for row in fold.held_out.tolist()} for fold in folds]
    for fold, outside in zip(folds, held, strict=True):
        assert outside.isdisjoint(identities[row] for row in fold.train.tolist())
    assert max(map(len, held)) - min(map(len, held)) <= 1


def test_a_units_fold_does_not_depend_on_the_rows_order():
    identities = [f"p{row % 7}" for row in range(50)]
    shuffled = torch.randperm(50, generator=torch.Generator().manual_seed(0)).tolist()
    straight = {
        identities[row]: fold.index
        for fold in folds_of(50, identities, 3, 1)
        for row in fold.held_out.tolist()
    }
    mixed = [identities[row] for row in shuffled]
    again = {mixed[row]: fold.index for fold in folds_of(50, mixed, 3, 1) for row in fold.held_out.tolist()}
    assert straight == again


@given(rows=st.integers(5, 60), count=st.integers(2, 5), seed=st.integers(0, 100))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_row_folds_part_the_rows_evenly(rows: int, count: int, seed: int):
    folds = folds_of(rows, None, count, seed)
    parted(folds, rows)
    sizes = [len(fold.held_out) for fold in folds]
    assert max(sizes) - min(sizes) <= 1


def test_too_few_to_part_is_refused():
    with pytest.raises(ValueError, match="2 units"):
        folds_of(3, ["a", "a", "b"], 3)
    with pytest.raises(ValueError, match="at least 2 folds"):
        folds_of(10, None, 1)


def test_units_decide_the_folds_where_there_are_some():
    units = [f"s{row // 4}" for row in range(20)]
    for fold in folds_of(20, units, 5, 0):
        assert len(fold.held_out) == 4
        assert len({units[row] for row in fold.held_out.tolist()}) == 1
