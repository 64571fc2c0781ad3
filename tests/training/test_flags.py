"""What a training takes over from Lightning: flags of its Trainer, callbacks, and where it begins."""

import pickle
from typing import ClassVar

import pytest
import torch
from lightning.pytorch.callbacks import Callback

from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.training import lightning_training
from rehearsal_torch.training.gradient_descent import Descent

SHORT = {"max_epochs": 2, "batch_size": 32, "progress": False}


def part(hidden=8, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LocationScale(3, 2, 2, hidden=hidden)


def rows(count=64, seed=1):
    stream = torch.Generator().manual_seed(seed)
    parents = torch.rand(count, 5, generator=stream) - 0.5
    return parents, 0.7 * parents[:, :2] + 0.1 * torch.randn(count, 2, generator=stream)


def trained(**settings):
    one = part()
    Descent(**{**SHORT, **settings}).train(one, rows(), rows(20, 2))
    return one


def equal(one, other):
    return all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


def test_a_flag_reaches_the_trainer_of_lightning(monkeypatch):
    asked = {}
    trainer = lightning_training.Trainer
    monkeypatch.setattr(
        lightning_training, "Trainer", lambda **flags: trainer(**(asked.update(flags) or flags))
    )
    clipped = trained(gradient_clip_val=1e-3, num_sanity_val_steps=1, check_val_every_n_epoch=2)
    assert (asked["gradient_clip_val"], asked["num_sanity_val_steps"]) == (1e-3, 1)
    assert equal(clipped, trained(clip=1e-3, check_val_every_n_epoch=2))
    assert not equal(clipped, trained())


def test_a_folder_of_other_flags_is_another_training(tmp_path):
    trained(folder=tmp_path, gradient_clip_val=1.0)
    trained(folder=tmp_path, gradient_clip_val=1.0, enable_model_summary=False, max_epochs=3)
    with pytest.raises(ValueError, match=r"flag gradient_clip_val: '1.0' there, None here"):
        trained(folder=tmp_path)


class Counter(Callback):
    """Counts the epochs of one training."""

    seen: ClassVar[list[int]] = []

    def __init__(self):
        self.epochs = 0

    def on_train_epoch_end(self, trainer, pl_module):
        self.epochs += 1
        self.seen.append(self.epochs)


def test_each_training_has_its_own_copy_of_a_callback(monkeypatch):
    monkeypatch.setattr(Counter, "seen", [])
    mine = Counter()
    how = Descent(**SHORT, callbacks=[mine])
    how.train(part(), rows())
    how.train(part(), rows())
    Descent(**SHORT, callbacks={"counter": mine}).train(part(), rows())
    Descent(**SHORT, callbacks=[Counter]).train(part(), rows())
    assert (Counter.seen, mine.epochs) == ([1, 2] * 4, 0)


@pytest.mark.parametrize("begin", ["run", "run/training", "run/training/part/last.ckpt"])
def test_a_training_goes_on_from_the_folder_of_a_run_or_a_file(tmp_path, begin):
    trained(folder=tmp_path / "run/training")
    longer = trained(max_epochs=4, ckpt_path=tmp_path / begin, folder=tmp_path / "new")
    assert equal(longer, trained(max_epochs=4))
    # What its own folder holds goes first.
    again = trained(max_epochs=4, ckpt_path=tmp_path / begin, folder=tmp_path / "new")
    assert equal(again, longer)


class Payload:
    """Would make a folder when it is read."""

    def __reduce__(self):
        return (print, ("attacked",))


def test_a_file_that_cannot_be_read_without_code_is_refused(tmp_path, capsys):
    for name, content in (("code.ckpt", {"state_dict": Payload()}), ("other.ckpt", {"weights": 1})):
        torch.save(content, tmp_path / name, pickle_module=pickle)
        with pytest.raises(ValueError, match="ckpt_path: expected a file of Lightning's, of weights"):
            trained(ckpt_path=tmp_path / name)
    (tmp_path / "text.ckpt").write_text("weights")
    with pytest.raises(ValueError, match="cannot be read as one"):
        trained(ckpt_path=tmp_path / "text.ckpt")
    assert "attacked" not in capsys.readouterr().out


def test_a_folder_without_such_a_training_and_another_model_are_refused(tmp_path):
    how = Descent(**SHORT, folder=tmp_path / "run/training")
    how.train(part(), rows(), name="other")
    with pytest.raises(ValueError, match=r"with training/part/last.ckpt, .* holds trainings of other"):
        trained(ckpt_path=tmp_path / "run")
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved/weights.safetensors").touch()
    with pytest.raises(ValueError, match=r"holds no training: rt.load loads fitted models"):
        trained(ckpt_path=tmp_path / "saved")
    with pytest.raises(ValueError, match=r"holds the weights of another model .* there, .* here"):
        Descent(**SHORT, ckpt_path=tmp_path / "run/training/other/last.ckpt").train(part(hidden=4), rows())
