"""A Trainer of the user's own fits what `fit` fits."""

import warnings

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.fit import fit
from rehearsal_torch.training.lightning_parts import lightning_parts
from rehearsal_torch.training.module import TrainingModule
from tests.toys.noisy_nodes import CHAIN, chain
from tests.toys.transitions import model, observations

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
