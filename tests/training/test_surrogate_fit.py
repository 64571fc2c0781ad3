import subprocess
import sys
import time
import weakref
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import CSVLogger

from rehearsal_torch import task_pool
from rehearsal_torch.data.imputation import ImputedTable
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.surrogates.imputation_ensemble import ImputedSurrogate
from rehearsal_torch.surrogates.kernel.nested_ridge import NestedRidge
from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble
from rehearsal_torch.training import surrogate_fit as fits
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import (
    Fold,
    KeptFit,
    _aligned_tensor,
    fit,
    fit_parts,
    folds_of,
    separable,
    shareable,
    trained_elsewhere,
)
from rehearsal_torch.worker_processes import threads
from tests.toys.causal_toys import plain
from tests.toys.linear_truth import chain
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


CSV = partial(CSVLogger, name="", version="")
WORLD = chain()
OWN = WORLD.task
SMALL = partial(SpectralEnsemble, members=2, features=20, iterations=4)


def ensemble(effects="dense"):
    seeds = iter(range(4))
    return TransitionEnsemble(lambda: model(seed=next(seeds), effects=effects), 4, seed=1)


def trained(workers, folder=None, effects="dense", epochs=6, **how):
    torch.manual_seed(0)
    trainer = Descent(epochs, 64, patience=3, progress=False, folder=folder, **how)
    made = fit(ensemble(effects), observations(), trainer, observations(10, seed=1), workers=workers)
    return made.state_dict(), trainer.history


def agree(one, other):
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.fixture
def shared_always(monkeypatch):
    monkeypatch.setattr(fits, "MANY", 0)


def counted(monkeypatch):
    """The numbers of workers with which members are fitted."""
    asked, inner = [], fits.results

    def noted(work, common, tasks, workers, **how):
        asked.append(workers)
        return inner(work, common, tasks, workers, **how)

    monkeypatch.setattr(fits, "results", noted)
    return asked


@pytest.mark.slow
@pytest.mark.parametrize("effects", ["dense", "sparse"])
def test_trainings_that_are_shared_have_the_same_bits_losses_and_states(
    effects, tmp_path, shared_always, monkeypatch
):
    asked = counted(monkeypatch)
    alone, losses = trained(1, tmp_path / "one", effects, loggers={"csv": CSV})
    before = torch.get_rng_state()
    shared, there = trained(2, tmp_path / "two", effects, loggers={"csv": CSV})
    assert torch.equal(torch.get_rng_state(), before)
    assert asked == [2]
    assert agree(alone, shared)
    assert there == losses
    files = [
        sorted(str(each.relative_to(at)) for at in [path] for each in at.rglob("*.c*"))
        for path in (tmp_path / "one", tmp_path / "two")
    ]
    assert files[0] == files[1]
    assert len(files[0]) >= 4 * 2


def shared_out(monkeypatch):
    """The numbers of tasks that go to other processes, which all do after the first."""
    asked, inner = [], task_pool._in_processes

    def noted(work, common, tasks, workers, ahead):
        asked.append(len(tasks))
        return inner(work, common, tasks, workers, ahead)

    monkeypatch.setattr(task_pool, "_in_processes", noted)
    monkeypatch.setattr(task_pool, "PAYS", 0.0)
    return asked


def sets():
    """The indicator's regressions for three candidate sets."""
    return NestedRidge(OWN, SMALL)


@pytest.mark.slow
def test_candidate_sets_that_are_shared_have_the_same_bits(monkeypatch):
    table = WORLD.table(80)
    alone, made = fit(sets(), table).state_dict(), sets()
    assert agree(alone, fit(made, table, workers=2).state_dict()), "too short to be shared"
    asked = shared_out(monkeypatch)
    # What an earlier fit has left there is not in the way.
    assert agree(alone, fit(made, table, held_out=WORLD.table(20, seed=1), workers=2).state_dict())
    assert asked == [2]


def test_a_solver_has_one_thread_in_this_process_as_in_another(monkeypatch):
    seen, inner = [], fits.fit_parts

    def noted(*given):
        seen.append(torch.get_num_threads())
        inner(*given)

    monkeypatch.setattr(fits, "fit_parts", noted)
    with threads(2):
        fit(sets(), WORLD.table(40), workers=2)
        assert torch.get_num_threads() == 2
    assert seen == [2, 1, 1, 1, 2], "common, three members, closing"


def test_solved_members_need_neither_the_trainer_nor_its_folder(monkeypatch, tmp_path):
    given, inner = [], fits.results

    def noted(work, common, tasks, workers, **how):
        given.append(common)
        return inner(work, common, tasks, workers, **how)

    monkeypatch.setattr(fits, "results", noted)
    fit(sets(), WORLD.table(40), Descent(progress=False, folder=tmp_path / "training"), workers=2)
    assert [common.trainer for common in given] == [None]
    assert not (tmp_path / "training").exists()


class Half(NestedRidge):
    """Fits the estimators to half of the targets."""

    def parts(self, table):
        for part, examples in super().parts(table):
            halved = isinstance(part, SpectralEnsemble)
            yield part, (*examples[:4], examples[4] / 2, examples[5]) if halved else examples


def test_a_surrogate_that_overrides_its_parts_is_fitted_by_them(monkeypatch):
    asked, made = counted(monkeypatch), [Half(OWN, SMALL), Half(OWN, SMALL)]
    one, other = (
        fit(each, WORLD.table(60), workers=workers).state_dict()
        for each, workers in zip(made, (1, 2), strict=True)
    )
    assert asked == []
    assert agree(one, other)


def test_numbers_of_a_state_begin_where_those_of_tensors_begin():
    numbers = np.arange(72.0)
    for begin in range(8):
        part = numbers[begin : begin + 60]
        found = _aligned_tensor(part)
        assert found.data_ptr() % 64 == 0
        assert np.array_equal(found.numpy(), part)


@pytest.mark.bench
def test_a_killed_training_is_resumed_by_any_number_of_processes(tmp_path, shared_always):
    code = (
        "from pathlib import Path; from rehearsal_torch.training import surrogate_fit as fits; "
        "from tests.training.test_surrogate_fit import trained; fits.MANY = 0; "
        f"trained(2, Path({str(tmp_path)!r}), epochs=25)"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        ends = time.monotonic() + 300
        while not list(tmp_path.rglob("last.ckpt")):
            assert process.poll() is None
            assert time.monotonic() < ends
            time.sleep(0.02)
        process.kill()
    time.sleep(2.0)  # its workers have noticed
    kept = {str(path): path.read_bytes() for path in tmp_path.rglob("last.ckpt")}
    time.sleep(1.0)
    assert kept == {str(path): path.read_bytes() for path in tmp_path.rglob("last.ckpt")}
    alone, losses = trained(1, epochs=25)
    for workers in (2, 1):
        state, there = trained(workers, tmp_path, epochs=25)
        assert agree(alone, state)
        assert there == losses


def test_a_worker_with_a_gpu_trains_on_its_cpu_if_this_process_has_none(shared_always, monkeypatch):
    asked, inner = [], fits.results

    def here(work, common, tasks, workers, **how):
        return inner(work, common, tasks, 1, **how)

    monkeypatch.setattr(Descent, "gpus", lambda how: asked.append(how.accelerator) or [])
    monkeypatch.setattr(fits, "results", here)
    trained(2, epochs=1, accelerator="auto")
    assert asked == ["cpu"] * 4, "settled before the members are shared"


@pytest.mark.parametrize(
    ("how", "gpus", "shared"),
    [
        ({}, 2, True),
        ({"accelerator": "auto"}, 0, True),
        ({"accelerator": "auto"}, 1, False),
        ({"accelerator": "gpu"}, 1, False),
        ({"accelerator": "gpu", "devices": [1]}, 2, False),
        ({"devices": 2}, 0, False),
    ],
)
def test_fits_on_gpus_or_by_several_processes_are_those_of_one_process(monkeypatch, how, gpus, shared):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert shareable(Descent(**how)) == shared
    assert trained_elsewhere(Descent(**how), 10**9) == shared
    assert shareable(None)


def test_what_does_not_pay_or_cannot_be_shared_is_trained_here(monkeypatch, tmp_path):
    asked = counted(monkeypatch)
    trained(2, epochs=1)
    assert asked == [], "few rows"
    rows = 10**6
    assert separable(ensemble(), rows, Descent())
    assert not separable(ensemble(), rows, None)
    for how in (
        {"threads": 2},
        {"threads": None},
        {"devices": 2},
        {"accelerator": "gpu"},
        {"callbacks": {"own": Callback}},
        {"loggers": {"wandb": CSVLogger}, "folder": tmp_path},
    ):
        assert not separable(ensemble(), rows, Descent(**how)), how
    monkeypatch.setattr(fits, "MANY", 0)
    with pytest.raises(ValueError, match="at least 1 worker; got 0"):
        fit(ensemble(), observations(), Descent(), workers=0)


class Turned(Solved):
    """Keeps its examples, turned."""

    def __init__(self):
        super().__init__()
        self.register_fitted("kept")

    def solve(self, *examples):
        self.kept = examples[0].mT


def test_what_is_solved_is_contiguous_as_after_loading():
    part, rows = Turned(), torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    fit_parts(iter([(part, (rows,))]), None, {}, None, True)
    assert torch.equal(part.kept, rows.mT)
    assert part.kept.is_contiguous()


def test_held_out_examples_are_made_for_trained_parts_alone_and_losses_have_names():
    surrogate, made = model(), []

    def steps(table):
        for part, examples in surrogate.parts(table):
            made.append((type(part).__name__, len(table)))
            yield part, examples

    names = {id(module): name for name, module in surrogate.named_modules()}
    trainer = Descent(max_epochs=2, progress=False)
    fit_parts(steps(observations()), steps(observations(10, seed=1)), names, trainer, True)
    assert [each for each in made if each[1] == 200] == [
        ("Rescale", 200),
        ("DoseLevels", 200),
        ("ComparableSteps", 200),
        ("LocationScale", 200),
    ]
    assert made.index(("LocationScale", 200)) < made.index(("Rescale", 50)), "only when they are needed"
    assert {name for _, name, _ in trainer.history} == {"mechanism/train_loss", "mechanism/held_out_loss"}
    assert len(trainer.history) == 4


def test_a_part_without_a_solver_is_named_where_nothing_trains_it():
    surrogate = model()
    with pytest.raises(ValueError, match=r"part 'LocationScale' \(LocationScale\) is trained by gradients"):
        fit_parts(surrogate.parts(observations()), None, {}, None, True)


@pytest.mark.slow
def test_imputed_tables_that_are_shared_have_the_same_bits(monkeypatch):
    holes = WORLD.table(60).values.clone()
    holes[torch.rand(holes.shape, generator=torch.Generator().manual_seed(0)) < 0.15] = torch.nan
    table = ImputedTable.of(WORLD.table(60).names, holes, 3, 0)

    def state(workers):
        torch.manual_seed(0)
        made = ImputedSurrogate(OWN, partial(OutcomeRegression), 3)
        return fit(made, table, workers=workers).state_dict()

    alone = state(1)
    assert agree(alone, state(2)), "too short to be shared"
    asked = shared_out(monkeypatch)
    assert agree(alone, state(2))
    assert asked == [2]


def test_held_out_rows_are_not_looked_at_where_no_part_uses_them():
    table = confounded_table(60)
    same = Table.observed(table.names, table.values[:1].expand(12, -1))
    estimator = partial(small, members=1, features=20, iterations=2)
    made = fit(NestedRidge(confounded(), estimator), table, held_out=same)
    assert made.faults() == []
