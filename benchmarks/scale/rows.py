"""The rows: what is run for each of them, in which order, and what is kept.

Ways to do the same work are taken in turn, so that what else runs on the machine meets all of them. The first
way is that of one process; the digests of the files of every other way are compared with its own.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.scale.commands import LOAN, SEPSIS, scripted, typed
from benchmarks.scale.size import Size

Kept = dict[str, Any]
Measured = tuple[Kept, Kept]
PARTS = ("start", "sharing", "devices", "patients", "tables")
ONE = "one process"
# Settings of each way, beside those of the work; the last two are sweeps of two shards.
WAYS = {
    ONE: ("workers=1",),
    "two processes": ("workers=2",),
    "Dask, two workers": ("parallel=dask", "workers=2"),
}
SHARDS = ("-m", "shards=2", "shard=range(2)")
SHARDED = {
    "two shards, joblib": (*SHARDS, "hydra/launcher=joblib"),
    "two shards, submitit_local": (*SHARDS, "hydra/launcher=submitit_local"),
}
# Processes and threads of each way to train.
TRAINED = {ONE: (1, 1), "one process, two threads": (1, 2), "two processes": (2, 1)}
# Candidate sets of the worlds, each of one variable.
SETS = {"bank": 1, "bermuda": 5}


@dataclass(frozen=True)
class Row:
    """A row before it is measured.

    Attributes:
        part: Its part.
        name: What is done.
        measure: Does it in a folder; returns what is the same in every round, and what was measured.
        repeated: Whether it is measured in every round, or in the first one alone.
    """

    part: str
    name: str
    measure: Callable[[Path], Measured]
    repeated: bool = True

    @property
    def key(self) -> str:
        """Identifies the row."""
        return f"{self.part} | {self.name}"


@dataclass(frozen=True)
class Work:
    """A command that several processes may share.

    Attributes:
        verb: decide or train.
        arguments: What is typed, beside the way and the folder.
        files: Those of its folder that are compared.
        sharded: Whether it may be run in shards.
        prepare: What is typed before, to train what `checkpoint=trained` names; empty where nothing is.
    """

    verb: str
    arguments: tuple[str, ...]
    files: tuple[str, ...] = ("decisions.jsonl",)
    sharded: bool = False
    prepare: tuple[str, ...] = ()


def rows(size: Size) -> Iterator[Row]:
    """All rows, in order."""
    patients = ("+experiment=sepsis", f"checkpoint={SEPSIS}", f"dataset.patients={size.cohort}")
    loan = ("+experiment=auf", "decision=cme", f"checkpoint={LOAN}")
    yield Row("start", "simulated patients", partial(start, size.starts, patients))
    yield Row("start", "a table of 1,000 rows, cme", partial(start, size.starts, loan))
    for name, work in works(size).items():
        yield Row("sharing", name, partial(share, work))
    for batch in size.batches:
        yield Row("devices", f"batches of {batch:,}", partial(train, size, batch))
    for method, count in size.decided.items():
        yield Row("patients", method, partial(decide, method, count), False)
    for world, counts in size.worlds.items():
        yield Row("tables", world, partial(cases, world, size.rows, counts), False)


def works(size: Size) -> dict[str, Work]:
    """The commands that are shared, by what they do."""
    table = ("+experiment=auf", f"dataset.size.rows={size.rows}", f"dataset.size.contexts={size.cases}")
    sepsis = ("+experiment=sepsis", f"dataset.patients={size.cohort}")
    return {
        f"decisions for {size.patients} patients": Work(
            "decide", (*sepsis, f"checkpoint={SEPSIS}", f"limit={size.patients}"), sharded=True
        ),
        f"decisions for {size.cases} cases of a table": Work(
            "decide", (*table, "checkpoint=trained"), sharded=True, prepare=table
        ),
        "training of four models (transition_ensemble)": Work(
            "train",
            (*sepsis, f"trainer.max_epochs={size.epochs}", "preview=2"),
            ("checkpoint/weights.safetensors", "decisions.jsonl"),
        ),
        "eleven fits of flows, claims=cross_fitted (grad_rh)": Work(
            "decide",
            (
                "+experiment=auf", f"dataset.size.rows={size.rows}", "decision=grad_rh",
                "claims=cross_fitted", f"trainer.max_epochs={size.fold_epochs}", "limit=2",
            ),
            ("checkpoint/weights.safetensors", "claims.json", "decisions.jsonl"),
        ),
    }  # fmt: skip


def start(count: int, arguments: Sequence[str], folder: Path) -> Measured:
    """CPU seconds at the marks of a shard's start (`start.MARKS`), of several shards."""
    typed_in = (*arguments, "shards=4", "shard=0", "limit=1", "workers=1")
    found = []
    for number in range(count + 1):
        out = folder / f"shard-{number}"
        found.append(scripted(folder, "start", folder / "modules.json", out, *typed_in).answer)
    return {"command": _shown("decide", typed_in)}, {"marks": found[1:]}


def share(work: Work, folder: Path) -> Measured:
    """What every way to do a work takes, and a digest of the files that are compared."""
    if work.prepare:
        typed(folder, "train", *work.prepare, "preview=1", "out=trained")
    taken = dict[str, Kept]()
    for way, settings in (WAYS | (SHARDED if work.sharded else {})).items():
        out = folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        spent = typed(folder, work.verb, *settings, *work.arguments, f"out={out.name}")
        digest = sha256(b"".join((out / name).read_bytes() for name in work.files)).hexdigest()
        taken[way] = spent.figures | {"digest": digest}
    return {"command": _shown(work.verb, work.arguments), "files": list(work.files)}, taken


def train(size: Size, batch: int, folder: Path) -> Measured:
    """Rows a second of each way to train, and its loss in each epoch."""
    taken = dict[str, Kept]()
    for way, (devices, threads) in TRAINED.items():
        asked = (devices, threads, batch, size.training_rows, size.training_epochs)
        spent = scripted(folder, "two_devices", *asked)
        rate = round(size.training_rows / min(spent.answer["seconds"][1:]))
        taken[way] = spent.figures | {"rate": rate, "losses": spent.answer["losses"]}
    return {"batch": batch, "rows": size.training_rows, "epochs": size.training_epochs}, taken


def decide(method: str, count: int, folder: Path) -> Measured:
    """CPU seconds and bytes of each decision for a patient."""
    return {"method": method}, scripted(folder, "patients", SEPSIS, method, count).answer


def cases(world: str, observed: int, counts: Sequence[int], folder: Path) -> Measured:
    """What whole commands take that fit the default to a table and decide for some cases of it."""
    arguments = ("+experiment=auf", f"dataset={world}", f"dataset.size.rows={observed}")
    found = []
    for count in counts:
        shutil.rmtree(folder / "out", ignore_errors=True)
        asked = (*arguments, f"dataset.size.contexts={count}", "workers=1")
        found.append({"cases": count} | typed(folder, "decide", *asked, "out=out").figures)
    command = _shown("decide", (*arguments, "dataset.size.contexts=CASES", "workers=1"))
    facts = {"world": world, "command": command, "sets": SETS[world], "rows": observed}
    return facts, {"commands": found}


def _shown(verb: str, arguments: Sequence[str]) -> str:
    """A command as it may be typed behind `rehearsal` in the repository."""
    text = " ".join(arguments)
    for path in (SEPSIS, LOAN):
        text = text.replace(str(path), f"checkpoints/{path.name}")
    return f"{verb} {text}"
