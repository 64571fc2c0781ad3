"""The runner: measures the rows that are missing, and writes bench.json after each of them, then README.md.

Rows that were measured at the same commit on the same processor are kept, so that an interrupted command
goes on where it stopped. Results in ``docs/results`` come from clean commits only.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from benchmarks.suite import (
    graph_queries,
    machine_decisions,
    sequences,
    tables,
    transition_training,
    trial_rounds,
)
from benchmarks.suite.job import Job
from benchmarks.suite.limits import cholesky_rate, product_rate
from benchmarks.suite.machine import processor
from benchmarks.suite.measuring import measured
from benchmarks.suite.page import page
from rehearsal_torch.files.atomic_write import make_folder, write_text
from rehearsal_torch.files.bounded_yaml import PlainFileError, read_json
from rehearsal_torch.files.package_paths import commit
from rehearsal_torch.user_error import UserError
from reproduction.commits import check_clean

OUT = Path("docs/results/bench")
PARTS = {
    "tables": tables,
    "sequences": sequences,
    "machines": machine_decisions,
    "trials": trial_rounds,
    "graphs": graph_queries,
    "training": transition_training,
}
PACKAGES = (
    "rehearsal-torch",
    "torch",
    "numpy",
    "scipy",
    "scikit-learn",
    "networkx",
    "causal-learn",
    "botorch",
    "gpytorch",
    "stable-baselines3",
    "pgmpy",
    "rehearsal",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the command line and runs the suite."""
    parser = argparse.ArgumentParser(description="Speed of the package beside plain references and peers")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--repeat", type=int, default=9, help="repetitions of a row, at least 3")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that all rows work")
    parser.add_argument("--page", action="store_true", help="write README.md again from bench.json, alone")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(arguments)
    parts = asked.parts.split(",")
    if not set(parts) <= set(PARTS):
        raise SystemExit(f"--parts: expected some of {', '.join(PARTS)}; got {asked.parts}")
    if asked.repeat < 3:
        raise SystemExit(f"--repeat: expected at least 3; got {asked.repeat}")
    if asked.small and asked.out == OUT:
        raise SystemExit("--small: its times mean nothing: choose another --out than docs/results/bench")
    torch.set_num_threads(1)
    try:
        if asked.page:
            write_text(asked.out / "README.md", page(read_json(asked.out / "bench.json")))
            return
        check_clean(asked.out)
        record(asked.out, [job for part in parts for job in PARTS[part].jobs(asked.small)], asked.repeat)
    except (UserError, PlainFileError) as error:
        raise SystemExit(str(error)) from None


def record(out: Path, jobs: Sequence[Job], repeat: int) -> dict[str, Any]:
    """Measures the rows that bench.json lacks.

    Args:
        out: The folder.
        jobs: The rows.
        repeat: Number of repetitions.

    Returns:
        The content of bench.json.

    Raises:
        PlainFileError: if an existing bench.json is damaged.
    """
    make_folder(out)
    path, facts = out / "bench.json", origin()
    before = read_json(path) if path.exists() else {}
    same = all(before.get(name) == facts[name] for name in ("commit", "processor", "versions"))
    if same and isinstance(before.get("rows"), dict):
        content = before
    else:
        content = facts | {"limits": _limits(), "rows": {}}
    for place, job in enumerate(jobs):
        if job.key in content["rows"]:
            continue
        if job.missing:
            print(
                f"{place + 1:3d}/{len(jobs)} {job.key:45} left out: {job.needs} is not installed", flush=True
            )
            continue
        began, load = time.process_time(), os.getloadavg()[0]
        found = measured(job.make(), repeat)
        spent = time.process_time() - began
        names = ("group", "peer", "axis", "size", "note", "theory", "exponential")
        content["rows"][job.key] = (
            {name: getattr(job, name) for name in names}
            | found
            | {"seconds": round(spent, 2), "load": round(load, 2)}
        )
        write_text(path, json.dumps(content, indent=1) + "\n")
        told = f"{found['ours_ms']:10.3f} ms {found['theirs_ms']:10.3f} ms  ratio {found['ratio']:7.3f}"
        print(f"{place + 1:3d}/{len(jobs)} {job.key:45} {told}  {found['quality']['verdict']}", flush=True)
    write_text(path, json.dumps(content, indent=1) + "\n")
    write_text(out / "README.md", page(content))
    return content


def origin() -> dict[str, Any]:
    """Where the rows come from: commit, versions, processor."""
    return {
        "command": "python benchmarks/beside.py",
        "commit": commit(),
        "python": platform.python_version(),
        "versions": dict(_versions()),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def _limits() -> dict[str, Any]:
    products = {"float64": product_rate(), "float32": product_rate(dtype=torch.float32)}
    return {"product_gflops": products, "cholesky_gflops": cholesky_rate()}


def _versions() -> Iterator[tuple[str, str | None]]:
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, None
