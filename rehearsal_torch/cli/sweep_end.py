"""The end of a sweep: the merging of shards, and the tables of its jobs.

The rows of the cross tables are those of every successful job whose decisions were scored by a world. A
method is named by its decision and the other overrides that differ between the jobs; a world by its dataset
and the overrides of it that differ.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import join
from typing import Any

from rich.console import Console
from rich.table import Table

from rehearsal_torch.cli.spelling import typed_as
from rehearsal_torch.cli.tasks import after_sweep, recordable
from rehearsal_torch.cli.verbs.collect import cohorts, conclude
from rehearsal_torch.evaluation.recorded_run import Recorded, read
from rehearsal_torch.evaluation.rows import (
    COLUMNS,
    TRIAL_COLUMNS,
    row,
    scored_by_world,
    scored_trial,
    trial_rows,
    truth_bounds,
    with_truth,
    written,
)
from rehearsal_torch.files.lock import holder
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.reporting import sweep_tables
from rehearsal_torch.reporting.figures.rounds import draw_trials
from rehearsal_torch.reporting.style import drawing, save
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError

_APART = (
    "seed=",
    "shard=",
    "shards=",
    "workers=",
    "dataset=",
    "decision=",
    "+experiment=",
    "out=",
    "resume=",
    "limit=",
)


def crossed(out: Path, jobs: Sequence[dict[str, Any]]) -> str:
    """Writes ``table1.csv``, ``table1.md`` and ``figures/table1.*`` into a sweep's folder.

    Args:
        jobs: Each job's state, folder and overrides.

    Returns:
        The table, for a terminal; empty, without any files, if no world scored any decision.
    """
    if not any((Path(job["folder"]) / "decisions.jsonl").is_file() for job in jobs if job["state"] == "ok"):
        return ""
    rows = judged_rows(jobs)
    if not rows:
        return _trials(out, jobs)
    found = sweep_tables.world_cells(rows)
    folder = RunFolder(out)
    folder.write("table1.csv", written(rows, with_truth(COLUMNS, rows)))
    folder.write("table1.md", "\n".join(sweep_tables.worlds_as_markdown(found)) + "\n")
    with drawing():
        save(sweep_tables.draw_worlds(found), out / "figures", "table1")
    seeds = len({row["seed"] for row in rows})
    several = f", mean ± sd over {seeds} seeds" if seeds > 1 else ""
    table = sweep_tables.worlds_as_text(
        found, f"True probability of a desired outcome{several}; {len(rows)} decisions"
    )
    return f"Written: table1.csv, table1.md, figures/table1.png in {out} (figure as .svg, too)\n{table}"


def _trials(out: Path, jobs: Sequence[dict[str, Any]]) -> str:
    """The same for trials: ``traces.csv``, ``regret.md``, ``figures/rounds.*``."""
    rows = []
    for run, world, method, seed in _named(jobs):
        if run.kind == "optimise" and all(scored_trial(one) for one in run.decisions):
            rows += trial_rows(world, "", method, seed, run.decisions)
    if not rows:
        return ""
    folder = RunFolder(out)
    folder.write("traces.csv", written(rows, TRIAL_COLUMNS))
    folder.write("regret.md", "\n".join(sweep_tables.trials_as_markdown(rows)) + "\n")
    with drawing():
        save(draw_trials(sweep_tables.grouped_rows(rows)), out / "figures", "rounds")
    return (
        f"Written: traces.csv, regret.md, figures/rounds.png in {out} (figure as .svg, "
        f"too)\n{sweep_tables.trials_as_text(rows)}"
    )


def judged_rows(jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of all successful jobs, sorted by world, method and seed."""
    found = []
    for run, world, method, seed in _named(jobs):
        if run.kind == "rehearse":
            found += [
                row(world, method, seed, decision) | truth_bounds(decision)
                for decision in run.decisions
                if scored_by_world(decision)
            ]
    worlds, methods = (list(dict.fromkeys(each[key] for each in found)) for key in ("dataset", "method"))
    return sorted(
        found, key=lambda each: (worlds.index(each["dataset"]), methods.index(each["method"]), each["seed"])
    )


def _named(jobs: Sequence[dict[str, Any]]) -> Iterator[tuple[Recorded, str, str, int]]:
    """The run of every successful job, with its world, method and seed."""
    good = [
        job for job in jobs if job["state"] == "ok" and (Path(job["folder"]) / "decisions.jsonl").is_file()
    ]
    shared = set.intersection(*(set(job["overrides"]) for job in good)) if good else set[str]()
    for job in good:
        run = read(job["folder"])
        own = [
            text.lstrip("+")
            for text in job["overrides"]
            if text not in shared and not text.startswith(_APART)
        ]
        world = " ".join(
            [
                run.choices.get("dataset", "data"),
                *(text.removeprefix("dataset.") for text in own if text.startswith("dataset.")),
            ]
        )
        method = " ".join(
            [
                run.choices.get("decision", "decision"),
                *(text for text in own if not text.startswith("dataset.")),
            ]
        )
        yield run, world, method, int(run.config.get("seed", 0))


def finish(
    out: Path,
    jobs: list[list[str]],
    script: str,
    again: Sequence[str] = (),
    trusted: Sequence[str] | None = None,
) -> int:
    """Merges shards if all are done, and prints the table of jobs; then, if a world scored the decisions, the
    table of worlds by methods.

    Args:
        script: The sweep's command.
        again: The arguments that must be repeated to resume, besides the folder.
        trusted: Modules and classes outside this package that a resumed sweep may build; None if it was typed
            on this command line.

    Returns:
        0 if every job succeeded, else 1.
    """
    rows = statuses(out, jobs)
    damaged = False
    try:
        following = join([*typed_as(script), f"resume={out}", *again])
        _merge(out, all(row["state"] == "ok" for row in rows), following, trusted)
        after_sweep(script, out)
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
    conclude(out, trusted)


def _print(out: Path, rows: list[dict[str, Any]]) -> None:
    told = [[_as_typed(text) for text in row["overrides"]] for row in rows]
    common = set.intersection(*map(set, told)) if len(told) > 1 else set[str]()
    table = Table(title=f"{len(rows)} jobs in {out}", title_justify="left")
    for heading in ("job", "state", "overrides", "seconds", "message"):
        table.add_column(
            heading, justify="right" if heading in ("job", "seconds") else "left", overflow="fold"
        )
    for job, overrides in zip(rows, told, strict=True):
        own = " ".join(text for text in overrides if text not in common)
        table.add_row(str(job["job"]), job["state"], own, f"{job['seconds']:.1f}", job["message"])
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    console.print(table, markup=False)


def _as_typed(override: str) -> str:
    """An override whose truth value is spelt as on a command line: Hydra hands jobs of a sweep `True`."""
    name, equals, value = override.partition("=")
    return name + equals + (value.lower() if value in ("True", "False") else value)


def statuses(sweep: Path, jobs: list[list[str]]) -> list[dict[str, Any]]:
    """The status of each job of a sweep; those that were never started are marked as skipped. Where another
    process works in a job's folder, as a job of a cluster may, nothing is written to it.

    Args:
        sweep: The sweep's folder, with one numbered folder per job.
    """
    found = []
    for number, overrides in enumerate(jobs):
        folder = RunFolder(sweep / str(number))
        kept = recordable(overrides)
        try:
            status = folder.read_json("status.json", ("state", "message"))
        except PlainFileError:
            status = {}
        if not status and (held := holder(folder.path)) is not None:
            status = {"state": "running", "message": f"in use {held}", "overrides": kept}
        elif not status and folder.begun:
            status = {"state": "failed", "message": "ended without a status: killed, or out of memory"}
        elif not status:
            status = {"state": "skipped", "message": "never started"}
        if "overrides" not in status:
            folder.close(status["state"], status["message"], kept, 0.0)
        found.append({"job": number, "overrides": kept, "seconds": 0.0, **status, "folder": str(folder.path)})
    return found
