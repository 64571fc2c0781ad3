"""One training under Lightning: what it leaves as it was, and whose folder it goes on in."""

import warnings
from contextlib import contextmanager, nullcontext

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from torch import distributed, nn

from rehearsal_torch.data.part import Trained
from rehearsal_torch.training import harness
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.harness import _digest, _quiet, run
from rehearsal_torch.training.peers import _meet


class Line(Trained):
    """A line through zero, in a precision of its own; remembers the precisions that it is trained in."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, dtype=dtype))
        self.register_buffer("factor", torch.ones(1, dtype=torch.float64))
        self.seen, self.finished = set(), 0

    def loss(self, *examples):
        inputs, outputs = examples
        self.seen.add((self.weight.dtype, inputs.dtype))
        return (inputs * self.weight * self.factor.to(inputs) - outputs).square().mean()

    def finish(self):
        assert not self.training
        self.finished += 1


class Interrupt(Callback):
    """Somebody presses control and C."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        raise KeyboardInterrupt


def rows(count=40, seed=0, dtype=torch.float32):
    inputs = torch.randn(count, generator=torch.Generator().manual_seed(seed)).to(dtype)
    return inputs, 3 * inputs


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("precision", ["32-true", "64-true"])
def test_a_part_comes_back_in_the_precision_that_it_had(dtype, precision):
    part, examples = Line(dtype), rows(dtype=dtype)
    readings = run(
        Descent(max_epochs=3, batch_size=20, learning_rate=0.1, precision=precision, progress=False),
        part,
        examples,
        None,
        "line",
    )
    assert (part.weight.dtype, part.factor.dtype) == (dtype, torch.float64)
    if precision == "64-true":
        assert part.seen == {(torch.float64, torch.float64)}
    assert part.finished == 1
    assert part.weight.grad is None
    assert [name for _, name, _ in readings] == ["train_loss"] * 3
    assert readings[2][2] < readings[0][2]


def test_examples_with_gradients_are_taken_without_them():
    inputs, outputs = rows()
    inputs.requires_grad_(True)
    run(Descent(max_epochs=1, progress=False), Line(), (inputs, outputs), None, "line")
    assert inputs.grad is None


def test_an_interruption_is_told_as_one(tmp_path):
    descent = Descent(max_epochs=2, progress=False, folder=tmp_path, callbacks={"stop": Interrupt})
    with pytest.raises(KeyboardInterrupt):
        run(descent, Line(), rows(), None, "line")


def test_each_part_has_a_folder_of_its_own(tmp_path):
    descent = Descent(max_epochs=1, progress=False, folder=tmp_path)
    for name in ("one", "other"):
        run(descent, Line(), rows(seed=len(name)), None, name)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.ckpt")) == [
        "one/last.ckpt",
        "other/last.ckpt",
    ]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"batch_size": 8}, "batch_size: 16 there, 8 here"),
        ({"patience": None}, "patience: 10 there, None here"),
        ({"precision": "64-true"}, "precision: '32-true' there, '64-true' here"),
        ({"seed": 1}, "seed: 0 there, 1 here"),
        ({"clip": 1.0}, "clip: None there, 1.0 here"),
    ],
)
def test_a_folder_of_other_settings_is_refused_and_left_as_it_was(tmp_path, settings, said):
    before = {"max_epochs": 1, "batch_size": 16, "patience": 10, "progress": False, "folder": tmp_path}
    run(Descent(**before), Line(), rows(), None, "line")
    content = (tmp_path / "line/last.ckpt").read_bytes()
    with pytest.raises(ValueError, match=f"belongs to another training .{said}.: choose another folder, or"):
        run(Descent(**{**before, **settings}), Line(), rows(), None, "line")
    assert (tmp_path / "line/last.ckpt").read_bytes() == content


def test_other_held_out_rows_are_another_training(tmp_path):
    descent = Descent(max_epochs=1, progress=False, folder=tmp_path)
    run(descent, Line(), rows(), rows(10, 1), "line")
    with pytest.raises(ValueError, match="held_out: "):
        run(descent, Line(), rows(), rows(10, 2), "line")
    with pytest.raises(ValueError, match="held_out: "):
        run(descent, Line(), rows(), None, "line")


def test_a_training_of_the_cpu_does_not_go_on_on_a_gpu_unasked(tmp_path, monkeypatch):
    settings = {"max_epochs": 1, "progress": False, "folder": tmp_path}
    run(Descent(**settings), Line(), rows(), None, "line")
    monkeypatch.setattr(harness, "gpus", lambda devices, accelerator: [1] if accelerator == "auto" else [])
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    with pytest.raises(
        ValueError, match=r"another training .accelerator: the CPU there, a GPU here.: choose"
    ):
        run(Descent(**settings, accelerator="auto"), Line(), rows(), None, "line")
    run(Descent(**settings), Line(), rows(), None, "line")
    kept = torch.load(tmp_path / "line/last.ckpt", weights_only=True)["hyper_parameters"]["settings"]
    assert "accelerator" not in kept, "as in folders that were written before GPUs were told apart"


@pytest.mark.parametrize(("count", "refused"), [("1", False), ("2", True)])
def test_several_processes_of_torchrun_are_refused(monkeypatch, count, refused):
    for name, value in (("TORCHELASTIC_RUN_ID", "none"), ("WORLD_SIZE", count), ("RANK", "0")):
        monkeypatch.setenv(name, value)
    said = r"torchrun has started 2, each of which .* without torchrun, and choose trainer\.devices"
    with pytest.raises(RuntimeError, match=said) if refused else nullcontext():
        run(Descent(max_epochs=1, progress=False), Line(), rows(), None, "line")


def test_nothing_is_kept_of_processes_of_which_one_has_ended(tmp_path, monkeypatch):
    """What the sums of an aborted group mean is known after the state has been written aside."""
    whole = []

    @contextmanager
    def met(work, arguments, used):
        yield lambda: whole.pop()

    settings = {"max_epochs": 3, "progress": False, "folder": tmp_path}
    monkeypatch.setattr(harness, "peers", met)
    monkeypatch.setattr(harness, "strategy", lambda rank, used: "auto")
    monkeypatch.setattr(harness, "_processes", lambda *_: 2)
    trainer = harness.Trainer
    monkeypatch.setattr(harness, "Trainer", lambda **rest: trainer(**rest | {"devices": 1}))
    whole += [None, None]
    with pytest.raises(IndexError):
        run(Descent(**settings), Line(), rows(), None, "line")
    assert torch.load(tmp_path / "line/last.ckpt", weights_only=True)["epoch"] == 1


def test_data_are_the_same_by_value_shape_and_kind():
    values = torch.arange(6.0)
    same = _digest((values,))
    assert _digest((torch.arange(12.0)[::2] / 2,)) == same, "wherever they lie in memory"
    others = [
        (values.double(),),
        (values.reshape(2, 3),),
        (values.flip(0),),
        (values, values),
        (values[:5],),
        (),
    ]
    assert len({same, *(_digest(each) for each in others)}) == 7


def test_only_the_advice_of_lightning_is_kept_from_the_screen():
    # Elsewhere in the tests every warning is an error.
    with _quiet():
        warnings.warn("GPU available but not used", UserWarning, stacklevel=1)
        warnings.warn("The `srun` command is available on your system", UserWarning, stacklevel=1)
        with pytest.raises(UserWarning, match="something else"):
            warnings.warn("something else", UserWarning, stacklevel=1)


class StoppedError(Exception):
    """Instead of a training."""


def test_every_gpu_has_a_process_that_talks_over_nccl(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda number: asked.update(left=number))
    asked = {}

    @contextmanager
    def met(work, arguments, used):
        asked.update(peers=[each[-1] for each in arguments], used=used)
        yield lambda: None

    def trainer(**settings):
        asked.update(settings)
        raise StoppedError

    def forked(devices):
        asked.update(forked=devices)
        return nullcontext()

    monkeypatch.setattr(torch.random, "fork_rng", forked)
    monkeypatch.setattr(harness, "peers", met)
    monkeypatch.setattr(harness, "Trainer", trainer)
    for devices, used in ((2, [0, 1]), ([3, 1, 2], [3, 1, 2])):
        with pytest.raises(StoppedError):
            run(Descent(accelerator="gpu", devices=devices, progress=False), Line(), rows(), None, "line")
        assert (asked["used"], asked["peers"]) == (used, [used] * (len(used) - 1))
        assert (asked["accelerator"], asked["devices"], asked["forked"]) == ("cuda", used, used[:1])
        assert asked["strategy"].process_group_backend == "nccl"
        assert asked["strategy"].cluster_environment.local_rank() == 0
        assert asked.pop("left") == 2, "the current GPU is that of before"
    with pytest.raises(StoppedError):
        run(Descent(accelerator="gpu", devices=[3], progress=False), Line(), rows(), None, "line")
    assert (asked["devices"], asked["strategy"]) == ([3], "auto")


@pytest.mark.parametrize(("used", "over", "device"), [((2, 3), "nccl", 3), ((), "gloo", None)])
def test_processes_meet_on_their_own_gpus(monkeypatch, used, over, device):
    made = {}
    monkeypatch.setattr(torch.cuda, "set_device", lambda number: made.update(device=number))
    monkeypatch.setattr(
        distributed, "init_process_group", lambda name, **rest: made.update(rest, backend=name)
    )
    _meet("file:///meeting", 1, 2, used)
    assert (made["backend"], made.get("device"), made["rank"], made["world_size"]) == (over, device, 1, 2)
