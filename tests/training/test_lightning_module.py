import warnings
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training import lightning_module as training_batches
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.lightning_module import Batches, TrainingData, TrainingModule, lightning_parts
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.noisy_nodes import CHAIN, chain
from tests.toys.transitions import model, observations


def of_process(rank: int, world: int) -> SimpleNamespace:
    strategy = SimpleNamespace(root_device=torch.device("cpu"))
    return SimpleNamespace(strategy=strategy, world_size=world, global_rank=rank, current_epoch=0)


def test_each_process_takes_its_share_of_every_batch():
    rows = (torch.arange(9.0),)
    examples = TrainingData(rows, rows, 4, 0)
    examples.trainer = of_process(0, 1)
    alone = examples.train_dataloader()
    assert isinstance(alone, Batches)
    whole = [share.examples[0].tolist() for share in alone]
    parts = []
    for rank in range(2):
        examples.trainer = of_process(rank, 2)
        shares = examples.train_dataloader()
        parts.append([share.examples[0].tolist() for share in shares])
        checks = [share.examples[0].tolist() for share in examples.val_dataloader()]
        assert checks == [[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0, 8.0]][rank]]
    assert [one + other for one, other in zip(*parts, strict=True)][:2] == whole[:2]
    assert parts[0][2] == parts[1][2] == whole[2], "one row for two processes"


def test_an_epoch_goes_through_every_row_once_in_an_order_of_its_own():
    epoch = [0]
    rows = (torch.arange(10), torch.arange(10) * 2)
    batches = Batches(rows, 4, seed=3, epoch=lambda: epoch[0])
    first = [share.examples for share in batches]
    assert [len(part) for part, _ in first] == [4, 4, 2]
    assert len(batches) == 3
    assert torch.equal(torch.cat([part for part, _ in first]).sort().values, rows[0])
    assert all(torch.equal(2 * one, other) for one, other in first)
    assert all(torch.equal(one, other) for (one, _), (*_, (other, _)) in zip(first, batches, strict=True))
    epoch[0] = 1
    assert any(not torch.equal(one, other) for (one, _), (*_, (other, _)) in zip(first, batches, strict=True))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_blocks_give_the_batches_of_one_permutation_of_all_rows(monkeypatch: pytest.MonkeyPatch, size: int):
    monkeypatch.setattr(training_batches, "BLOCK", 100)
    rows = torch.randn(1000, 3)
    batches = Batches((rows, rows[:, 0]), size, seed=4, epoch=lambda: 2)
    whole = rows[batches.order(2)].split(size)
    found = [share.examples for share in batches]
    assert len(found) == len(batches) == len(whole)
    for (one, other), expected in zip(found, whole, strict=True):
        assert torch.equal(one, expected)
        assert torch.equal(other, expected[:, 0])
    blocks = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one, _ in found}
    assert max(blocks.values()) <= 12 * (100 + 64 * size), "no block holds all rows"


@given(rows=st.integers(1, 60), size=st.integers(1, 20), world=st.integers(1, 5))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_the_mean_of_the_shares_is_the_mean_of_the_batch(rows: int, size: int, world: int):
    values = torch.randn(rows, generator=torch.Generator().manual_seed(rows), dtype=torch.float64)
    batches = Batches((values,), size, 0, lambda: 0)
    shares = [list(Batches((values,), size, 0, lambda: 0, rank, world)) for rank in range(world)]
    assert {len(each) for each in shares} == {len(batches)}
    for (_, _, batch), parts in zip(batches, zip(*shares, strict=True), strict=True):
        mean = sum(part.weight * part.examples[0].mean() for part in parts) / world
        torch.testing.assert_close(mean, batch[0].mean(), atol=1e-12, rtol=0)
        if len(batch[0]) >= world:
            assert torch.equal(torch.cat([part.examples[0] for part in parts]), batch[0])


QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}


@pytest.fixture(autouse=True)
def advice():
    """Elsewhere in the tests every warning is an error; Lightning advises on workers of data loaders."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning")
        yield


def equal(one, other):
    state = other.state_dict()
    return all(torch.equal(value, state[name]) for name, value in one.state_dict().items())


def test_a_plain_trainer_gives_the_transition_of_a_fit(tmp_path):
    table = observations()
    expected = fit(model(), table, Descent(max_epochs=3, batch_size=64, progress=False))
    own, saved = model(), ModelCheckpoint(tmp_path, save_last=True, save_top_k=0)
    for module, data in lightning_parts(own, table, batch_size=64):
        trainer = Trainer(max_epochs=3, enable_checkpointing=True, callbacks=[saved], **QUIET)
        trainer.fit(module, data)
    assert equal(own, expected)
    # Lightning's own file holds plain values alone, and a training of ours goes on from it.
    longer = Descent(max_epochs=5, batch_size=64, progress=False, ckpt_path=tmp_path / "last.ckpt")
    again = fit(model(seed=3), table, longer)
    whole = fit(model(), table, Descent(max_epochs=5, batch_size=64, progress=False))
    assert equal(again, whole)
    loaded = TrainingModule.load_from_checkpoint(tmp_path / "last.ckpt", part=module.part, weights_only=True)
    assert loaded.learning_rate == 1e-3


def test_flags_and_callbacks_of_lightning_work_with_held_out_rows():
    own, seen = model(), []
    for module, data in lightning_parts(own, observations(), observations(10, 6, 1), learning_rate=0.05):
        stop = EarlyStopping("held_out_loss", patience=1)
        trainer = Trainer(
            max_epochs=30, gradient_clip_val=0.5, callbacks=[stop], enable_checkpointing=False, **QUIET
        )
        trainer.fit(module, data)
        seen += [name for _, name, _ in module.readings]
        assert len(module.readings) == 2 * trainer.current_epoch, "without those of the first, sane, look"
    assert set(seen) == {"train_loss", "held_out_loss"}
    own.require_fitted()


def test_encoders_and_decoders_are_trained_one_after_the_other():
    own = ExogenousModel(CHAIN.to_plain(), fitting="train", decoder="gp")
    parts = []
    for module, data in lightning_parts(own, chain(30, 0), batch_size=30, learning_rate=0.02):
        Trainer(max_epochs=2, enable_checkpointing=False, **QUIET).fit(module, data)
        parts.append(type(module.part).__name__)
    assert parts == ["TrainedProcesses", "TrainedProcesses"]
    assert torch.isfinite(own.network().propagate(chain(5, 1).columns(("a", "b")), own.draws(4))[0]).all()
