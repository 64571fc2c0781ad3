"""The end of a sweep: merging of its shards (the verb collect), and tables of its jobs.

The lines of all shards are sorted by index and otherwise unchanged, so that the merged decisions.jsonl is the
one of an unsharded run, byte for byte. Files that are equal in all shards (data card, choice of a method,
claims of the folds) are taken from the first.

The decisions that have curves (`claims.csv` for cases of a table, `surrogate.csv` for trials) are those with
the largest, the median and the smallest difference of all. The curves are therefore made after merging, with
the checkpoint and the data set of the merged configuration, whose fingerprint must be the recorded one.
Where one of them is missing, the run is merged without curves, and a sentence says so.

The configuration lies in a folder that others may have written: unless it was typed on this command line
(`trusted` is None), only what a resumed folder may build is built of it (`methods.class_allowlist`).

The rows of the cross tables are the decisions, scored by a world, of all successful jobs. A method is named
by its decision and the other overrides that differ between the jobs; a world by its dataset and the overrides
of it that differ.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import Any

from omegaconf import OmegaConf
from rich.console import Console
from rich.table import Table

from rehearsal_torch.checkpoint import load
from rehearsal_torch.cli.command_words import typed_as
from rehearsal_torch.cli.main import recordable
from rehearsal_torch.cli.method_of_problem import settled
from rehearsal_torch.cli.verbs.cross_validate import grid
from rehearsal_torch.cli.verbs.train import curved
from rehearsal_torch.evaluation.claim_rows import (
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
from rehearsal_torch.evaluation.run_record import Recorded, read
from rehearsal_torch.files.bounded_yaml import WHOLE, PlainFileError, checked
from rehearsal_torch.files.lock import holder
from rehearsal_torch.methods.class_allowlist import trusted_modules
from rehearsal_torch.methods.hydra_config import trusted_names
from rehearsal_torch.methods.instantiate import screen
from rehearsal_torch.methods.run_parts import suits
from rehearsal_torch.reporting import sweep_tables
from rehearsal_torch.reporting.figure_style import drawing, save
from rehearsal_torch.reporting.figures.round_figures import draw_trials
from rehearsal_torch.reporting.run_report import report
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError, as_user_error, user_error_from

# Files that are equal in all shards.
_SAME_IN_SHARDS = ("data.yaml", "method_choice.csv", "method_choice.json", "claims.json", "untouched.csv")
_MERGED_FILES = (
    *("run.json", "config.yaml", "decisions.jsonl", "metrics.csv"),
    *("data.yaml", "truth.csv", "status.json"),
)
_CURVES = {"rehearse": "claims.csv", "optimise": "surrogate.csv"}
# Keys in which the shards of a cohort differ.
_SHARD_KEYS = ("shard", "shards", "out", "resume", "workers")
# Overrides that belong neither to the name of a method nor to that of a world.
_UNNAMED = (
    *("seed=", "shard=", "shards=", "workers=", "dataset=", "decision=", "+experiment="),
    *("out=", "resume=", "limit="),
)


def collect(sweeps: Sequence[Path], given: Mapping[str, str]) -> int:
    """Merges the shards of sweeps; returns 0."""
    names = given.get("trusted", "").strip("[]").split(",")
    trusted = trusted_names([name.strip() for name in names if name.strip()])
    for sweep in sweeps:
        shards(sweep)
        with RunFolder(sweep).lock():
            conclude(sweep, trusted)
    return 0


def conclude(sweep: Path, trusted: Sequence[str] | None) -> None:
    """Merges the shards in a folder, makes the curves of each merged run, and prints its report."""
    for merged in merge(sweep):
        with_curves(merged, trusted)
        print(report(merged.path), flush=True)
        print(f"Merged {len(merged.decisions())} decisions into {merged.path}", flush=True)


def merge(sweep: Path) -> list[RunFolder]:
    """Merges the shards: one cohort into the folder itself, several into ``cohort-0``, ``cohort-1``, ..."""
    groups = shards(sweep)
    return [_merge_cohort(parts, path) for parts, path in zip(groups, _targets(sweep, groups), strict=True)]


def shards(sweep: Path) -> list[list[RunFolder]]:
    """The shards in a folder by cohort; UserError without any, or if merging would overwrite other files."""
    if not sweep.is_dir():
        fault = "there is no such folder"
        raise UserError(fault, str(sweep), "Give the folder of a sweep over shard=range(N)")
    groups = cohorts(sweep)
    if not groups:
        fault = "holds no shards"
        raise UserError(fault, str(sweep), "Give the folder of a sweep over shard=range(N) shards=N")
    for path in _targets(sweep, groups):
        present = [name for name in _MERGED_FILES if (path / name).exists()]
        if present and "merged_from" not in RunFolder(path).read_json("run.json"):
            fault = f"holds {' and '.join(present[:3])} that this command did not write"
            raise UserError(fault, str(path), "Move them elsewhere")
    return groups


def cohorts(sweep: Path) -> list[list[RunFolder]]:
    """The shards in a folder by cohort: jobs that differ only in their shard."""
    groups: dict[str, list[RunFolder]] = defaultdict(list)
    numbered = (path for path in sweep.iterdir() if path.is_dir() and path.name.isdecimal())
    for folder in map(RunFolder, sorted(numbered, key=lambda path: int(path.name))):
        if folder.begun and _config(folder)["shards"] > 1:
            config = folder.read_yaml("config.yaml")
            common = {key: value for key, value in config.items() if key not in _SHARD_KEYS}
            groups[json.dumps(common, sort_keys=True, default=str)].append(folder)
    return list(groups.values())


def _targets(sweep: Path, groups: Sequence[object]) -> list[Path]:
    return [sweep] if len(groups) == 1 else [sweep / f"cohort-{number}" for number in range(len(groups))]


def _merge_cohort(parts: list[RunFolder], path: Path) -> RunFolder:
    configs = [_config(shard) for shard in parts]
    count = configs[0]["shards"]
    if {config["shards"] for config in configs} != {count}:
        raise UserError("its jobs have different numbers of shards", str(path), "Start a new sweep")
    by_number = {config["shard"]: shard for config, shard in zip(configs, parts, strict=True)}
    missing = [
        str(number)
        for number in range(count)
        if number not in by_number or by_number[number].read_json("status.json").get("state") != "ok"
    ]
    if missing:
        fault = f"shard {', '.join(missing)} of {count} is missing or unfinished"
        remedy = f"Run the sweep's command again with resume={path}; finished jobs are kept"
        raise UserError(fault, str(path), remedy)
    merged, ordered = RunFolder(path), [by_number[number] for number in range(count)]
    # All is read before anything is written: a damaged shard leaves earlier merged results unchanged.
    runs = [shard.read_json("run.json", ("overrides", "seconds")) for shard in ordered]
    overrides = [text for text in runs[0]["overrides"] if not text.startswith(("shard=", "shards="))]
    seconds = round(sum(float(run["seconds"]) for run in runs), 3)
    decided = [entry for shard in ordered for entry in shard.decision_lines()]
    texts = {line["index"]: text for text, line in decided}
    lines = "".join(f"{texts[index]}\n" for index in sorted(texts))
    metrics = sorted((row for shard in ordered for row in shard.metrics()), key=lambda row: (row[1], row[0]))
    merged.write_json(
        "run.json", runs[0] | {"overrides": overrides, "seconds": seconds, "merged_from": count}
    )
    merged.write_yaml("config.yaml", configs[0] | {"shard": 0, "shards": 1, "out": str(path)})
    earlier = path / "decisions.jsonl"
    if not earlier.is_file() or earlier.read_bytes() != lines.encode():
        without_curves(merged)
    merged.write("decisions.jsonl", lines)
    merged.write_metrics(metrics)
    for name in _SAME_IN_SHARDS:
        if (ordered[0].path / name).is_file():
            merged.write(name, (ordered[0].path / name).read_text(encoding="utf-8"))
    truths = [shard.path / "truth.csv" for shard in ordered if (shard.path / "truth.csv").is_file()]
    if truths:
        order = {str(line.get("identity")): line["index"] for _, line in decided}
        merged.write("truth.csv", _in_order(truths, order))
    merged.close("ok", f"merged from {count} shards", overrides, seconds)
    return merged


def _config(folder: RunFolder) -> dict[str, Any]:
    """A job's configuration, with its shard."""
    config = folder.read_yaml("config.yaml")
    # Keys stay in their order: the merged file is that of a single job.
    config |= {key: value for key, value in (("shard", 0), ("shards", 1)) if key not in config}
    return checked(config, str(folder.path / "config.yaml"), {"shard": WHOLE, "shards": WHOLE})


def _in_order(truths: list[Path], order: dict[str, int]) -> str:
    """The shards' comparisons with the ground truth, in the order of the cases."""
    files = [path.read_text(encoding="utf-8").splitlines() for path in truths]
    rows = [row for text in files for row in text[1:]]
    rows.sort(key=lambda row: order.get(row.partition(",")[0], len(order)))
    return "\n".join([files[0][0], *rows, ""])


def without_curves(merged: RunFolder) -> None:
    """Removes the curves of an earlier merging of other decisions, with their figures."""
    for name in _CURVES.values():
        (merged.path / name).unlink(missing_ok=True)
        for figure in (merged.path / "figures").glob(f"{name.removesuffix('.csv')}*"):
            figure.unlink()


def with_curves(merged: RunFolder, trusted: Sequence[str] | None) -> bool:
    """Makes the curves of a merged run, or prints why not; returns whether none is missing."""
    name = _CURVES.get(merged.read_json("run.json").get("kind", ""))
    if name is None or (merged.path / name).is_file():
        return True
    try:
        _write_curves(merged, trusted)
    except Exception as error:
        fault = user_error_from(error)
        if fault is None:
            raise
        remark = f"and its figure, for which the checkpoint and the data are read again: {fault}"
        print(f"Merged without {name} {remark}", file=sys.stderr, flush=True)
        return False
    return True


def _write_curves(merged: RunFolder, trusted: Sequence[str] | None) -> None:
    content = merged.read_yaml("config.yaml") | {"trusted": None if trusted is None else list(trusted)}
    config = OmegaConf.create(content)
    if config.get("checkpoint") is None:
        raise UserError("names no checkpoint", str(merged.path / "config.yaml"))
    screen(config)
    run, _, _ = settled(config, merged, sweep=True)
    with as_user_error(f"checkpoint={config.checkpoint}"):
        surrogate = load(config.checkpoint, task=run.problem.question(), trusted=trusted_modules(run.config))
    suits(run, surrogate)
    curved(run, merged, surrogate)


def finish(
    out: Path,
    jobs: list[list[str]],
    script: str,
    again: Sequence[str] = (),
    trusted: Sequence[str] | None = None,
) -> int:
    """Merges shards if all are done, and prints the table of jobs; then, if a world scored the decisions, the
    table of worlds by methods. Returns 0 if every job succeeded, else 1. `again` are the arguments with which
    to resume, besides the folder.
    """
    rows = statuses(out, jobs)
    all_ok = all(row["state"] == "ok" for row in rows)
    damaged = False
    try:
        if cohorts(out) and all_ok:
            conclude(out, trusted)
        elif cohorts(out):
            command = join([*typed_as(script), f"resume={out}", *again])
            print(f"Not merged, as not all jobs are done. Continue with: {command}", flush=True)
        if script == "cross_validate":
            grid(out)
    except (PlainFileError, UserError) as error:
        damaged = True
        print(f"Not merged: {error}", file=sys.stderr, flush=True)
    _print(out, rows)
    try:
        if table := crossed(out, rows):
            print(table, flush=True)
    except PlainFileError as error:
        damaged = True
        print(f"Not tabulated: {error}", file=sys.stderr, flush=True)
    return 0 if all_ok and not damaged else 1


def statuses(sweep: Path, jobs: list[list[str]]) -> list[dict[str, Any]]:
    """The status of each job of a sweep; marks idle jobs that were never started as skipped."""
    rows = []
    for number, overrides in enumerate(jobs):
        folder, typed = RunFolder(sweep / str(number)), recordable(overrides)
        try:
            status = folder.read_json("status.json", ("state", "message"))
        except PlainFileError:
            status = {}
        if not status and (lock_holder := holder(folder.path)) is not None:
            status = {"state": "running", "message": f"in use {lock_holder}", "overrides": typed}
        elif not status and folder.begun:
            status = {"state": "failed", "message": "ended without a status: killed, or out of memory"}
        elif not status:
            status = {"state": "skipped", "message": "never started"}
        if "overrides" not in status:
            folder.close(status["state"], status["message"], typed, 0.0)
        rows.append({"job": number, "overrides": typed, "seconds": 0.0, **status, "folder": str(folder.path)})
    return rows


def _print(out: Path, rows: list[dict[str, Any]]) -> None:
    overrides_of_jobs = [[_as_typed(text) for text in row["overrides"]] for row in rows]
    common = set.intersection(*map(set, overrides_of_jobs)) if len(overrides_of_jobs) > 1 else set[str]()
    table = Table(title=f"{len(rows)} jobs in {out}", title_justify="left")
    for heading in ("job", "state", "overrides", "seconds", "message"):
        table.add_column(
            heading, justify="right" if heading in ("job", "seconds") else "left", overflow="fold"
        )
    for job, overrides in zip(rows, overrides_of_jobs, strict=True):
        differing = " ".join(text for text in overrides if text not in common)
        table.add_row(str(job["job"]), job["state"], differing, f"{job['seconds']:.1f}", job["message"])
    console = Console()
    (console if console.is_terminal else Console(width=160)).print(table, markup=False)


def _as_typed(override: str) -> str:
    """An override with a truth value as on a command line: Hydra passes `True` to jobs of a sweep."""
    name, equals, value = override.partition("=")
    return name + equals + (value.lower() if value in ("True", "False") else value)


def crossed(out: Path, jobs: Sequence[dict[str, Any]]) -> str:
    """Writes ``table1.csv``, ``table1.md`` and ``figures/table1.*`` into a sweep's folder; for trials
    ``traces.csv``, ``regret.md`` and ``figures/rounds.*``. Returns the table for a terminal; empty, without
    any files, if no world scored a decision.
    """
    cases, trials = [], []
    for run, world, method, seed in _runs_of_jobs(jobs):
        if run.kind == "rehearse":
            cases += [
                row(world, method, seed, decision) | truth_bounds(decision)
                for decision in run.decisions
                if scored_by_world(decision)
            ]
        elif run.kind == "optimise" and all(map(scored_trial, run.decisions)):
            trials += trial_rows(world, "", method, seed, run.decisions)
    if cases:
        return _table_of_cases(out, cases)
    if not trials:
        return ""
    folder = RunFolder(out)
    folder.write("traces.csv", written(trials, TRIAL_COLUMNS))
    folder.write("regret.md", "\n".join(sweep_tables.trials_as_markdown(trials)) + "\n")
    with drawing():
        save(draw_trials(sweep_tables.grouped_rows(trials)), out / "figures", "rounds")
    names = f"traces.csv, regret.md, figures/rounds.png in {out} (figure as .svg, too)"
    return f"Written: {names}\n{sweep_tables.trials_as_text(trials)}"


def _table_of_cases(out: Path, rows: list[dict[str, Any]]) -> str:
    """The table of cases, sorted by world, method and seed."""
    worlds, methods = (list(dict.fromkeys(row[key] for row in rows)) for key in ("dataset", "method"))
    rows.sort(key=lambda row: (worlds.index(row["dataset"]), methods.index(row["method"]), row["seed"]))
    cells, folder = sweep_tables.world_cells(rows), RunFolder(out)
    folder.write("table1.csv", written(rows, with_truth(COLUMNS, rows)))
    folder.write("table1.md", "\n".join(sweep_tables.worlds_as_markdown(cells)) + "\n")
    with drawing():
        save(sweep_tables.draw_worlds(cells), out / "figures", "table1")
    seeds = len({row["seed"] for row in rows})
    spread = f", mean ± sd over {seeds} seeds" if seeds > 1 else ""
    title = f"True probability of a desired outcome{spread}; {len(rows)} decisions"
    names = f"table1.csv, table1.md, figures/table1.png in {out} (figure as .svg, too)"
    return f"Written: {names}\n{sweep_tables.worlds_as_text(cells, title)}"


def _runs_of_jobs(jobs: Sequence[dict[str, Any]]) -> Iterator[tuple[Recorded, str, str, int]]:
    """The run of every successful job, with its world, method and seed."""
    successful = [
        job for job in jobs if job["state"] == "ok" and (Path(job["folder"]) / "decisions.jsonl").is_file()
    ]
    shared = set.intersection(*(set(job["overrides"]) for job in successful)) if successful else set[str]()
    for job in successful:
        run = read(job["folder"])
        extra = [text for text in job["overrides"] if text not in shared and not text.startswith(_UNNAMED)]
        extra = [text.lstrip("+") for text in extra]
        of_world = [text.removeprefix("dataset.") for text in extra if text.startswith("dataset.")]
        of_method = [text for text in extra if not text.startswith("dataset.")]
        world = " ".join([run.choices.get("dataset", "data"), *of_world])
        method = " ".join([run.choices.get("decision", "decision"), *of_method])
        yield run, world, method, int(run.config.get("seed", 0))
