"""Commands that are killed again and again, and what is left of them.

An undisturbed command is run twice. Files that differ between these two hold times of the clock, and are
compared with everything that is a time left out; those in ``training`` are not compared, since the trainer
counts its starts there. Then a round begins in an empty folder: the command is killed (SIGKILL) at a random
time, typed again with resume=, killed again, up to three times, and typed once more to its end. Every kill
is followed by a look at the folder, and the end of the round by a comparison with the undisturbed one. A
fault is a sentence; none is expected.
"""

import json
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.endurance.commands import Command, in_child

IN_A_ROUND = 3
# What a run says of the clock.
CLOCK = re.compile(rb'"seconds": [0-9.e-]+|decision/seconds,[0-9.e-]+')
# The trainer's own state, which counts how often it was started.
WORKING = "run/training/"


def killed(name: str, command: Command, folder: Path, count: int, seed: int = 0) -> dict[str, Any]:
    """Kills a command some times.

    Args:
        name: The command's name.
        command: The command.
        folder: An empty or missing folder for its rounds; finished rounds in it are kept.
        count: The number of kills.
        seed: Of the times at which it is killed.

    Returns:
        How often it was killed, in how many rounds, and every fault that was found.
    """
    folder.mkdir(parents=True, exist_ok=True)
    once, again = (undisturbed(command, folder / each) for each in ("first", "second"))
    began = time.monotonic()
    undisturbed(command, folder / "timed", anew=True)
    seconds = time.monotonic() - began
    record = folder / "rounds.jsonl"
    made = (
        [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
        if record.is_file()
        else []
    )
    stream = random.Random(f"{seed}/{name}/{len(made)}")
    while sum(each["kills"] for each in made) < count:
        left = count - sum(each["kills"] for each in made)
        found = one_round(command, folder / "round", (once, again), seconds, min(left, IN_A_ROUND), stream)
        made.append(found)
        with record.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(found) + "\n")
    clocked = [path for path in sorted(once) if once[path] != again.get(path) or path.startswith(WORKING)]
    return {
        "command": name,
        "kills": sum(each["kills"] for each in made),
        "rounds": len(made),
        "undisturbed_seconds": round(seconds, 2),
        "files": len(once),
        "equal": len(once) - len(clocked),
        "with_times": clocked,
        "faults": [fault for each in made for fault in each["faults"]],
    }


def undisturbed(command: Command, folder: Path, anew: bool = False) -> dict[str, bytes]:
    """The files of a command that ran to its end; kept from an earlier call unless asked for anew."""
    if anew or not (folder / "ended").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command.prepare(folder)
        code = os.waitstatus_to_exitcode(os.waitpid(in_child(command.run, folder), 0)[1])
        if code != 0:
            raise RuntimeError(f"the undisturbed command ended with code {code}: see {folder / 'said.log'}")
        (folder / "ended").touch()
    return files(folder)


def files(folder: Path) -> dict[str, bytes]:
    """The bytes of every file below a folder's ``run``."""
    found = sorted((folder / "run").rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if path.is_file()}


def one_round(
    command: Command,
    folder: Path,
    whole: tuple[dict[str, bytes], dict[str, bytes]],
    seconds: float,
    kills: int,
    stream: random.Random,
) -> dict[str, Any]:
    """Kills a command up to some times, lets it end, and compares.

    Args:
        command: The command.
        folder: Where it runs; what is there is removed.
        whole: The files of both undisturbed commands.
        seconds: What the undisturbed command takes.
        kills: The largest number of kills.
        stream: Draws the times.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command.prepare(folder)
    before, faults, times = files(folder), list[str](), list[float]()
    kept = b""
    for _ in range(kills):
        wait = stream.uniform(0.02, seconds)
        number = in_child(command.run, folder)
        time.sleep(wait)
        os.kill(number, signal.SIGKILL)
        _, status = os.waitpid(number, 0)
        if not os.WIFSIGNALED(status):
            if (code := os.waitstatus_to_exitcode(status)) != 0:
                faults.append(f"typed again, it ended with code {code}: {_last(folder)}")
            break
        times.append(round(wait, 2))
        told, kept = after_disturbance(command, folder, before, whole[0], kept)
        faults += told
    code = os.waitstatus_to_exitcode(os.waitpid(in_child(command.run, folder), 0)[1])
    if code != 0:
        faults.append(f"resumed after kills at {times} s, it ended with code {code}: {_last(folder)}")
    else:
        faults += [f"after kills at {times} s: {each}" for each in differences(whole, files(folder))]
    return {"kills": len(times), "times": times, "faults": faults}


def after_disturbance(
    command: Command, folder: Path, before: dict[str, bytes], whole: dict[str, bytes], kept: bytes
) -> tuple[list[str], bytes]:
    """The faults that a kill or a refusal left, and the whole lines that must not be lost any more."""
    found = files(folder)
    faults, lines = list[str](), kept
    if command.lines:
        text = found.get(command.lines, b"")
        lines = text[: text.rfind(b"\n") + 1]
        if not unclocked(whole[command.lines]).startswith(unclocked(lines)):
            faults.append(f"{command.lines} holds a line that the undisturbed command did not write")
        if len(lines) < len(kept):
            faults.append(f"{command.lines} lost lines: {len(kept)} bytes, then {len(lines)}")
    for path in command.replaced:
        text = found.get(path)
        if path in before and text is None:
            faults.append(f"{path} is gone")
        if path.endswith(".json") and text is not None:
            json.loads(text)
        elif text is not None and text not in (before.get(path), whole[path]):
            faults.append(f"{path} is neither the old file nor the new one")
    return faults, lines


def differences(whole: tuple[dict[str, bytes], dict[str, bytes]], found: dict[str, bytes]) -> Iterator[str]:
    """What differs from the undisturbed command: missing files, further files, other bytes."""
    once, again = whole
    yield from (f"{path} is missing" for path in once.keys() - found.keys())
    yield from (f"{path} was left behind" for path in found.keys() - once.keys())
    for path in sorted(once.keys() & found.keys()):
        if path.startswith(WORKING):
            continue
        if once[path] == again[path]:
            if found[path] != once[path]:
                yield f"{path} differs"
        elif unclocked(once[path]) == unclocked(again[path]) != unclocked(found[path]):
            yield f"{path} differs in more than times"


def unclocked(content: bytes) -> bytes:
    """A file without what it says of the clock."""
    return CLOCK.sub(b"", content)


def _last(folder: Path) -> str:
    log = folder / "said.log"
    said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return said[-1] if said else "it said nothing"
