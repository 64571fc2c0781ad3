"""Processes that share a training: the losses and weights of one, and one clear error if one fails."""

import math
import os
import time
from functools import partial
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from torch import Tensor, distributed, nn
from torch.distributed import distributed_c10d

from rehearsal_torch.data.part import Trained
from rehearsal_torch.data.tables.blocks import Blocks
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.training import peers as peers_module
from rehearsal_torch.training import watch
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.peers import _peer as peer_of_a_gpu
from rehearsal_torch.training.peers import backend, peers

pytestmark = pytest.mark.bench


def rows(count: int, seed: int) -> tuple[Tensor, Tensor]:
    stream = torch.Generator().manual_seed(seed)
    parents = torch.rand(count, 5, generator=stream, dtype=torch.float64) - 0.5
    noise = torch.randn(count, 2, generator=stream, dtype=torch.float64)
    return parents, 0.7 * parents[:, :2] + 0.1 * noise


def trained(devices: int, **settings: object) -> tuple[LocationScale, Descent]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        part = LocationScale(3, 2, 2, hidden=8).double()
    how = Descent(
        **{"batch_size": 63, "learning_rate": 0.05, "progress": False, "devices": devices} | settings
    )
    # The last batch of an epoch has one row: fewer than processes.
    how.train(part, rows(190, 1), rows(51, 2))
    return part, how


def same(one: nn.Module, other: nn.Module, tolerance: float) -> bool:
    return all(
        torch.allclose(value, other.state_dict()[name], atol=tolerance, rtol=0)
        for name, value in one.state_dict().items()
    )


def test_two_processes_train_the_weights_of_one(tmp_path):
    settings = {"max_epochs": 40, "learning_rate": 0.2, "patience": 1, "clip": 1.0}
    one, alone = trained(1, **settings)
    other, shared = trained(2, **settings, folder=tmp_path)
    assert [each[:2] for each in shared.history] == [each[:2] for each in alone.history]
    assert len(alone.history) < 80, "stopped early, in the same epoch"
    for (*_, value), (*_, expected) in zip(shared.history, alone.history, strict=True):
        assert value == pytest.approx(expected, abs=1e-9)
    assert same(one, other, 1e-9)
    assert not distributed.is_initialized()
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == ["last.ckpt"]


class KilledError(Exception):
    """Stands for a killed process."""


class Killer(Callback):
    """Ends the first process in an epoch."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if (trainer.current_epoch, batch_idx) == (2, 1):
            raise KilledError


def test_a_killed_training_of_two_goes_on_and_only_with_two(tmp_path):
    settings = {"max_epochs": 4, "patience": None}
    whole, how = trained(2, **settings)
    with pytest.raises(KilledError):
        trained(2, **settings, folder=tmp_path, callbacks={"kill": Killer})
    resumed, again = trained(2, **settings, folder=tmp_path)
    assert again.history == how.history
    assert same(whole, resumed, 0.0)
    with pytest.raises(ValueError, match="devices: 2 there, None here"):
        trained(1, **settings, folder=tmp_path)


class Evidence(Trained):
    """A loss of all rows together, which remembers how many it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.seen = nn.Parameter(torch.zeros(1)), set()

    @property
    def uses_held_out(self) -> bool:
        return False

    def loss(self, *examples: Tensor) -> Tensor:
        self.seen.add(len(examples[0]))
        return (examples[0] - self.weight).square().sum()

    def finish(self) -> None:
        pass


def test_a_loss_that_is_no_mean_over_rows_is_trained_in_one_process():
    part = Evidence()
    Descent(max_epochs=1, batch_size=40, progress=False, devices=2).train(part, (torch.ones(40),))
    assert part.seen == {40}


def test_blocks_are_not_shared():
    blocks = Blocks([10], lambda _: rows(10, 1))
    with pytest.raises(ValueError, match="expected devices=1 for rows that are read in blocks; got 2"):
        Descent(max_epochs=1, devices=2).train(LocationScale(3, 2, 2, hidden=4), blocks)


def summed(rank: int, world: int, share: Tensor) -> None:
    total = share.sum().reshape(1)
    distributed.all_reduce(total)
    share += total


def test_peers_meet_and_share_memory():
    first, second = torch.ones(3), 10 * torch.ones(2)
    with peers(summed, [(first,), (second,)]):
        total = torch.ones(1)
        distributed.all_reduce(total)
        assert total.item() == 3 + 20 + 1
    assert first.tolist() == [25.0] * 3
    assert second.tolist() == [34.0] * 2


def failing(rank: int, world: int) -> None:
    if rank == 1:
        raise ValueError("expected something else")
    distributed.all_reduce(torch.ones(1))


def ending(rank: int, world: int) -> None:
    os._exit(3)


def waiting(rank: int, world: int) -> None:
    time.sleep(600)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (failing, r"one of the 2 processes .* has ended \(ValueError: expected something else\): choose"),
        (ending, r"one of the 2 processes .* has ended \(it was killed\): choose trainer.devices=1"),
    ],
)
def test_the_end_of_a_process_is_told_at_once(work, said):
    began = time.monotonic()
    with pytest.raises(RuntimeError, match=said), peers(work, [()]):
        distributed.all_reduce(torch.ones(1))
    assert time.monotonic() - began < 60
    assert not distributed.is_initialized()


def moved_to_the_cpu():
    """GPUs and NCCL are stood in for by the CPU and gloo, in this process."""
    watch.first_sum = lambda device: partial(distributed.all_reduce, torch.ones(1))
    peers_module.first_sum = watch.first_sum
    peers_module.backend = lambda used: "gloo"
    torch.cuda.set_device = lambda device: None


def peer_on_the_cpu(*given):
    moved_to_the_cpu()
    peer_of_a_gpu(*given)


@pytest.fixture
def gpus_on_the_cpu(monkeypatch):
    """What is called while the peers of GPUs are watched."""
    called = []
    monkeypatch.setattr(watch, "first_sum", watch.first_sum)
    monkeypatch.setattr(peers_module, "first_sum", peers_module.first_sum)
    monkeypatch.setattr(peers_module, "backend", backend)
    monkeypatch.setattr(torch.cuda, "set_device", torch.cuda.set_device)
    moved_to_the_cpu()
    monkeypatch.setattr(peers_module, "_peer", peer_on_the_cpu)
    whole = distributed.destroy_process_group

    def ended(name):
        called.append(name)
        whole()

    # gloo knows no abort.
    monkeypatch.setattr(distributed_c10d, "_abort_process_group", partial(ended, "abort"))
    monkeypatch.setattr(distributed, "destroy_process_group", partial(ended, "destroy"))
    return called


@pytest.mark.parametrize(
    ("work", "said"), [(failing, "ValueError: expected something else"), (ending, "killed")]
)
def test_the_end_of_a_process_with_a_gpu_aborts_what_waits_for_it(gpus_on_the_cpu, work, said):
    def training():
        with peers(work, [()], [0, 1]) as whole:
            # Nothing of gloo that would notice it.
            ends = time.monotonic() + 60
            while time.monotonic() < ends:
                whole()
                time.sleep(0.05)

    with pytest.raises(RuntimeError, match=f"one of the 2 processes .* has ended .*{said}"):
        training()
    assert gpus_on_the_cpu == ["abort"]
    assert not distributed.is_initialized()


def test_processes_with_gpus_share_and_part(gpus_on_the_cpu):
    first = torch.ones(3)
    with peers(summed, [(first,)], [0, 1]) as whole:
        distributed.all_reduce(torch.ones(1))
        whole()
    assert first.tolist() == [5.0] * 3
    assert gpus_on_the_cpu == ["destroy"]


def test_an_error_beside_a_process_with_a_gpu_kills_it_at_once(gpus_on_the_cpu):
    began = []

    def training():
        with peers(waiting, [()], [0, 1]):
            began.append(time.monotonic())
            raise ValueError("of my own")

    with pytest.raises(ValueError, match="of my own"):
        training()
    assert gpus_on_the_cpu == ["abort"]
    assert time.monotonic() - began[0] < 5, "its end is not waited for"


def test_a_process_that_is_ending_has_ended(monkeypatch):
    """On a busy machine its connection is lost before the system has taken it down."""
    here, there = Pipe()
    ending_one = SimpleNamespace(sentinel=here, is_alive=lambda: True)
    monkeypatch.setattr(distributed, "destroy_process_group", lambda: None)
    open_end, kept = Pipe()
    with open_end, kept:
        lively = SimpleNamespace(sentinel=open_end, is_alive=lambda: True)
        monkeypatch.setattr(peers_module, "NOTICE", 0.01)
        monkeypatch.setattr(peers_module, "messages", lambda pipe: iter(()))
        with pytest.raises(RuntimeError, match="lost"), peers_module._connected([(ending_one, here)]):
            raise RuntimeError("lost")
        there.close()
        with (
            pytest.raises(RuntimeError, match=r"one of the 3 processes .* \(it was killed\)"),
            peers_module._connected([(ending_one, here), (lively, open_end)]),
        ):
            raise RuntimeError("lost")


def test_an_error_of_the_first_process_ends_the_others():
    began = time.monotonic()
    with pytest.raises(ValueError, match="of my own"), peers(waiting, [()]):
        raise ValueError("of my own")
    assert time.monotonic() - began < 60


def test_what_cannot_be_sent_is_refused():
    said = r"process 2 of 2 cannot be started .*: choose trainer\.devices=1"
    with pytest.raises(RuntimeError, match=said), peers(summed, [(lambda: math.pi,)]):
        pass
