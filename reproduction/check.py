"""Whether rows that are kept in git come out again: ``python -m reproduction.check [auf cbo ...] [seed=0]``.

For each paper five rows are drawn by the seed from its CSV files in ``docs/results``; the jobs that they
belong to are run again, and the rows are compared cell by cell, apart from seconds. Numbers are equal where
they agree in five digits. Left out are methods whose rows are stale, as study.yaml says, and the cohort of
sepsis patients, whose rows were made by version 0.1 from uncommitted code. Exit codes: 0 all rows are equal;
1 some are not; 2 there is no such paper.
"""

import csv
import importlib
import math
import random
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rehearsal_torch.files.csv_rows import as_written
from rehearsal_torch.files.package_paths import checkout
from reproduction.plan import AXES, Job, jobs, study
from reproduction.record import unpack
from reproduction.run import Paper, defaults

PAPERS = ("auf", "calibration", "cbo", "online")
ROWS = 5
# Cells that differ from run to run.
TIMED = ("seconds", "fit_seconds", "decision_seconds")


@dataclass(frozen=True)
class Drawn:
    """A row of a paper that is kept in git.

    Attributes:
        job: The job that made it.
        place: Its place among the rows of the job.
        row: Column to text.
        commit: The commit at which it was made; empty if unknown.
    """

    job: Job
    place: int
    row: Mapping[str, str]
    commit: str = ""


def paper_of(name: str) -> Paper:
    """A paper by the name of its module."""
    found: Paper = importlib.import_module(f"reproduction.{name}.documents").PAPER
    return found


def drawn(name: str, seed: int, count: int = ROWS, **only: Sequence[str]) -> list[Drawn]:
    """Rows of a paper, drawn from all rows that are kept in git.

    Args:
        name: The paper.
        seed: The seed of the draw.
        count: The number of rows.
        only: Column to the values to which the draw is restricted.
    """
    root = checkout()
    assert root is not None, "results are kept in a checkout alone"
    paper, options = paper_of(name), defaults(name)
    found: list[Drawn] = []
    with TemporaryDirectory() as folder:
        kept = Path(shutil.copytree(root / options["out"], Path(folder) / "kept"))
        unpack(kept)
        seen: set[str] = set()
        for stage, layout in paper.layouts(options).items():
            if layout.file in seen:
                continue
            seen.add(layout.file)
            record = paper.record(kept, options, stage)
            stages = [each for each, other in paper.layouts(options).items() if other.file == layout.file]
            rows = record.rows(stage)
            known = _jobs(name, stages, sorted({int(row[layout.key[-1]]) for row in rows}))
            counts: dict[tuple[str, ...], int] = {}
            for row in rows:
                key = tuple(stage if column == "stage" else row.get(column, "") for column in layout.key)
                counts[key] = counts.get(key, 0) + 1
                wanted = all(row[column] in values for column, values in only.items())
                if wanted and key in known and known[key].method not in study(name).get("stale", ()):
                    commit = record.lines[key].get("commit", "")
                    found.append(Drawn(known[key], counts[key] - 1, row, commit))
    return random.Random(seed).sample(found, min(count, len(found)))


def _jobs(name: str, stages: Sequence[str], seeds: Sequence[int]) -> dict[tuple[str, ...], Job]:
    """Key to job, for all worlds, methods and settings of a paper that the stages could have."""
    content = study(name)
    names = {axis: list(content.get(axis, ())) for axis in AXES}
    return {job.key: job for stage in stages for job in jobs(content, stage, seeds, **names)}


def again(name: str, rows: Sequence[Drawn]) -> list[str]:
    """The rows whose cells differ when their jobs are run again, each in a sentence.

    Args:
        name: The paper.
        rows: Rows that are kept in git.
    """
    paper, options = paper_of(name), defaults(name)
    found = []
    for job in dict.fromkeys(each.job for each in rows):
        layout = paper.layouts(options)[job.stage]
        made, _ = paper.compute(options, job)
        texts = layout.written(made, head=True).splitlines()
        remade = [{name: as_written(text) for name, text in row.items()} for row in csv.DictReader(texts)]
        for each in rows:
            if each.job == job:
                differing = _differing(each.row, remade[each.place])
                named = f"{' '.join(filter(None, job.key))}, row {each.place}"
                print(f"{named}: {differing or 'equal'}", flush=True)
                if differing:
                    found.append(f"{named}, made at {each.commit[:12]}: {differing}")
    return found


def _differing(kept: Mapping[str, str], remade: Mapping[str, str]) -> str:
    names = [name for name in remade if name not in TIMED and name in kept]
    pairs = {name: (kept[name], remade[name]) for name in names if not _equal(kept[name], remade[name])}
    return ", ".join(f"{name} {before} is now {now}" for name, (before, now) in pairs.items())


def _equal(kept: str, remade: str) -> bool:
    try:
        return kept == remade or math.isclose(float(kept), float(remade), rel_tol=1e-5, abs_tol=1e-9)
    except ValueError:
        return False


def main(typed: Sequence[str] | None = None) -> int:
    """The command: names of papers, and optionally ``seed=0``; all papers if none is named."""
    words = list(sys.argv[1:] if typed is None else typed)
    seed = next((int(word.removeprefix("seed=")) for word in words if word.startswith("seed=")), 0)
    names = [word for word in words if not word.startswith("seed=")] or list(PAPERS)
    odd = [name for name in names if name not in PAPERS]
    if odd:
        print(f"there is no {odd[0]}: choose from {', '.join(PAPERS)}", file=sys.stderr)
        return 2
    differing = {name: again(name, drawn(name, seed)) for name in names}
    for name, lines in differing.items():
        print(f"{name}: {ROWS - len(lines)} of {ROWS} rows are equal")
    return 1 if any(differing.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
