"""The watch over peers on GPUs: no kernel is waited for in vain, and nothing of an aborted one is kept.

Peers, kernels and the abort are stand-ins: nothing here has NCCL. Those of `test_peers.py` are processes.
"""

import os
import threading
from multiprocessing import Pipe
from multiprocessing.connection import wait

import pytest
from torch import distributed
from torch.distributed import distributed_c10d

from rehearsal_torch.training import watch
from rehearsal_torch.training.watch import HANDLING, MET, EndedError, unhandled, watched

SAID = r"one of the 3 processes of this training has ended \({}\): choose trainer\.devices=1, or start again"


class Peer:
    """A process, as the watch sees one."""

    def __init__(self, log):
        self.log, self.exitcode = log, None
        self.sentinel, self._alive = os.pipe()
        self.here, self.there = Pipe()

    def end(self, code, said=None):
        if said is not None:
            self.there.send(said)
        self.exitcode = code
        os.close(self._alive)

    def is_alive(self):
        return self.exitcode is None

    def join(self, timeout=None):
        wait([self.sentinel], timeout)

    def kill(self):
        if self.is_alive():
            self.log.append("kill")
            self.end(-9)


class World:
    """Two peers that have met, a process group, and a kernel that waits until it is aborted."""

    def __init__(self):
        self.log, self.kernel, self.group = [], threading.Event(), True
        self.peers = [Peer(self.log), Peer(self.log)]
        for peer in self.peers:
            peer.there.send(MET)

    def abort(self):
        self.log.append("abort")
        self.group = False
        self.kernel.set()

    def destroy(self):
        self.log.append("destroy")
        self.group = False

    def watched(self):
        return watched([(peer, peer.here) for peer in self.peers], 0)

    def synchronised(self):
        """A wait for the kernel, which ends without an error, as NCCL's do."""
        assert self.kernel.wait(60)


@pytest.fixture
def world(monkeypatch):
    made = World()
    monkeypatch.setattr(watch, "first_sum", lambda device: lambda: made.log.append(f"sum on {device}"))
    monkeypatch.setattr(watch, "NOTICE", 0.5)
    monkeypatch.setattr(watch, "POLL", 0.02)
    monkeypatch.setattr(distributed, "is_initialized", lambda: made.group)
    monkeypatch.setattr(distributed, "destroy_process_group", made.destroy)
    monkeypatch.setattr(distributed_c10d, "_abort_process_group", made.abort)
    before = threading.active_count()
    yield made
    assert threading.active_count() == before, "no watch is left"
    for peer in made.peers:
        peer.kill()
        os.close(peer.sentinel)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "message", "said"),
    [(1, "ValueError: something else", "ValueError: something else"), (-9, None, "it was killed")],
)
def test_the_end_of_a_peer_ends_the_kernel_that_waits_for_it(world, code, message, said):
    def training():
        with world.watched():
            world.peers[1].end(code, message)
            world.synchronised()
            raise ValueError("no process group: what a sum after the abort raises")

    with pytest.raises(EndedError, match=SAID.format(said)) as found:
        training()
    assert isinstance(found.value.__cause__, ValueError)
    assert world.log == ["sum on 0", "abort", "kill"]


@pytest.mark.slow
def test_a_training_that_ends_with_sums_that_mean_nothing_is_none(world):
    def training():
        with world.watched() as whole:
            whole()
            world.peers[0].end(1)
            world.synchronised()
            with pytest.raises(EndedError):
                whole()

    with pytest.raises(EndedError, match=SAID.format("it was killed")):
        training()
    assert "destroy" not in world.log


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_after_an_error_of_its_own_peers_are_killed_before_the_abort(world, kind):
    with pytest.raises(kind, match="of my own"), world.watched():
        raise kind("of my own")
    assert world.log == ["sum on 0", "kill", "kill", "abort"]


@pytest.mark.slow
def test_an_interruption_stays_one(world):
    def training():
        with world.watched():
            world.peers[0].end(1)
            world.synchronised()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training()


@pytest.mark.slow
def test_an_error_of_the_connection_waits_for_the_end_that_has_caused_it(world):
    def training():
        with world.watched():
            threading.Timer(0.1, world.peers[0].end, (-11,)).start()
            raise distributed.DistBackendError("remote process exited")

    with pytest.raises(EndedError, match=SAID.format("it was killed")):
        training()


def test_without_an_error_the_process_group_is_taken_apart(world):
    with world.watched() as whole:
        world.peers[0].end(0)
        whole()
    assert world.log == ["sum on 0", "destroy"]


@pytest.mark.parametrize(("code", "message"), [(1, "OutOfMemoryError: GPU 1"), (-9, None)])
def test_a_peer_that_does_not_meet_is_told(world, code, message):
    world.peers[1].here.recv()
    world.peers[1].end(code, message)
    with pytest.raises(EndedError, match=SAID.format(message or "it was killed")), world.watched():
        raise AssertionError("they have met")
    assert world.log == ["kill", "destroy"], "no kernel waits yet"


def test_a_full_gpu_of_this_process_ends_its_peers(world, monkeypatch):
    def full(device):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(watch, "first_sum", full)
    with pytest.raises(RuntimeError, match="out of memory"), world.watched():
        raise AssertionError("they have met")
    assert world.log == ["kill", "kill", "destroy"]


def test_an_abort_that_fails_is_noted(world, monkeypatch):
    def failing():
        raise RuntimeError("no such\ncommunicator")

    monkeypatch.setattr(distributed_c10d, "_abort_process_group", failing)
    with pytest.raises(ValueError, match="of my own") as found, world.watched():
        raise ValueError("of my own")
    assert found.value.__notes__ == ["The processes' connection could not be ended: no such communicator"]


def test_a_process_that_does_not_come_back_ends_with_the_sentence(world, monkeypatch, capfd):
    ended = threading.Event()
    monkeypatch.setattr(watch, "LIMIT", 0.05)
    monkeypatch.setattr(os, "_exit", lambda code: ended.set())

    def training():
        with world.watched():
            world.peers[0].end(1, "ValueError: far away")
            assert ended.wait(30)

    with pytest.raises(EndedError):
        training()
    assert (
        "one of the 3 processes of this training has ended (ValueError: far away)" in capfd.readouterr().err
    )


@pytest.mark.parametrize("before", [None, "1"])
def test_errors_are_left_to_the_watch_and_only_meanwhile(monkeypatch, before):
    monkeypatch.delenv(HANDLING, raising=False)
    if before is not None:
        monkeypatch.setenv(HANDLING, before)
    with unhandled():
        assert os.environ[HANDLING] == "0"
    assert os.environ.get(HANDLING) == before


def test_what_the_watch_calls_is_there():
    assert "TORCH_NCCL_ASYNC_ERROR_HANDLING" in distributed_c10d._abort_process_group.__doc__
    assert callable(distributed_c10d._abort_process_group)
