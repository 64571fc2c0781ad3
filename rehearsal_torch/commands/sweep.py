"""Sweeps: many jobs under one folder, and the tables that end them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import join
from typing import Any

from rich.console import Console
from rich.table import Table

from rehearsal_torch.commands.collect import cohorts, conclude
from rehearsal_torch.commands.crossing import crossed
from rehearsal_torch.commands.job import statuses
from rehearsal_torch.commands.taking_up import SWEEP
from rehearsal_torch.commands.user_error import UserError
from rehearsal_torch.history import RunFolder


def begin(out: Path, script: str, overrides: Sequence[str]) -> None:
    """Settles a sweep's folder; the rule is that of `taking_up`.

    Raises:
        UserError: if the folder holds anything but this sweep.
    """
    folder = RunFolder(out)
    before = folder.read_json(SWEEP)
    decisive = [text for text in overrides if not text.startswith(("hydra", "workers="))]
    if before:
        if before["script"] != script or before["decisive"] != decisive:
            told = join([f"scripts/{before['script']}.py", "-m", *before["decisive"]])
            raise UserError(f"the folder holds another sweep: {told}", str(out), "Choose another out=")
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError("the folder is not empty and holds no sweep", str(out), "Choose another out=")
    folder.write_json(SWEEP, {"script": script, "overrides": list(overrides), "decisive": decisive})


def finish(out: Path, jobs: list[list[str]], command: Sequence[str], after: Callable[[Path], None] | None = None) -> int:
    """Merges shards where all are done, and prints the table of jobs; last of all, where a world judged the decisions, worlds by methods.

    Args:
        out: The sweep's folder.
        jobs: Each job's overrides.
        command: What the sweep was typed as, without overrides.
        after: What else is done with the folder before the table.

    Returns:
        0 if every job went well, else 1.
    """
    rows = statuses(out, jobs)
    good = all(row["state"] == "ok" for row in rows)
    if good and cohorts(out):
        for merged in conclude(out):
            print(f"Merged {merged['decisions']} decisions into {merged['folder']}", flush=True)
    elif cohorts(out):
        print(f"Not merged, as not all jobs are done. Go on with: {join([*command, f'resume={out}'])}", flush=True)
    if after is not None:
        after(out)
    _print(out, rows)
    table = crossed(out, rows)
    if table:
        print(table, flush=True)
    return 0 if good else 1


def _print(out: Path, rows: list[dict[str, Any]]) -> None:
    common = set.intersection(*(set(row["overrides"]) for row in rows)) if len(rows) > 1 else set[str]()
    table = Table(title=f"{len(rows)} jobs in {out}", title_justify="left")
    for heading in ("job", "state", "overrides", "seconds", "message"):
        table.add_column(heading, justify="right" if heading in ("job", "seconds") else "left", overflow="fold")
    for row in rows:
        own = " ".join(text for text in row["overrides"] if text not in common)
        table.add_row(str(row["job"]), row["state"], own, f"{row['seconds']:.1f}", row["message"])
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    console.print(table, markup=False)
