"""Sweeps: many jobs in one folder, the merging of shards, and the tables at the end."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import join
from typing import Any

from rich.console import Console
from rich.table import Table

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.job import recordable, statuses
from rehearsal_torch.cli.resume import SWEEP
from rehearsal_torch.cli.spelling import typed_as
from rehearsal_torch.cli.sweep_table import crossed
from rehearsal_torch.cli.verbs.collect import cohorts, conclude
from rehearsal_torch.files.lock import LOCK
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.run_folder import RunFolder


def settled(out: Path, script: str, overrides: Sequence[str]) -> bool:
    """Whether a folder holds this sweep already; the rule is that of `cli.resume`. Nothing is changed.

    Raises:
        UserError: if the folder holds anything but this sweep.
        PlainFileError: if its sweep.json is damaged.
    """
    if out.exists() and not out.is_dir():
        raise UserError("expected a folder; this is a file", str(out), "Choose another out=")
    before = RunFolder(out).read_json(SWEEP, ("script", "overrides", "decisive"))
    if before:
        decisive = before["decisive"]
        if before["script"] != script or decisive != _decisive(overrides):
            command = join([*typed_as(before["script"]), "-m", *before["decisive"]])
            raise UserError(f"the folder holds another sweep: {command}", str(out), "Choose another out=")
        return True
    if out.exists() and any(not path.name.startswith(LOCK) for path in out.iterdir()):
        raise UserError("the folder is not empty and holds no sweep", str(out), "Choose another out=")
    return False


def begin(out: Path, script: str, overrides: Sequence[str]) -> None:
    """Writes sweep.json to a sweep's folder. Hydra's own settings, such as the launcher, are not stored: they
    must be given each time.

    Raises:
        UserError: if the folder holds anything but this sweep.
        PlainFileError: if its sweep.json is damaged.
    """
    if not settled(out, script, overrides):
        kept = [text for text in recordable(overrides) if not of_hydra(text)]
        RunFolder(out).write_json(
            SWEEP, {"script": script, "overrides": kept, "decisive": _decisive(overrides)}
        )


def of_hydra(override: str) -> bool:
    """Whether an override is one of Hydra's own settings."""
    return override.lstrip("+~").startswith("hydra")


def _decisive(overrides: Sequence[str]) -> list[str]:
    return [text for text in recordable(overrides) if not of_hydra(text) and not text.startswith("workers=")]


def finish(
    out: Path,
    jobs: list[list[str]],
    command: Sequence[str],
    after: Callable[[Path], None] | None = None,
    again: Sequence[str] = (),
    trusted: Sequence[str] | None = None,
) -> int:
    """Merges shards if all are done, and prints the table of jobs; then, if a world scored the decisions, the
    table of worlds by methods.

    Args:
        out: The sweep's folder.
        jobs: Each job's overrides.
        command: The words of the sweep's command, without overrides.
        after: A function of the folder that is called before the table is printed.
        again: The arguments that must be repeated to resume, besides the folder.
        trusted: Modules and classes outside this package that a resumed sweep may build; None if it was typed
            on this command line.

    Returns:
        0 if every job succeeded, else 1.
    """
    rows = statuses(out, jobs)
    damaged = False
    try:
        following = join([*command, f"resume={out}", *again])
        _merge(out, all(row["state"] == "ok" for row in rows), following, trusted)
        if after is not None:
            after(out)
    except (PlainFileError, UserError) as error:
        damaged = True
        print(f"Not merged: {error}", file=sys.stderr, flush=True)
    _print(out, rows)
    try:
        table = crossed(out, rows)
    except PlainFileError as error:
        damaged, table = True, ""
        print(f"Not tabulated: {error}", file=sys.stderr, flush=True)
    if table:
        print(table, flush=True)
    return 0 if all(row["state"] == "ok" for row in rows) and not damaged else 1


def _merge(out: Path, good: bool, following: str, trusted: Sequence[str] | None) -> None:
    """Merges shards if all are done, or prints how to continue."""
    if not cohorts(out):
        return
    if not good:
        print(f"Not merged, as not all jobs are done. Continue with: {following}", flush=True)
        return
    for merged in conclude(out, trusted):
        print(f"Merged {merged['decisions']} decisions into {merged['folder']}", flush=True)


def _print(out: Path, rows: list[dict[str, Any]]) -> None:
    told = [[_as_typed(text) for text in row["overrides"]] for row in rows]
    common = set.intersection(*map(set, told)) if len(told) > 1 else set[str]()
    table = Table(title=f"{len(rows)} jobs in {out}", title_justify="left")
    for heading in ("job", "state", "overrides", "seconds", "message"):
        table.add_column(
            heading, justify="right" if heading in ("job", "seconds") else "left", overflow="fold"
        )
    for row, overrides in zip(rows, told, strict=True):
        own = " ".join(text for text in overrides if text not in common)
        table.add_row(str(row["job"]), row["state"], own, f"{row['seconds']:.1f}", row["message"])
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    console.print(table, markup=False)


def _as_typed(override: str) -> str:
    """An override whose truth value is spelt as on a command line: Hydra hands jobs of a sweep `True`."""
    name, equals, value = override.partition("=")
    return name + equals + (value.lower() if value in ("True", "False") else value)
