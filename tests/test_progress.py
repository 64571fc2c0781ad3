"""Progress: what a line says at which time, that long phases write one in time, and short ones nothing."""

import io
import re
import time

import pytest

from rehearsal_torch import progress
from rehearsal_torch.progress import Progress, duration


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (125, "2 min 5 s"), (4210, "1 h 10 min")],
)
def test_a_duration_has_two_units_at_most(seconds, words):
    assert duration(seconds) == words


def test_the_time_left_is_that_of_the_steps_so_far():
    clock = Clock()
    line = Progress("deciding", 10, clock=clock)
    clock.now += 8
    assert line.line() == "deciding: 0 of 10, 8 s so far", "nothing is known before the first step"
    line.at(2)
    assert line.line() == "deciding: 2 of 10, about 32 s left", "8 s for 2 steps, 8 steps to go"
    line.at(10, "7 successes")
    assert line.line() == "deciding: 10 of 10, about 0 s left; 7 successes"


def test_a_phase_of_phases_says_the_inner_line_with_its_own_time():
    clock = Clock()
    stream = io.StringIO()
    with Progress("fitting the model", whole=True, clock=clock, stream=stream) as outer:
        clock.now += 65
        assert outer.shown() == "fitting the model, 1 min 5 s so far"
        with Progress("fitting the model, part 3", clock=clock, stream=stream) as inner:
            clock.now += 5
            assert outer.shown() == "fitting the model, part 3, 5 s so far; 1 min 10 s in all"
            assert inner.shown() == inner.line()
        with Progress("unseen", quiet=True, clock=clock, stream=stream):
            assert outer.shown() == "fitting the model, 1 min 10 s so far"


def seconds_of(line):
    """The seconds left that a line names."""
    minutes, seconds = re.search(r"about (?:(\d+) min )?(\d+) s left", line).groups()
    return 60 * int(minutes or 0) + int(seconds)


def test_one_step_of_many_says_nothing_of_the_time_left():
    clock = Clock()
    line = Progress("deciding", 30, clock=clock)
    clock.now += 18
    line.at(1)
    assert line.line() == "deciding: 1 of 30, 18 s so far", "most of it was spent on starting"
    clock.now += 3
    line.at(3)
    assert line.line() == "deciding: 3 of 30, about 40 s left", "the later steps are faster"
    long = Progress("deciding", 1000, clock=clock)
    clock.now += 300
    long.at(5)
    assert long.line() == "deciding: 5 of 1000, about 16 h 35 min left"


@pytest.mark.parametrize(("start", "burst"), [(0, 1), (15, 1), (15, 8), (5, 10)])
def test_the_time_left_is_right_within_a_factor_of_two_at_every_tenth_of_the_way(start, burst):
    clock = Clock()
    line = Progress("deciding", 200, clock=clock)
    clock.now += start
    for done in range(1, 201):
        clock.now += burst if done % burst == 0 else 0
        line.at(done)
        if done % 20 == 0 and done < 200:
            ratio = seconds_of(line.line()) / (200 - done)
            assert 0.5 <= ratio <= 2, (done, line.line())


def test_what_was_done_before_counts_as_done_and_not_as_fast():
    clock = Clock()
    line = Progress("deciding", 10, done=8, clock=clock)
    clock.now += 5
    line.at(9)
    assert line.line() == "deciding: 9 of 10, about 5 s left"


def test_a_time_that_was_foretold_counts_until_it_is_over():
    clock = Clock()
    line = Progress("comparing", 10, clock=clock)
    line.expect(60)
    clock.now += 20
    line.at(5)
    assert line.line() == "comparing: 5 of 10, about 40 s left"
    clock.now += 45
    assert line.line() == "comparing: 5 of 10, 1 min 5 s so far"


def test_phases_of_unknown_length_say_how_long_they_last():
    clock = Clock()
    line = Progress("fitting the model", clock=clock)
    clock.now += 75
    assert line.line() == "fitting the model, 1 min 15 s so far"
    epochs = Progress("fitting", 100, steps="epoch", at_most=True, clock=clock)
    clock.now += 10
    epochs.at(20)
    assert epochs.line() == "fitting: epoch 20 of 100, at most 40 s left"


def hastened(monkeypatch, logged=0.0, first=0.0):
    monkeypatch.setattr(progress, "REDRAWN", 0.005)
    monkeypatch.setattr(progress, "LOGGED", logged)
    monkeypatch.setattr(progress, "FIRST", first)
    monkeypatch.setattr(progress, "_last_line", [])


def awaited(stream, words):
    """Waits until the thread has written something."""
    end = time.monotonic() + 20
    while words not in stream.getvalue() and time.monotonic() < end:
        time.sleep(0.005)
    return stream.getvalue()


def test_a_log_gets_plain_lines_while_one_step_is_under_way(monkeypatch):
    hastened(monkeypatch)
    stream = io.StringIO()
    with Progress("deciding", 3, stream=stream) as line:
        assert awaited(stream, "\n").startswith("deciding: 0 of 3, 0 s so far\n")
        line.at(1)
        assert "deciding: 1 of 3, about " in awaited(stream, "1 of 3")
    before = stream.getvalue()
    time.sleep(0.05)
    assert stream.getvalue() == before, "nothing is written behind the end"


def test_a_terminal_gets_one_line_that_is_cleared(monkeypatch):
    hastened(monkeypatch)
    stream = Terminal()
    with Progress("deciding", 3, stream=stream):
        awaited(stream, "deciding")
    text = stream.getvalue()
    assert "\n" not in text
    assert text.startswith("\rdeciding: 0 of 3")
    assert text.endswith("\r")
    assert text.rstrip("\r").rpartition("\r")[2].strip() == "", "the last thing written is blank"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_short_phases_and_quiet_ones_write_nothing(monkeypatch, stream):
    hastened(monkeypatch, logged=60.0, first=60.0)
    with Progress("deciding", 3, stream=stream):
        time.sleep(0.03)
    hastened(monkeypatch)
    with Progress("deciding", 3, stream=stream, quiet=True):
        time.sleep(0.03)
    assert stream.getvalue() == ""


def test_short_phases_in_a_row_share_the_interval(monkeypatch):
    hastened(monkeypatch, logged=0.1)
    stream = io.StringIO()
    end = time.monotonic() + 20
    while not stream.getvalue() and time.monotonic() < end:
        with Progress("fitting", 2, stream=stream):
            time.sleep(0.04)
    assert stream.getvalue().startswith("fitting: 0 of 2")


def test_of_phases_inside_of_each_other_the_outermost_writes(monkeypatch):
    hastened(monkeypatch)
    stream = io.StringIO()
    with Progress("deciding", 3, stream=stream):
        with Progress("fitting", 9, stream=stream):
            awaited(stream, "deciding")
        before = stream.getvalue()
    assert "fitting" not in before
    with Progress("fitting", 9, stream=stream):
        assert "fitting: 0 of 9" in awaited(stream, "fitting"), "afterwards a phase is the outermost again"


def test_a_stream_that_was_closed_ends_the_lines_and_not_the_work(monkeypatch):
    hastened(monkeypatch)
    stream = io.StringIO()
    stream.close()
    stream.isatty = lambda: False
    with Progress("deciding", 3, stream=stream) as line:
        time.sleep(0.03)
        line.at(3)
    assert line.done == 3
