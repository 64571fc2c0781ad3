"""Losses for Weights & Biases: what the library is asked for, and what an offline run of it holds."""

import json
import os
import struct
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from rehearsal_torch.data.part import Trained
from rehearsal_torch.training import callbacks, wandb_logger
from rehearsal_torch.training.descent import Descent


class Line(Trained):
    """A line through zero."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def loss(self, *examples):
        return (examples[0] * self.weight - examples[1]).square().mean()

    def finish(self):
        pass


class RefusedError(Exception):
    """Stands in for the library's error."""


class Run:
    """Stands in for a run of the library."""

    id, name = "abc", "part"

    def __init__(self, given):
        self.given, self.logged, self.ended, self.config = given, [], [], {}
        self.settings = SimpleNamespace(log_dir=str(given["dir"] / "wandb/offline-run-abc/logs"))
        Path(self.settings.log_dir).mkdir(parents=True)

    def define_metric(self, *names, **given):
        pass

    def log(self, metrics):
        self.logged.append(metrics)

    def finish(self, exit_code):
        self.ended.append(exit_code)


def rows(seed=0):
    inputs = torch.randn(40, generator=torch.Generator().manual_seed(seed))
    return inputs, 3 * inputs


def train(folder, names, **more):
    """The readings of trainings that are logged below a folder."""
    how = Descent(
        max_epochs=3,
        batch_size=40,
        progress=False,
        folder=folder,
        loggers={"wandb": wandb_logger.wandb},
        **more,
    )
    for name in names:
        how.train(Line(), rows(), rows(1), name)
    return how.history


@pytest.fixture
def runs(monkeypatch):
    """The runs that a stand-in for the library starts."""
    started = []

    def init(**given):
        started.append(Run(given))
        return started[-1]

    monkeypatch.setattr(callbacks, "require", lambda *names: None)
    monkeypatch.setattr(wandb_logger, "require", lambda *names: None)
    monkeypatch.setattr("lightning.pytorch.loggers.wandb._WANDB_AVAILABLE", True)
    monkeypatch.setattr(wandb_logger.PartLogger, "experiment", property(lambda one: one._experiment))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(Error=RefusedError, Settings=dict, init=init))
    # Set first, so that what the logger sets is taken back.
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "")
    monkeypatch.delenv("WANDB_ERROR_REPORTING")
    return started


def test_without_the_library_it_is_said_what_to_type(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        ModuleNotFoundError,
        match=r"^expected the package wandb; it is not installed: pip install "
        r"'rehearsal-torch\[loggers\]' or choose logger=csv$",
    ):
        wandb_logger.wandb(tmp_path / "part")
    assert not (tmp_path / "part").exists()


def test_a_folder_of_the_librarys_name_is_not_the_library(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "runs_of_before").mkdir()
    with pytest.raises(ModuleNotFoundError, match="expected the package runs_of_before; it is not"):
        callbacks.require("runs_of_before", "loggers")


def test_every_part_has_a_run_of_its_own_that_ends_with_it(runs, tmp_path):
    history = train(tmp_path, ("first", "second"))
    assert [one.given["name"] for one in runs] == ["first", "second"]
    assert [one.ended for one in runs] == [[0], [0]]
    for one in runs:
        for loss in ("train_loss", "held_out_loss"):
            told = [metrics[loss] for metrics in one.logged if loss in metrics]
            known = [value for _, name, value in history if name == f"{one.given['name']}/{loss}"]
            assert told == pytest.approx(known, rel=1e-6)
            assert len(told) == 3
        assert not Path(one.settings.log_dir).exists()
        assert one.config["settings"]["learning_rate"] == 1e-3


def test_a_training_that_fails_ends_its_run_as_failed(runs, tmp_path):
    class Broken(Line):
        def loss(self, *examples):
            return super().loss(*examples) * torch.nan

    with pytest.raises(ValueError, match="expected finite losses"):
        Descent(folder=tmp_path, progress=False, loggers={"wandb": wandb_logger.wandb}).train(
            Broken(), rows(), rows(1), "part"
        )
    assert runs[0].ended == [1]


def test_nothing_is_sent_or_told_of_the_surroundings_by_default(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "online")
    wandb_logger.wandb(tmp_path / "part")
    wandb_logger.wandb(tmp_path / "sent", project="mine", offline=False)
    kept, sent = (one.given for one in runs)
    assert (kept["mode"], kept["project"], kept["dir"]) == ("offline", "rehearsal-torch", tmp_path / "part")
    assert (sent["mode"], sent["project"]) == ("online", "mine")
    for given in (kept, sent):
        settings = given["settings"]
        assert settings["x_disable_machine_info"] is settings["x_disable_meta"] is True
        assert settings["disable_code"] is settings["disable_git"] is True
        assert settings["console"] == "off"
        assert {settings[name] for name in ("host", "username", "email", "program")} == {""}
        assert "api_key" not in settings
    assert os.environ["WANDB_ERROR_REPORTING"] == "false"


def test_what_the_library_refuses_is_one_paragraph(runs, tmp_path, monkeypatch):
    def init(**given):
        raise RefusedError("No API key\nconfigured.")

    monkeypatch.setattr(sys.modules["wandb"], "init", init)
    with pytest.raises(ValueError, match=r"start a run \(No API key configured\.\): type wandb login or set"):
        wandb_logger.wandb(tmp_path, offline=False)


def payloads(path):
    """The records of a file of the library, which is a log in blocks of 32 KiB after a header of 7 bytes."""
    content, place, parts = path.read_bytes(), 7, []
    assert content[:4] == b":W&B"
    while place < len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, size, kind = struct.unpack("<IHB", content[place : place + 7])
        parts.append(content[place + 7 : place + 7 + size])
        place += 7 + size
        # Whole, or the last part.
        if kind in (1, 4):
            yield b"".join(parts)
            parts = []


def losses(path):
    """(name, value) of the losses in a file of the library, in their order."""
    from wandb.proto.wandb_internal_pb2 import Record

    for content in payloads(path):
        record = Record.FromString(content)
        for item in record.history.item:
            name = item.key or "/".join(item.nested_key)
            if name.endswith("_loss"):
                yield name, json.loads(item.value_json)


@pytest.mark.slow
def test_an_offline_run_of_the_library_holds_the_losses_and_no_surroundings(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="W&B is an option: pip install 'rehearsal-torch[loggers]'")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    monkeypatch.setenv("WANDB_HOST", "a-machine-of-mine")
    monkeypatch.setenv("WANDB_USERNAME", "somebody-i-know")
    history = train(tmp_path, ("first", "second"))
    for part in ("first", "second"):
        (path,) = (tmp_path / part).rglob("*.wandb")
        assert path.parent.name.startswith("offline-run-")
        # The library writes the file in a process of its own, which a busy machine may keep waiting.
        ends = time.monotonic() + 60
        while not losses(path) and time.monotonic() < ends:
            time.sleep(0.2)
        read = [(f"{part}/{name}", pytest.approx(value, rel=1e-6)) for name, value in losses(path)]
        assert sorted(read, key=lambda each: each[0]) == sorted(
            ((name, value) for _, name, value in history if name.startswith(f"{part}/")),
            key=lambda each: each[0],
        )
    for path in (each for each in tmp_path.rglob("*") if each.is_file() and each.suffix != ".ckpt"):
        content = path.read_bytes()
        for told in (b"k" * 40, b"a-machine-of-mine", b"somebody-i-know", b"pytest", str(tmp_path).encode()):
            assert told not in content, f"{path.name} holds {told!r}"
