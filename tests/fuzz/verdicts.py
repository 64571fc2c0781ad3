"""What becomes of a fuzzed input: accepted with finite decisions, or refused in words; everything else is a
failure.

A refusal is a `UserError`, or an error that this package itself raises as a ValueError (files that are
missing or locked included), with a sentence. A ValueError that comes out of numpy, pandas or torch is none,
even if it reads well: nobody meant it.
"""

import faulthandler
import math
import os
import re
import signal
import sys
import tempfile
import traceback
import warnings
from contextlib import chdir, contextmanager
from pathlib import Path

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from rehearsal_torch.files.lock import InUseError
from rehearsal_torch.user_error import user_error_from
from tests.places import ROOT

PACKAGE = str(ROOT / "rehearsal_torch")
# Seconds: of the processor, and by the clock, which other processes slow down.
BUSY, CLOCK = 5.0, 20.0
NO_NUMBER = re.compile(r"(?<![\w.'\"])[+-]?(nan|inf|NaN|Infinity)(?![\w'\"])")


# How Python itself puts what went wrong by accident.
RAW = re.compile(
    r"(could not convert|invalid literal|not enough values|too many values|list index|dictionary "
    r"update|cannot convert|embedded null|math domain|m(ax|in)\()"
)


# How many inputs a family has; whole commands take longer.
INPUTS = int(os.environ.get("FUZZ_INPUTS", "10"))


def fuzzed(test, inputs=INPUTS):
    """A test of one family: of many inputs, each of which it draws."""
    quiet = settings(
        max_examples=inputs, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    return quiet(given(st.data())(test))


@contextmanager
def desk():
    """An empty folder, as the current one, for one input."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        yield Path(folder)


class Hang(BaseException):
    """An input that took too long; no `except Exception` swallows it."""


class FaultError(AssertionError):
    """What is wrong with what came of an input."""


@contextmanager
def limited(busy=BUSY, clock=CLOCK):
    """Interrupts what takes longer; what cannot be interrupted ends the process with a traceback."""

    def end(number, frame):
        where = "".join(traceback.format_stack(frame)[-6:])
        raise Hang(f"still running after {busy:g} s of the processor or {clock:g} s by the clock:\n{where}")

    faulthandler.dump_traceback_later(6 * clock, exit=True, file=sys.__stderr__)
    before = {each: signal.signal(each, end) for each in (signal.SIGALRM, signal.SIGPROF)}
    begun(busy, clock)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for each, handler in before.items():
            signal.signal(each, handler)
        faulthandler.cancel_dump_traceback_later()


def begun(busy=BUSY, clock=CLOCK):
    """Sets the time anew, for the next step of an input that has several."""
    signal.setitimer(signal.ITIMER_REAL, clock, 1.0)
    signal.setitimer(signal.ITIMER_PROF, busy, 1.0)


def sentence(error):
    """What an error says, where it is a refusal that was meant; else None."""
    if (wrong := user_error_from(error)) is not None:
        # What a command says of it: of a folder in the place of a file, for example.
        return str(wrong)
    if not isinstance(error, ValueError | FileNotFoundError | InUseError):
        return None
    *_, innermost = traceback.walk_tb(error.__traceback__)
    return str(error) if innermost[0].f_code.co_filename.startswith(PACKAGE) else None


def worded(said):
    """Whether a refusal can be read by people."""
    if len(said.split()) < 4 or len(said) > 20_000:
        raise FaultError(f"refused without a sentence: {said[:2000]!r}")
    if "Traceback" in said or RAW.match(said):
        raise FaultError(f"refused with what only programmers read: {said[:2000]!r}")


def judged(work, busy=BUSY, clock=CLOCK):
    """Does something with an input, which is accepted or refused; --hypothesis-show-statistics counts both.

    Raises:
        FaultError: for everything else.
    """
    try:
        with limited(busy, clock), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work()
    except Hang as error:
        raise FaultError(str(error)) from None
    except FaultError:
        raise
    except Exception as error:
        said = sentence(error)
        if said is None:
            raise FaultError("".join(traceback.format_exception(error))) from None
        worded(said)
        event("refused")
    else:
        event("accepted")


def sound(decision, case=None):
    """Whether a decision can be carried out and believed, as far as its form goes."""
    if (decision.alteration is None) != (decision.status == "leave"):
        raise FaultError(f"status and alteration contradict each other: {decision}")
    if decision.alteration is None and not decision.reason:
        raise FaultError(f"nothing is recommended, and nothing says why: {decision}")
    if decision.alteration is not None and not math.isfinite(decision.value):
        raise FaultError(f"the value is no number: {decision}")
    if case is not None:
        case.check(decision.alteration)
    lines = [
        str(each)
        for each in (
            decision.alteration,
            decision.recommendation,
            decision.estimate,
            decision.baseline,
            *decision.warnings,
        )
    ]
    # A variable of that name, which a warning speaks of.
    lines = [re.sub(r": (nan|inf) is set to ", ": ", line) for line in lines]
    if any(NO_NUMBER.search(line) for line in lines):
        raise FaultError(f"a decision holds what is no number: {decision}")


def lines_of(run):
    """The lines of decisions.jsonl."""
    lines = run / "decisions.jsonl"
    return lines.read_text(encoding="utf-8", errors="replace").splitlines() if lines.is_file() else []


def recorded(run, before=()):
    """Whether everything that a run folder shows to people is numbers; the lines that were there before are
    somebody else's."""
    import json

    def no_number(name):
        raise FaultError(f"decisions.jsonl holds {name}")

    for line in lines_of(run):
        if line in before:
            continue
        made = json.loads(line, parse_constant=no_number)
        numbers = [] if made.get("alteration") is None else list(made["alteration"].values())
        numbers += [made["value"]] if made["alteration"] is not None else []
        if any(number is None for number in numbers):
            raise FaultError(f"a recorded decision holds what is no number: {line}")
    table = run / "table.csv"
    if table.is_file() and NO_NUMBER.search(table.read_text(encoding="utf-8")):
        raise FaultError(f"table.csv holds what is no number:\n{table.read_text(encoding='utf-8')[:2000]}")
