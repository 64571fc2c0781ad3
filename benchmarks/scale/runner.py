"""The runner: measures what is missing, row after row and round after round, then writes README.md.

scale.json is written after each row. What was measured at the same commit on the same processor is kept, so
that an interrupted command goes on where it stopped, and one with more rounds adds them. Results in
``docs/results`` come from clean commits only.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

import psutil

from benchmarks.scale.page import page
from benchmarks.scale.rows import PARTS, Row, rows
from benchmarks.scale.size import FULL, SMALL
from benchmarks.suite.machine import processor
from rehearsal_torch.files.atomic_write import make_folder, write_text
from rehearsal_torch.files.bounded_yaml import PlainFileError, read_json
from rehearsal_torch.files.package_paths import commit
from rehearsal_torch.user_error import UserError
from reproduction.commits import check_clean

OUT = Path("docs/results/scale")
PACKAGES = ("rehearsal-torch", "torch", "lightning", "numpy", "scipy", "joblib", "distributed", "submitit")


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the command line and measures."""
    parser = argparse.ArgumentParser(description="What engines cost on this machine")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=1, help="how often ways are compared, at least 1")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that all rows work")
    parser.add_argument("--page", action="store_true", help="write README.md again from scale.json, alone")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(arguments)
    parts = asked.parts.split(",")
    if not set(parts) <= set(PARTS):
        raise SystemExit(f"--parts: expected some of {', '.join(PARTS)}; got {asked.parts}")
    if asked.rounds < 1:
        raise SystemExit(f"--rounds: expected at least 1; got {asked.rounds}")
    if asked.small and asked.out == OUT:
        raise SystemExit("--small: its figures mean nothing: choose another --out than docs/results/scale")
    try:
        if asked.page:
            write_text(asked.out / "README.md", page(read_json(asked.out / "scale.json")))
            return
        check_clean(asked.out)
        chosen = [row for row in rows(SMALL if asked.small else FULL) if row.part in parts]
        record(asked.out, chosen, asked.rounds)
    except (UserError, PlainFileError) as error:
        raise SystemExit(str(error)) from None


def record(out: Path, chosen: Sequence[Row], rounds: int) -> dict[str, Any]:
    """Measures what scale.json lacks.

    Args:
        out: The folder.
        chosen: The rows.
        rounds: How often rows that are repeated are measured.

    Returns:
        The content of scale.json.

    Raises:
        PlainFileError: if an existing scale.json is damaged.
        UserError: if a command fails.
    """
    make_folder(out)
    path, facts = out / "scale.json", origin()
    before = read_json(path) if path.exists() else {}
    same = all(before.get(name) == facts[name] for name in ("commit", "processor", "versions"))
    content = before if same and isinstance(before.get("rows"), dict) else facts | {"rows": {}}
    for number, (place, row) in product(range(rounds), enumerate(chosen, 1)):
        kept = content["rows"].get(row.key, {"part": row.part, "name": row.name, "rounds": []})
        if len(kept["rounds"]) > number or (number and not row.repeated):
            continue
        began = seconds_taken()
        with tempfile.TemporaryDirectory() as folder:
            same_always, measured = row.measure(Path(folder).resolve())
        wall, all_of_them, own = (now - before for now, before in zip(seconds_taken(), began, strict=True))
        others = max(0.0, all_of_them - own) / (wall * (os.cpu_count() or 1))
        spent = round(wall, 1)
        measured = {"seconds": spent, "others": round(others, 3), "measured": measured}
        content["rows"][row.key] = kept | same_always | {"rounds": [*kept["rounds"], measured]}
        write_text(path, json.dumps(content, indent=1) + "\n")
        print(f"round {number + 1}, {place:2d}/{len(chosen)} {row.key:75} {spent:6.1f} s", flush=True)
    write_text(path, json.dumps(content, indent=1) + "\n")
    write_text(out / "README.md", page(content))
    return content


def seconds_taken() -> tuple[float, float, float]:
    """Seconds of the clock, CPU seconds of the machine, and those of this command and its ended processes."""
    times, own = psutil.cpu_times(), os.times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    # Linux counts the seconds of guests among those of users as well.
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return time.perf_counter(), sum(times) - idle - guests, sum(own[:4])


def origin() -> dict[str, Any]:
    """Where the rows come from: commit, versions, processor."""
    return {
        "command": "python benchmarks/engines.py",
        "commit": commit(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "processor": processor(),
        "cores": os.cpu_count(),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
