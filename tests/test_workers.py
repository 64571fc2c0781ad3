"""Workers end with their parent, however it ends."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from joblib.externals.loky import process_executor

from rehearsal_torch.workers import begin, end_with, threads

CHILD = (
    "import os, time; from rehearsal_torch.workers import end_with; end_with(os.getppid()); "
    "print(os.getpid(), flush=True); time.sleep(60)"
)
PARENT = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {CHILD!r}]); time.sleep(60)"


def running(number):
    """Whether a process is there, and more than an entry that nobody has asked for yet."""
    answer = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(number)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return bool(answer) and not answer.startswith("Z")


def test_a_worker_ends_when_its_parent_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    with parent:
        worker = int(parent.stdout.readline())
        assert running(worker)
        parent.kill()
        ends = time.monotonic() + 20
        while running(worker):
            assert time.monotonic() < ends, "the worker outlived its parent"
            time.sleep(0.05)


def test_a_process_does_not_wait_for_itself():
    end_with(os.getpid())


def test_a_worker_has_one_thread_and_may_keep_memory(monkeypatch):
    monkeypatch.setattr(process_executor, "_MAX_MEMORY_LEAK_SIZE", 1)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    with threads(2):
        begin(os.getpid())
        assert torch.get_num_threads() == 1
    assert sys.maxsize == process_executor._MAX_MEMORY_LEAK_SIZE


def test_threads_are_given_back_whatever_happened():
    before = torch.get_num_threads()

    def failing():
        with threads(before + 1):
            assert torch.get_num_threads() == before + 1
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError, match="on the way"):
        failing()
    assert torch.get_num_threads() == before
    with threads(None):
        assert torch.get_num_threads() == before
