"""Callbacks by themselves, and in the training that they watch."""

from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn

from rehearsal_torch.data.part import Trained
from rehearsal_torch.progress import Progress
from rehearsal_torch.training.callbacks import BestWeights, Ended, EpochCount, LastState
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.module import HELD_OUT


class Line(Trained):
    """A line through zero; its loss may leave the numbers at a step."""

    def __init__(self, breaks=None, to=torch.nan):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.breaks, self.breaks_to, self.steps = breaks, to, 0

    def loss(self, *examples):
        inputs, outputs = examples
        self.steps += torch.is_grad_enabled()
        error = (inputs * self.weight - outputs).square().mean()
        if self.breaks is not None and self.steps > self.breaks:
            return error * self.breaks_to
        return error

    def finish(self):
        pass


def rows(count=40, seed=0):
    inputs = torch.randn(count, generator=torch.Generator().manual_seed(seed))
    return inputs, 3 * inputs


def trainer(score):
    return SimpleNamespace(callback_metrics={HELD_OUT: torch.tensor(score)}, current_epoch=7)


def test_the_weights_of_the_least_loss_are_kept_the_first_of_equals():
    part, best = nn.Linear(1, 1), BestWeights()
    seen = {}
    for score in (3.0, 1.0, 2.0, 1.0):
        with torch.no_grad():
            part.weight += 1
        seen.setdefault(score, part.weight.clone())
        best.on_validation_end(trainer(score), part)
    assert best.score == 1.0
    assert torch.equal(best.weights["weight"], seen[1.0]), "a copy, which further training leaves alone"
    again = BestWeights()
    again.load_state_dict(best.state_dict())
    again.restore(part)
    assert torch.equal(part.weight, seen[1.0])
    assert again.score == 1.0


def test_without_held_out_rows_the_last_weights_stay():
    part = nn.Linear(1, 1)
    before = part.weight.clone()
    BestWeights().restore(part)
    assert torch.equal(part.weight, before)


class Saving:
    """A trainer that writes what it is told to, or dies of it."""

    def __init__(self, text, first=True):
        self.text, self.is_global_zero = text, first

    def save_checkpoint(self, path):
        path.write_text(self.text[: len(self.text) // 2])
        if "killed" in self.text:
            raise OSError("no space left")
        path.write_text(self.text)


def test_a_state_is_replaced_as_a_whole(tmp_path):
    state = LastState(tmp_path / "part" / "deep")
    state.on_train_epoch_end(Saving("epoch 1"), None)
    state.on_train_epoch_end(Saving("epoch 2"), None)
    with pytest.raises(OSError, match="no space left"):
        state.on_train_epoch_end(Saving("epoch 3, killed while it is written"), None)
    assert (tmp_path / "part/deep/last.ckpt").read_text() == "epoch 2"
    state.on_train_epoch_end(Saving("epoch 3"), None)
    assert [path.name for path in (tmp_path / "part/deep").iterdir()] == ["last.ckpt"]
    assert (tmp_path / "part/deep/last.ckpt").read_text() == "epoch 3"
    state.on_train_epoch_end(Saving("of another process", first=False), None)
    assert (tmp_path / "part/deep/last.ckpt").read_text() == "epoch 3", (
        "the first process of several replaces"
    )


@pytest.mark.parametrize(("waited", "stops"), [((), False), ((2,), False), ((3,), True), ((2, 5), True)])
def test_a_training_whose_patience_had_run_out_does_not_run_on(waited, stops):
    stopping = [EarlyStopping(HELD_OUT, patience=3) for _ in waited]
    for each, count in zip(stopping, waited, strict=True):
        each.wait_count = count
    watched = SimpleNamespace(early_stopping_callbacks=stopping, should_stop=None)
    Ended().on_train_start(watched, None)
    assert watched.should_stop is stops


@pytest.mark.parametrize(
    ("part", "held_out", "said"),
    [
        (Line(breaks=3), rows(10, 1), "in epoch 1 held_out_loss is nan"),
        (Line(breaks=3), None, "in epoch 1 the weights are not finite"),
        (Line(breaks=5, to=torch.inf), None, "in epoch 2 the weights are not finite"),
    ],
)
def test_a_training_that_leaves_the_numbers_ends_in_that_epoch(part, held_out, said):
    # Two batches an epoch.
    with pytest.raises(ValueError, match=said):
        Descent(max_epochs=20, batch_size=20, progress=False).train(part, rows(), held_out)


def test_the_line_of_progress_counts_the_epochs_and_names_the_last_loss():
    line = Progress("fitting", 4)
    counts = {"line": lambda: EpochCount(line)}
    readings = Descent(max_epochs=4, batch_size=40, progress=False, callbacks=counts).train(
        Line(), rows(), rows(10, 1), "part"
    )
    last = readings[-2:][[name for _, name, _ in readings[-2:]].index("part/held_out_loss")]
    assert line.done == 4
    assert line.note == f"held-out loss {last[2]:.4f}"


def test_the_epochs_of_before_are_counted_as_done():
    line = Progress("fitting", 9)
    EpochCount(line).on_train_start(SimpleNamespace(current_epoch=5), None)
    assert line.line() == "fitting: 5 of 9, 0 s so far"
    with pytest.raises(AssertionError):
        EpochCount(line).on_train_epoch_end(SimpleNamespace(current_epoch=5), nn.Linear(1, 1))
