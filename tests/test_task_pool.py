"""Tasks that processes share have the results of one process, in order, and nothing is shared twice."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from joblib.externals.loky import process_executor

from rehearsal_torch import task_pool
from rehearsal_torch.dask_cluster import connected
from rehearsal_torch.seeding import paired_generator
from rehearsal_torch.task_pool import on_cpu, results
from rehearsal_torch.user_error import UserError
from rehearsal_torch.worker_processes import begin, end_with, threads


class Received:
    """Leaves a mark each time that it reaches a process."""

    def __init__(self, folder):
        self.folder = folder

    def __setstate__(self, state):
        self.__dict__.update(state)
        (self.folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()


def drawn(seed, task):
    time.sleep(0.05 * (task % 2))
    return torch.rand(3, generator=paired_generator(seed, task)), os.getpid(), torch.get_num_threads()


def marked(common, task):
    time.sleep(0.3)
    return task, os.getpid()


def broken(common, task):
    if task == 1:
        time.sleep(0.5)
        raise UserError("the second is broken", "task", "Leave it out")
    if task == 2:
        raise ValueError("the third is broken")
    return task


def nested(common, task):
    inner = list(results(drawn, 0, range(3), 2))
    return os.getpid(), {process for _, process, _ in inner}


def killed(common, task):
    if os.getpid() != common:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def test_one_worker_or_one_task_stays_here():
    assert list(results(divmod, 7, [2, 3], 1)) == [(3, 1), (2, 1)]
    assert {process for _, process, _ in results(drawn, 0, range(1), 4)} == {os.getpid()}
    assert list(results(divmod, 7, [], 4)) == []
    with pytest.raises(ValueError, match="at least 1 worker; got 0"):
        results(divmod, 7, [2], 0)


def test_what_is_sent_is_a_copy_that_shares_what_was_shared():
    layer = torch.nn.Linear(2, 1)
    copied = on_cpu({"one": layer, "other": layer, "work": drawn})
    assert copied["one"] is copied["other"] is not layer
    assert torch.equal(copied["one"].weight, layer.weight)
    assert copied["work"] is drawn


@pytest.mark.slow
def test_processes_give_the_results_of_one_in_order_with_one_thread_each():
    here, there = list(results(drawn, 3, range(7), 1)), list(results(drawn, 3, range(7), 2))
    assert all(torch.equal(one[0], other[0]) for one, other in zip(here, there, strict=True))
    processes = {process for _, process, _ in there}
    assert len(processes) == 2
    assert os.getpid() not in processes
    assert {threads for _, _, threads in there} == {1}


@pytest.mark.slow
def test_what_is_common_reaches_each_process_once_and_the_processes_stay(tmp_path):
    first = {process for _, process in results(marked, Received(tmp_path), range(6), 2)}
    assert sorted(int(path.name.split("-")[0]) for path in tmp_path.iterdir()) == sorted(first)
    again = {process for _, process in results(marked, Received(tmp_path), range(6), 2)}
    assert first == again
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.slow
def test_the_first_error_in_order_is_raised_as_itself_with_the_trace_of_the_worker():
    made = results(broken, None, range(4), 2)
    assert next(made) == 0
    with pytest.raises(UserError) as caught:
        list(made)
    assert str(caught.value) == "task: the second is broken. Leave it out."
    assert "in broken" in caught.value.__notes__[0]


@pytest.mark.slow
def test_a_task_shares_nothing_again():
    for process, inner in results(nested, None, range(2), 2):
        assert process != os.getpid()
        assert inner == {process}


@pytest.mark.slow
def test_a_worker_that_is_killed_is_an_error():
    with pytest.raises(Exception, match="terminated") as caught:
        list(results(killed, os.getpid(), range(2), 2))
    assert type(caught.value).__name__ == "TerminatedWorkerError", "the commands say what that is"


@pytest.mark.parametrize(("seconds", "shared"), [(1e6, 0), (0.0, 3)])
def test_long_tasks_are_shared_after_the_first(seconds, shared, monkeypatch):
    asked = []

    def noted(work, common, tasks, workers, ahead):
        asked.append((len(tasks), workers))
        return (work(common, task) for task in tasks)

    monkeypatch.setattr(task_pool, "_in_processes", noted)
    monkeypatch.setattr(task_pool, "PAYS", seconds)
    assert list(results(divmod, 9, range(2, 6), 8, timed=True)) == [divmod(9, by) for by in range(2, 6)]
    assert asked == [(3, 3)] * (shared > 0)
    assert list(results(divmod, 9, [2], 8, timed=True)) == [(4, 1)]


@pytest.mark.bench
def test_a_cluster_in_the_context_computes_all_of_them_and_they_share_nothing_again():
    here = list(results(drawn, 3, range(5), 1))
    with connected(None, 2):
        there = list(results(drawn, 3, range(5), 2, timed=True))
        inner = list(results(nested, None, range(2), 2))
        with pytest.raises(UserError, match="the second is broken"):
            list(results(broken, None, range(4), 2))
    assert all(torch.equal(one[0], other[0]) for one, other in zip(here, there, strict=True))
    assert os.getpid() not in {process for _, process, _ in there}
    assert all(found == {process} for process, found in inner)


def handled(common, task):
    return signal.getsignal(signal.SIGINT), os.getpid()


@pytest.mark.slow
def test_ctrl_c_reaches_the_process_that_shares_alone():
    """A terminal sends it to all processes, and each worker wrote a traceback."""
    answers = list(results(handled, None, range(4), workers=2))
    assert {handler for handler, _ in answers} == {signal.SIG_IGN}
    assert os.getpid() not in {process for _, process in answers}


CHILD = (
    "import os, time; from rehearsal_torch.worker_processes import end_with; end_with(os.getppid()); "
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
