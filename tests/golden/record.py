"""Records runs into a golden folder: one JSON a run, with floats as repr writes them, which loses no bit."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.golden.kept import is_number, kept, leaves
from tests.golden.names import Names
from tests.golden.runs import RUNS, Run

LIMIT = 900.0
# What a recording took; it is no run.
SUMMARY = "_recording.json"
# One thread each, whatever the machine: sums over threads have no fixed order.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def record(
    folder: Path,
    checkout: Path,
    only: str = "*",
    names: Names | None = None,
    runs: Iterable[Run] = RUNS,
) -> int:
    """Runs and records.

    Args:
        folder: Where the records go.
        checkout: Whose scripts are run.
        only: A pattern of the names of the runs.
        names: How what is typed is called in that checkout; None for as in `runs`.
        runs: What is run.

    Returns:
        The exit code: 0, or 1 if a run failed (it is recorded all the same) or no name matches.

    Raises:
        ValueError: if the checkout has no scripts.
    """
    if not (checkout / "scripts").is_dir():
        raise ValueError(f"--checkout {checkout}: expected a checkout with a folder scripts; name its root")
    folder.mkdir(parents=True, exist_ok=True)
    chosen, failed, seconds = [run for run in runs if fnmatch(run.name, only)], 0, 0.0
    spent: dict[str, dict[str, float]] = {}
    for run in chosen:
        began, busy = time.perf_counter(), _processor()
        records, told = _carried_out(run, checkout.resolve(), names or Names())
        for name, content in records.items():
            write(folder / f"{name}.json", content)
        spent[run.name] = {
            "seconds": round(time.perf_counter() - began, 1),
            "processor": round(_processor() - busy, 1),
        }
        seconds += spent[run.name]["seconds"]
        bad = [name for name, content in records.items() if _failed(content)]
        failed += bool(bad)
        numbers = sum(is_number(value) for content in records.values() for _, value in leaves(content))
        print(
            f"{run.name}: {len(records)} records, {numbers} numbers, {spent[run.name]['seconds']} s",
            flush=True,
        )
        if bad:
            print(f"FAILED: {', '.join(bad)}\n{told}", flush=True)
    before = folder / SUMMARY
    write(before, (json.loads(before.read_text(encoding="utf-8")) if before.is_file() else {}) | spent)
    busy = sum(each["processor"] for each in spent.values())
    print(f"{len(chosen)} runs, {failed} failed; {seconds:.0f} s, of which {busy:.0f} s of the processor")
    return 1 if failed or not chosen else 0


def write(path: Path, content: Any) -> None:
    """Writes a record: sorted keys, floats by repr."""
    text = json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def _failed(content: Mapping[str, Any]) -> bool:
    return content.get("exit_code", 0) != 0 or content["state"] not in (None, "ok")


def _processor() -> float:
    """Seconds that the processes which have ended spent on the processor."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _carried_out(run: Run, checkout: Path, names: Names) -> tuple[dict[str, dict[str, Any]], str]:
    """Name to record, of the run and of each job of a sweep; and the last of what was said."""
    with TemporaryDirectory(prefix="golden-") as place:
        work = Path(place)
        for name, text in run.inputs.items():
            (work / name).write_text(text, encoding="utf-8")
        code, told = _typed(run, checkout, names, work)
        out, jobs = work / "run", run.jobs
        apart = tuple(str(number) for number in range(len(jobs)))
        records = {run.name: {"exit_code": code, **kept(out, apart)}}
        for number, name in enumerate(jobs):
            records[name] = kept(out / str(number))
    return records, told


def _typed(run: Run, checkout: Path, names: Names, work: Path) -> tuple[int, str]:
    """Exit code, and the last lines of what was said."""
    swept = [f"{key}={','.join(values)}" for key, values in run.swept.items()]
    typed = [names.typed(text).replace("{root}", str(checkout)) for text in (*run.typed, *swept)]
    command = [
        sys.executable,
        str(checkout / "scripts" / f"{run.script}.py"),
        *(["-m"] if swept else []),
        *typed,
    ]
    surroundings = {
        **os.environ,
        **dict.fromkeys(THREADS, "1"),
        "PYTHONPATH": str(checkout),
        "MPLBACKEND": "agg",
    }
    try:
        done = subprocess.run(
            command,
            cwd=work,
            env=surroundings,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"ended after {LIMIT:g} s"
    return done.returncode, "\n".join((done.stdout + done.stderr).splitlines()[-15:])
