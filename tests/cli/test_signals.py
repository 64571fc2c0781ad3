"""Being asked to end."""

import os
import signal
import sys
import time

import pytest

from rehearsal_torch.cli import errors as signals
from rehearsal_torch.cli.errors import Stopped, code_of, exit_code, obey_cluster, stopping, within
from rehearsal_torch.user_error import UserError


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_command_that_is_asked_to_end_says_so(capsys, name, code):
    number = getattr(signal, name)
    # Under nohup, and in the background of a shell, signals are ignored from the start.
    before = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
    at_first = signal.signal(number, before)
    try:
        _asked_to_end(capsys, name, code, before)
    finally:
        signal.signal(number, at_first)


def _asked_to_end(capsys, name, code, before):

    def run():
        os.kill(os.getpid(), getattr(signal, name))
        raise AssertionError("it went on")

    assert exit_code(run, "Interrupted; run the same command again.") == code
    as_user_error = capsys.readouterr().err
    assert as_user_error == (
        "Interrupted; run the same command again.\n"
        if name == "SIGINT"
        else f"Interrupted by {name}; run the same command again.\n"
    )
    assert signal.getsignal(getattr(signal, name)) == before


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_asked_twice_the_tidying_up_is_finished():
    tidied = []

    def work():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            tidied.append(True)

    with pytest.raises(Stopped), stopping():
        work()
    assert tidied == [True]


def test_a_command_ends_when_its_minutes_are_over(capsys):
    before, began = signal.getsignal(signal.SIGALRM), time.monotonic()

    def run():
        with within(0.002):
            time.sleep(30)
        raise AssertionError("it went on")

    assert exit_code(run, "Interrupted; run the same command again.") == 142
    assert capsys.readouterr().err == "Interrupted by minutes=0.002; run the same command again.\n"
    assert time.monotonic() - began < 10
    assert signal.getsignal(signal.SIGALRM) == before
    with within(None), within(5):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("minutes", [0, -1, "soon", True, float("nan")])
def test_minutes_are_a_number_above_0(minutes):
    with pytest.raises(UserError, match=r"minutes: expected a number above 0"), within(minutes):
        pass


@pytest.fixture
def submitted(monkeypatch):
    """What a job of submitit does with signals is noted here; its handlers are put back afterwards."""
    noted = []

    def warned(number, frame):
        noted.append("warned")
        raise noted[0] if isinstance(noted[0], BaseException) else RuntimeError("Job not requeued")

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR2)}
    signal.signal(signal.SIGTERM, lambda number, frame: noted.append("ignored"))
    signal.signal(signal.SIGUSR2, warned)
    monkeypatch.setattr(signals, "_signal_times", [])
    monkeypatch.setattr(signals, "_handlers", {})
    yield noted
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_warning_before_a_time_limit_does_not_disturb_a_job(submitted, monkeypatch):
    submitted.append("begun")
    obey_cluster()
    with pytest.raises(RuntimeError, match="not requeued"):
        os.kill(os.getpid(), signal.SIGUSR2)
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    for _ in range(2):  # once for each job of a batch
        obey_cluster()
    os.kill(os.getpid(), signal.SIGUSR2)
    assert submitted == ["begun", "warned", "warned"]


def test_a_job_that_is_queued_again_ends(submitted, monkeypatch):
    submitted.append(SystemExit(-1))
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    obey_cluster()
    with pytest.raises(SystemExit):
        os.kill(os.getpid(), signal.SIGUSR2)


def test_a_job_that_the_cluster_ends_stops(submitted, monkeypatch):
    os.kill(os.getpid(), signal.SIGTERM)
    assert submitted == ["ignored"]
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    obey_cluster()
    with pytest.raises(Stopped):
        os.kill(os.getpid(), signal.SIGTERM)
    assert submitted == ["ignored"]


def test_codes():
    assert code_of(KeyboardInterrupt()) == 130
    assert code_of(Stopped(signal.SIGTERM)) == 143
    assert isinstance(Stopped(), KeyboardInterrupt)
    assert sys.exc_info() == (None, None, None)
