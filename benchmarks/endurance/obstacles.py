"""Commands that meet a limit of files, a full disk, a read-only folder, or another process on the folder.

    file limit       no file can grow beyond a random size, up to that of the largest file of the command
    full disk        a disk in memory, with less room than the files of the command take; where the system
                     mounts none, it is not met
    read-only        nobody may write into the folder, where nothing lies yet, or an ended command
    at once          the same command is typed a second time while the first runs, at a random time

Each must end as ever, or be refused by a sentence that says so. After that, whole lines must be there still,
files must be the old or the new ones, and no half-written ones may lie about; and the command, typed again
without the obstacle, must give the files of an undisturbed one. A fault is a sentence; none is expected.

Two optimisers share one file of trials by turns, so that the trials of both are in it: every one of them must
have its result.
"""

import json
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.endurance.commands import TRIALS, Command, in_child
from benchmarks.endurance.kills import after_disturbance, differences, files, undisturbed
from benchmarks.endurance.refusing import Disk, own_mounts, read_only
from tests.scripts.refusals import little_space

OBSTACLES = {
    "file limit": "File too large",
    "full disk": "No space left on device",
    "read-only": "Permission denied",
    "at once": "in use by process",
}
SMALLEST, PAGE, ROOM = 200, 4096, 2**26
Whole = tuple[dict[str, bytes], dict[str, bytes]]


def met(name: str, command: Command, folder: Path, count: int, seed: int = 0) -> dict[str, Any]:
    """Puts each obstacle in the way of a command some times.

    Args:
        name: The command's name.
        command: The command.
        folder: An empty or missing folder for its rounds.
        count: How often each obstacle is met.
        seed: Of sizes and times.

    Returns:
        How often each was met and refused (None: not met), and every fault.
    """
    folder.mkdir(parents=True, exist_ok=True)
    whole = undisturbed(command, folder / "first"), undisturbed(command, folder / "second")
    began = time.monotonic()
    undisturbed(command, folder / "timed", anew=True)
    seconds = time.monotonic() - began
    largest = max(len(content) for content in whole[0].values())
    stream, place, faults = random.Random(f"{seed}/{name}"), folder / "round", list[str]()
    refused: dict[str, int | None] = dict.fromkeys(OBSTACLES, 0)
    if not own_mounts():
        refused["full disk"] = None
    for turn in range(count):
        for obstacle in OBSTACLES:
            if (before := refused[obstacle]) is None:
                continue
            with _ground(place, obstacle) as disk:
                command.prepare(place)
                if obstacle == "read-only" and turn % 2 and command.lines:
                    shutil.copytree(folder / "first/run", place / "run")
                if disk is not None:
                    room = _room(whole[0], files(place), stream.random())
                    meet = partial(_on_full_disk, command, place, disk, room)
                elif obstacle == "at once":
                    meet = partial(_at_once, command, place, stream.uniform(0, seconds))
                else:
                    size = round(SMALLEST * (largest / SMALLEST) ** stream.random())
                    limits = {
                        "file limit": partial(little_space, size),
                        "read-only": partial(read_only, place),
                    }
                    meet = partial(_behind, command, place, limits[obstacle])
                codes, told = _one(command, place, whole, obstacle, meet, name == "optimiser")
            refused[obstacle] = before + any(codes)
            faults += [f"{obstacle}, number {turn + 1}: {each}" for each in told]
    return {"command": name, "met": count, "refused": refused, "faults": faults}


def _one(
    command: Command,
    place: Path,
    whole: Whole,
    obstacle: str,
    meet: Callable[[], tuple[list[int], str]],
    sharing: bool,
) -> tuple[list[int], list[str]]:
    """Lets a command meet an obstacle, then end without it; its exit codes at the obstacle, faults."""
    before, shared = files(place), sharing and obstacle == "at once"
    codes, said = meet()
    told = _unsaid(obstacle, codes, said)
    told += [] if shared else after_disturbance(command, place, before, whole[0], b"")[0]
    if obstacle == "read-only" and files(place) != before:
        told.append("files of a read-only folder have changed")
    told += [f"{path} was left behind" for path in _hidden(place)]
    code = os.waitstatus_to_exitcode(os.waitpid(in_child(command.run, place), 0)[1])
    if code:
        told.append(f"typed again, it ended with code {code}")
    else:
        told += _unfinished(place) if shared else differences(whole, files(place))
    return codes, told


@contextmanager
def _ground(place: Path, obstacle: str) -> Iterator[Disk | None]:
    """An empty folder; for a full disk, one on a disk of its own."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    disk = Disk(place, ROOM) if obstacle == "full disk" else None
    try:
        yield disk
    finally:
        if disk is not None:
            disk.remove()


def _room(whole: dict[str, bytes], before: dict[str, bytes], share: float) -> int:
    """The bytes that a disk has left: one page at least, and fewer than the files of a command take beyond
    those that were there.

    Args:
        whole: The files of an undisturbed command.
        before: Those that were there.
        share: In [0, 1], from one page to one fewer than needed, evenly on a logarithmic scale.
    """
    pages = sum(-(-len(content) // PAGE) for path, content in whole.items() if path not in before)
    return PAGE * int(max(pages - 1, 1) ** share)


def _behind(
    command: Command, folder: Path, around: Callable[[], AbstractContextManager[None]]
) -> tuple[list[int], str]:
    """Runs a command within a context, in a process of its own; its exit code, and what it said.

    What it says goes through a pipe: the limit of files would end a log, too.
    """
    reading, writing = os.pipe()
    number = in_child(command.run, folder, around, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read().decode(errors="replace")
    return [os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])], said


def _on_full_disk(command: Command, folder: Path, disk: Disk, room: int) -> tuple[list[int], str]:
    """Runs a command on a disk with some bytes left; its exit code, and what it said."""
    disk.resize(disk.used + room)
    try:
        return _behind(command, folder, nullcontext)
    finally:
        disk.resize(ROOM)


def _at_once(command: Command, folder: Path, wait: float) -> tuple[list[int], str]:
    """Types a command, and once more some seconds later; the exit codes of both, and what they said."""
    first = in_child(command.run, folder)
    time.sleep(wait)
    second = in_child(command.run, folder)
    codes = [os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) for number in (first, second)]
    return codes, (folder / "said.log").read_text(encoding="utf-8", errors="replace")


def _unsaid(obstacle: str, codes: list[int], said: str) -> list[str]:
    """The faults of how commands ended: all refused where one had to end, or refused without a sentence."""
    faults = []
    if obstacle == "at once" and all(codes):
        faults.append(f"both were refused, with the codes {codes}")
    if obstacle == "read-only" and not any(codes):
        faults.append("it ended as if it had written")
    if any(codes) and OBSTACLES[obstacle] not in said:
        lines = said.strip().splitlines() or ["it said nothing"]
        faults.append(f"it ended with the codes {codes} and did not say {OBSTACLES[obstacle]!r}: {lines[-1]}")
    if "Traceback" in said:
        faults.append("it ended with a traceback")
    return faults


def _hidden(folder: Path) -> list[str]:
    """Half-written files that nobody writes any more."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob(".*.part*") if path.is_file())


def _unfinished(folder: Path) -> list[str]:
    """The faults of a file of trials that two optimisers shared."""
    trials = json.loads((folder / "run/trials.json").read_text(encoding="utf-8"))["trials"]
    states = [each["state"] for each in trials]
    if len(states) < TRIALS or set(states) != {"completed"}:
        return [f"expected at least {TRIALS} completed trials; got {len(states)}, {sorted(set(states))}"]
    return []
