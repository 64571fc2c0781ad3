"""Every kind of trained part is trained by Lightning on another device to the losses and weights of the CPU,
goes on there after it was stopped, and comes back; and a model that was moved is saved as one of the CPU is.
"""

import importlib
from copy import deepcopy

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.accelerators import Accelerator
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.strategies import SingleDeviceStrategy

from rehearsal_torch.checkpoint import load, save
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training import lightning_training
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain
from tests.toys.rehearsal_methods import SURROGATES, built, learnt_here, plain
from tests.toys.second_device import DEVICE
from tests.toys.transitions import model, observations

pytestmark = pytest.mark.slow
WORLD = chain()
CHAIN_OF_NODES = CausalTask.of(
    {
        "graph": {"parents": {"x": ["a"], "y": ["x", "b"]}},
        "actions": {"a": [-1, 1], "b": [-1, 1]},
        "reward": "y",
    },
    "the task",
)


def experiments(count, seed):
    """y = sin(2x) + b, x = a + noise."""
    stream = torch.Generator().manual_seed(seed)
    a, b, noise = (torch.randn(count, generator=stream, dtype=torch.float64) for _ in range(3))
    x = a + 0.2 * noise
    values = torch.stack([a, b, x, torch.sin(2 * x) + b], -1)
    altered = torch.zeros_like(values, dtype=torch.bool)
    altered[:, :2] = True
    return Table(("a", "b", "x", "y"), values, altered)


TRAINED = {
    "noise encoders": (lambda: ExogenousModel(CHAIN_OF_NODES, fitting="train"), experiments),
    "transitions": (lambda: model(), lambda count, seed: observations(count, seed=seed)),
    "sparse transitions": (
        lambda: model(effects="sparse"),
        lambda count, seed: observations(count, seed=seed),
    ),
    "flows": (
        lambda: built("flow_structural", WORLD.task),
        lambda count, seed: WORLD.table(count, seed=seed),
    ),
}


class Second(Accelerator):
    """The stand-in, as Lightning sees a device."""

    def setup_device(self, device):
        assert device == DEVICE

    def teardown(self):
        pass

    @staticmethod
    def parse_devices(devices):
        return devices

    @staticmethod
    def get_parallel_devices(devices):
        return [DEVICE] * len(devices)

    @staticmethod
    def auto_device_count():
        return 1

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def name():
        return "second"


@pytest.fixture
def gpu(place, monkeypatch):
    """What ``accelerator="gpu"`` is: CUDA, or the stand-in in its place."""
    if place.kind == "cuda":
        return place

    def trainer(**settings):
        if settings["accelerator"] == "cpu":
            return Trainer(**settings)
        assert (settings["accelerator"], settings["devices"], settings["strategy"]) == ("cuda", [0], "auto")
        where = {"accelerator": Second(), "strategy": SingleDeviceStrategy(DEVICE)}
        return Trainer(**settings | where)

    monkeypatch.setattr(Descent, "gpus", lambda how: [0] if how.accelerator == "gpu" else [])
    monkeypatch.setattr(lightning_training, "Trainer", trainer)
    # The random state of a GPU that is not there, and the devices that torch knows for a fused step.
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda *_: torch.zeros(1))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_device", lambda *_: None)
    adam = importlib.import_module("torch.optim.adam")
    monkeypatch.setattr(adam, "_device_dtype_check_for_fused", lambda *_, **__: None)
    return place


class Stop(Callback):
    """Stands for a killed process."""

    def on_train_epoch_start(self, trainer, pl_module):
        if trainer.current_epoch == 2:
            raise KeyboardInterrupt


def trained(name, descent):
    make, rows = TRAINED[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = make()
    return fit(made, rows(60, 0), descent, rows(20, 1))


def alike(one, other, place):
    assert one.state_dict().keys() == other.state_dict().keys()
    for name, value in one.state_dict().items():
        moved = other.state_dict()[name]
        assert moved.device.type == "cpu", name
        assert moved.dtype == value.dtype
        close = {"rtol": 1e-12, "atol": 1e-12} if place.kind == "second" else {"rtol": 1e-3, "atol": 1e-4}
        assert torch.allclose(moved, value, equal_nan=True, **close), name


@pytest.mark.parametrize("name", TRAINED)
def test_a_training_elsewhere_is_that_on_the_cpu(name, gpu):
    here = Descent(max_epochs=4, batch_size=64, progress=False)
    one = trained(name, here)
    with gpu.entered():
        there = Descent(max_epochs=4, batch_size=64, progress=False, accelerator="gpu")
        other = trained(name, there)
    assert len(here.history) >= 4
    assert [each[:2] for each in there.history] == [each[:2] for each in here.history]
    assert [each[2] for each in there.history] == pytest.approx([each[2] for each in here.history], rel=1e-4)
    alike(one, other, gpu)


def test_a_stopped_training_goes_on_elsewhere(gpu, tmp_path):
    settings = {"max_epochs": 4, "batch_size": 64, "progress": False, "accelerator": "gpu"}
    with gpu.entered():
        whole = Descent(**settings)
        one = trained("transitions", whole)
        with pytest.raises(KeyboardInterrupt):
            trained("transitions", Descent(**settings, folder=tmp_path, callbacks={"stop": Stop}))
        rest = Descent(**settings, folder=tmp_path)
        other = trained("transitions", rest)
    assert [each[2] for each in rest.history] == pytest.approx([each[2] for each in whole.history], rel=1e-6)
    alike(one, other, gpu)
    with pytest.raises(ValueError, match="accelerator: a GPU there, the CPU here"):
        trained("transitions", Descent(**settings | {"accelerator": "cpu"}, folder=tmp_path))
    # What a GPU has written is read where there is none.
    state = torch.load(tmp_path / "mechanism" / "last.ckpt", map_location="cpu", weights_only=True)
    assert {each.device.type for each in state["state_dict"].values()} == {"cpu"}


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_moved_model_is_saved_as_one_of_the_cpu_is(surrogate, place, tmp_path):
    made = learnt_here(surrogate, WORLD.task, WORLD.table(60))
    save(made, plain(surrogate, WORLD.task), tmp_path / "here")
    with place.entered() as device:
        save(deepcopy(made).to(device), plain(surrogate, WORLD.task), tmp_path / "there")
    if place.kind == "second":
        for name in ("weights.safetensors", "config.yaml", "card.yaml"):
            assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    alike(load(tmp_path / "here"), load(tmp_path / "there"), place)
