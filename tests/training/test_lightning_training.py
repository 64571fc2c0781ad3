"""One training under Lightning: what it leaves as it was, and whose folder it goes on in."""

import os
import signal
import time
import warnings
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hydra.utils import instantiate
from lightning.pytorch.callbacks import Callback, EarlyStopping
from lightning.pytorch.loggers import CSVLogger
from omegaconf import OmegaConf
from torch import nn

from rehearsal_torch.data.trainable_part import Trained
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.training import lightning_training
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.lightning_module import HELD_OUT
from rehearsal_torch.training.lightning_training import (
    BestWeights,
    Ended,
    Finite,
    LastState,
    _digest,
    _quiet,
    run,
)
from tests.places import CONF


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


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"batch_size": 8}, "batch_size: 16 there, 8 here"),
        ({"patience": None}, "patience: 10 there, None here"),
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
    monkeypatch.setattr(Descent, "gpus", lambda how: [1] if how.accelerator == "auto" else [])
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    with pytest.raises(
        ValueError, match=r"another training .accelerator: the CPU there, a GPU here.: choose"
    ):
        run(Descent(**settings, accelerator="auto"), Line(), rows(), None, "line")
    run(Descent(**settings), Line(), rows(), None, "line")
    kept = torch.load(tmp_path / "line/last.ckpt", weights_only=True)["hyper_parameters"]
    assert "accelerator" not in kept, "as in folders that were written before GPUs were told apart"


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
    monkeypatch.setattr(torch.random, "fork_rng", lambda devices: nullcontext())
    asked = {}

    def trainer(**settings):
        asked.update(settings)
        raise StoppedError

    monkeypatch.setattr(lightning_training, "Trainer", trainer)
    for devices, used in ((2, [0, 1]), ([3, 1, 2], [3, 1, 2])):
        with pytest.raises(StoppedError):
            run(Descent(accelerator="gpu", devices=devices, progress=False), Line(), rows(), None, "line")
        assert (asked["accelerator"], asked["devices"]) == ("cuda", used)
        assert asked["strategy"]._process_group_backend == "nccl"
        assert asked.pop("left") == 2, "the current GPU is that of before"
    with pytest.raises(StoppedError):
        run(Descent(accelerator="gpu", devices=[3], progress=False), Line(), rows(), None, "line")
    assert (asked["devices"], asked["strategy"]) == ([3], "auto")


def trained(devices, **settings):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        part = LocationScale(3, 2, 2, hidden=8).double()
    how = Descent(
        **{"batch_size": 63, "learning_rate": 0.05, "progress": False, "devices": devices} | settings
    )

    def examples(count, seed):
        stream = torch.Generator().manual_seed(seed)
        parents = torch.rand(count, 5, generator=stream, dtype=torch.float64) - 0.5
        noise = torch.randn(count, 2, generator=stream, dtype=torch.float64)
        return parents, 0.7 * parents[:, :2] + 0.1 * noise

    # The last batch of an epoch has one row: fewer than processes.
    how.train(part, examples(190, 1), examples(51, 2))
    return part, how


def same(one, other, tolerance):
    state = other.state_dict()
    return all(
        torch.allclose(value, state[name], atol=tolerance, rtol=0) for name, value in one.state_dict().items()
    )


class Threads(Callback):
    """Notes the threads of a process."""

    def on_train_start(self, trainer, pl_module):
        Path(os.environ["NOTES"], f"{trainer.global_rank}-{torch.get_num_threads()}").touch()


@pytest.mark.bench
def test_two_processes_train_the_weights_of_one_with_one_thread_each(tmp_path, monkeypatch):
    notes = tmp_path / "notes"
    notes.mkdir()
    monkeypatch.setenv("NOTES", str(notes))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    settings = {"max_epochs": 40, "learning_rate": 0.2, "patience": 1, "clip": 1.0}
    one, alone = trained(1, **settings)
    other, shared = trained(2, **settings, callbacks={"threads": Threads})
    assert [each[:2] for each in shared.history] == [each[:2] for each in alone.history]
    assert len(alone.history) < 80, "stopped early, in the same epoch"
    for (*_, value), (*_, expected) in zip(shared.history, alone.history, strict=True):
        assert value == pytest.approx(expected, abs=1e-9)
    assert same(one, other, 1e-9)
    assert sorted(path.name for path in notes.iterdir()) == ["0-1", "1-1"]


class Killer(Callback):
    """Ends one of the processes in an epoch."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if (trainer.current_epoch, batch_idx, trainer.global_rank) == (2, 1, 1):
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.bench
def test_a_killed_training_of_two_goes_on_and_only_with_two(tmp_path):
    settings = {"max_epochs": 4, "patience": None, "folder": tmp_path}
    with pytest.raises(RuntimeError, match="one of the 2 processes of this training has ended"):
        trained(2, **settings, callbacks={"kill": Killer})
    resumed, again = trained(2, **settings)
    whole, how = trained(2, **settings | {"folder": None})
    assert again.history == how.history
    assert same(whole, resumed, 0.0)
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == ["last.ckpt"]
    with pytest.raises(ValueError, match="devices: 2 there, None here"):
        trained(1, **settings)


class Evidence(Trained):
    """A loss of all rows together, which remembers how many it saw."""

    def __init__(self):
        super().__init__()
        self.weight, self.seen = nn.Parameter(torch.zeros(1)), set()

    @property
    def uses_held_out(self):
        return False

    def loss(self, *examples):
        self.seen.add(len(examples[0]))
        return (examples[0] - self.weight).square().sum()

    def finish(self):
        pass


def test_a_loss_that_is_no_mean_over_rows_is_trained_in_one_process():
    part = Evidence()
    Descent(max_epochs=1, batch_size=40, progress=False, devices=2).train(part, (torch.ones(40),))
    assert part.seen == {40}


def shipped(name):
    """A logger as the configuration makes it, by its name."""
    return {name: instantiate(OmegaConf.load(CONF / f"logger/{name}.yaml")[name])}


def logged(folder, *names, parts=("line",)):
    loggers = {key: made for name in names for key, made in shipped(name).items()}
    how = Descent(max_epochs=3, batch_size=40, progress=False, folder=folder, loggers=loggers)
    for part in parts:
        how.train(Line(), rows(), rows(10, 1), part)
    return how.history


def test_csv_and_tensorboard_have_the_losses_of_each_epoch_below_the_folder_of_the_part(tmp_path):
    logged(tmp_path, "csv", "tensorboard")
    lines = (tmp_path / "line/csv/metrics.csv").read_text().splitlines()
    assert set(lines[0].split(",")) >= {"epoch", "train_loss", "held_out_loss"}
    assert {line.split(",")[lines[0].split(",").index("epoch")] for line in lines[1:]} == {"0", "1", "2"}
    assert len(list((tmp_path / "line/tensorboard").glob("events.out.tfevents.*"))) == 1


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("tensorboard", "lightning.fabric.loggers.tensorboard._TENSORBOARD_AVAILABLE", "tensorboard"),
        ("wandb", "lightning.pytorch.loggers.wandb._WANDB_AVAILABLE", "loggers"),
        ("mlflow", "lightning.pytorch.loggers.mlflow._MLFLOW_AVAILABLE", "loggers"),
    ],
)
def test_a_logger_that_is_not_installed_says_what_to_type(tmp_path, monkeypatch, name, module, extra):
    monkeypatch.setattr(module, False)
    monkeypatch.setattr("lightning.fabric.loggers.tensorboard._TENSORBOARDX_AVAILABLE", False)
    monkeypatch.setattr("lightning.pytorch.loggers.mlflow._MLFLOW_SKINNY_AVAILABLE", False, raising=False)
    said = (
        rf"^logger\.{name}: expected the package {name}; .* pip install 'rehearsal-torch\[{extra}\]', "
        "or choose logger=csv$"
    )
    with pytest.raises(ModuleNotFoundError, match=said):
        logged(tmp_path, name)


def test_a_logger_that_cannot_begin_is_one_paragraph(tmp_path):
    def refused(save_dir):
        raise OSError("no answer\nafter 7 tries")

    how = Descent(max_epochs=1, progress=False, folder=tmp_path, loggers={"own": refused})
    with pytest.raises(
        ValueError, match=r"^logger\.own: the library cannot begin \(no answer after 7 tries\): "
    ):
        how.train(Line(), rows())


@pytest.mark.parametrize("user", ["a:pw", "a", ":pw", "a:p/w"])
def test_an_address_with_a_password_is_refused_and_not_shown(tmp_path, user):
    make = partial(CSVLogger, tracking_uri=f"http://{user}@10.0.0.5:5000")
    with pytest.raises(
        ValueError, match=r"^logger\.mlflow\.tracking_uri: .* MLFLOW_TRACKING_PASSWORD"
    ) as told:
        Descent(max_epochs=1, folder=tmp_path, loggers={"mlflow": make})
    assert "10.0.0.5" not in str(told.value)


@pytest.mark.parametrize("mode", [None, "online"])
def test_a_run_of_wandb_ends_where_the_next_logger_cannot_begin(tmp_path, monkeypatch, mode):
    ended = []

    class Begun:
        def __init__(self, save_dir, name):
            os.environ["WANDB_MODE"] = "dryrun"
            self.experiment = SimpleNamespace(finish=lambda: ended.append(name))

    def refused(save_dir):
        raise OSError("no answer")

    monkeypatch.setattr(lightning_training, "WandbLogger", Begun)
    monkeypatch.setenv("WANDB_MODE", mode or "")
    if mode is None:
        monkeypatch.delenv("WANDB_MODE")
    loggers = {"wandb": Begun, "own": refused}
    with pytest.raises(ValueError, match=r"^logger\.own: "):
        Descent(max_epochs=1, progress=False, folder=tmp_path, loggers=loggers).train(
            Line(), rows(), name="line"
        )
    assert ended == ["line"]
    assert os.environ.get("WANDB_MODE") == mode


def test_a_logger_writes_nowhere_but_below_the_folder_of_the_part(tmp_path):
    for name in ("../elsewhere", "/elsewhere", ""):
        how = Descent(max_epochs=1, progress=False, folder=tmp_path / "run", loggers={name: CSVLogger})
        with pytest.raises(ValueError, match="expected the name of a logger"):
            how.train(Line(), rows())
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_offline_run_of_wandb_holds_the_losses_and_no_surroundings(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="W&B is an option: pip install 'rehearsal-torch[loggers]'")
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    monkeypatch.setenv("WANDB_MODE", "")
    logged(tmp_path, "wandb", parts=("first", "second"))
    for part in ("first", "second"):
        (path,) = (tmp_path / part).rglob("*.wandb")
        assert path.parent.name.startswith("offline-run-")
        # The library writes the file in a process of its own, which a busy machine may keep waiting.
        ends = time.monotonic() + 60
        while b"held_out_loss" not in path.read_bytes() and time.monotonic() < ends:
            time.sleep(0.2)
        assert path.read_bytes().count(b"held_out_loss") >= 3
        assert all(told not in path.read_bytes() for told in (b"k" * 40, b"pytest", b"requirements.txt"))


@pytest.mark.slow
def test_a_store_of_mlflow_holds_the_losses_and_no_surroundings(tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="MLflow is an option: pip install 'rehearsal-torch[loggers]'")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("USER", "somebody-i-know")
    monkeypatch.setenv("LOGNAME", "somebody-i-know")
    history = logged(tmp_path, "mlflow")
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"file:{tmp_path / 'line/mlflow'}")
    place = client.get_experiment_by_name("rehearsal-torch").experiment_id
    (found,) = client.search_runs([place])
    for loss in ("train_loss", "held_out_loss"):
        read = [each.value for each in client.get_metric_history(found.info.run_id, loss)]
        assert read == pytest.approx(
            [value for _, name, value in history if name == f"line/{loss}"], rel=1e-6
        )
    assert found.data.tags["mlflow.runName"] == "line"
    assert found.data.params["learning_rate"] == "0.001"
    for path in (each for each in (tmp_path / "line/mlflow").rglob("*") if each.is_file()):
        assert "somebody-i-know" not in path.read_text()
        assert "pytest" not in path.read_text().replace(str(tmp_path), "")


class DivergingLine(Trained):
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


def rows_callbacks(count=40, seed=0):
    inputs = torch.randn(count, generator=torch.Generator().manual_seed(seed))
    return inputs, 3 * inputs


def trainer(score):
    return SimpleNamespace(
        callback_metrics={HELD_OUT: torch.tensor(score)}, current_epoch=7, sanity_checking=False
    )


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
    assert torch.equal(again.weights["weight"], seen[1.0])
    assert again.score == 1.0


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


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_held_out_loss_that_is_no_number_ends_the_training_with_a_sentence(score):
    Finite().on_validation_end(trainer(1.0), None)
    with pytest.raises(
        ValueError,
        match=f"^expected finite losses; in epoch 7 held_out_loss is {score}: lower learning_rate, set clip",
    ):
        Finite().on_validation_end(trainer(score), None)


@pytest.mark.parametrize(
    ("part", "held_out", "said"),
    [
        (DivergingLine(breaks=3), rows_callbacks(10, 1), "in epoch 1 held_out_loss is nan"),
        (DivergingLine(breaks=3), None, "in epoch 1 the weights are not finite"),
        (DivergingLine(breaks=5, to=torch.inf), None, "in epoch 2 the weights are not finite"),
    ],
)
def test_a_training_that_leaves_the_numbers_ends_in_that_epoch(part, held_out, said):
    # Two batches an epoch.
    with pytest.raises(ValueError, match=said):
        Descent(max_epochs=20, batch_size=20, progress=False).train(part, rows_callbacks(), held_out)
