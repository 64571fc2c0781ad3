"""Rounds that learn from each other, played for a study: what ``scripts/decide.py`` does with a
configuration, without a run folder.

A study is a list of repeats. Those that are not done are shared among processes; each is written as it comes,
and one that failed leaves its message and lets the others go on.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

from omegaconf import DictConfig

from rehearsal_torch.cli.batch_decisions import played
from rehearsal_torch.cli.run import build
from rehearsal_torch.cli.verbs.fitting import learnt
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.studies.command import say
from rehearsal_torch.studies.rounds_record import Each, RoundsRecord, Row
from rehearsal_torch.studies.workers import shared

Protocol = TypeVar("Protocol")


@dataclass(frozen=True)
class Outcome(Generic[Each]):
    """What came of a repeat.

    Attributes:
        repeat: Which.
        rows: A row a round; none where it failed.
        line: Its line in ``jobs.csv``, but for what the repeat says itself.
    """

    repeat: Each
    rows: list[Row] = field(default_factory=list)
    line: dict[str, Any] = field(default_factory=dict)


def outcome(repeat: Each, rows_of: Callable[[], Iterable[Row]], commit: str) -> Outcome[Each]:
    """Goes through a repeat; an error becomes its line's message.

    Args:
        repeat: Which.
        rows_of: Makes its rows.
        commit: The commit that they come from.
    """
    began = time.process_time()
    try:
        rows, state, message = list(rows_of()), "ok", ""
    except Exception as error:
        rows, state, message = [], "failed", f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
    spent = time.process_time() - began
    return Outcome(
        repeat,
        rows,
        {"state": state, "rounds": len(rows), "seconds": spent, "commit": commit, "message": message},
    )


def carried_out(
    record: RoundsRecord,
    done: Callable[[Protocol, Each], Outcome[Each]],
    protocol: Protocol,
    planned: Sequence[Each],
    workers: int,
    deadline: float | None,
    began: float,
    told: Callable[[Outcome[Each]], str],
) -> int:
    """Does the repeats that are not done.

    Args:
        record: Where they are kept.
        done: Does one; a function of a module.
        protocol: What all repeats share.
        planned: All repeats.
        workers: Processes, one thread each.
        deadline: No repeat begins after it, on `time.monotonic`'s clock; None for none.
        began: When the command began, on the same clock.
        told: A few words on one that went well.

    Returns:
        How many are left.
    """
    record.mend()
    todo = record.todo(planned)
    say(began, f"{len(todo)} of {len(planned)} repeats to do")
    for number, each in enumerate(shared(done, protocol, todo, min(workers, max(len(todo), 1)), deadline), 1):
        record.add(each.repeat, each.rows, each.line)
        named = f"{number}/{len(todo)}  {' '.join(text for text in each.repeat.key if text)}"
        good = each.line["state"] == "ok"
        say(
            began,
            f"{named}: {told(each)}, {each.line['seconds']:.1f} s"
            if good
            else f"{named} FAILED: {each.line['message']}",
        )
    return len(record.todo(planned))


def lines(config: DictConfig, problem: Problem | None = None) -> Iterator[dict[str, Any]]:
    """The line of each round, as it is made, with the processor's seconds of everything since the line
    before.

    Args:
        config: The whole configuration, of rounds that learn from each other.
        problem: Where situations come from, where it was built before; None builds it.
    """
    run = build(config, problem)
    with TemporaryDirectory() as folder:
        surrogate = learnt(run, Path(folder), validated=False).surrogate
    made = played(run, surrogate)
    before = time.process_time()
    for each in made:
        now = time.process_time()
        yield json.loads(each.line()) | {"seconds": now - before}
        before = time.process_time()
