"""The files that pages name, as stand-ins in one folder: tables, tasks, cases, trials, checkpoints."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from rehearsal_torch.console_command import run
from tests.places import ROOT
from tests.toys.linear_truth import chain

TASK = """
graph: {parents: {a: [x], m: [a], y: [m, x]}}
context: [x]
box: {a: [-1, 1], m: [-1, 1]}
region: {y: [1, 2]}
"""
EXPERIMENTS = {
    "graph": {"parents": {"temperature": ["valve"], "yield": ["temperature", "dose"]}},
    "actions": {"valve": [0, 1], "dose": [0, 5]},
    "reward": "yield",
}
PROBLEM = """
data: table.csv
variables: {x: context, a: {role: action, range: [-1, 1]}, m: {role: action, range: [-1, 1]}, y: outcome}
graph: [x -> a, x -> y, a -> m -> y]
desired: 1 <= y <= 2
cases: cases.csv
"""
# A run that was killed, as pages name it, and what it was started with.
KILLED, STARTED = "runs/sepsis/2026-11-21_10-00-00", ["+experiment=sepsis"]


def system(action: dict[str, float]) -> dict[str, float]:
    """Somebody's experiment."""
    temperature = action["valve"] - 0.3
    return {"temperature": temperature, "yield": -(temperature**2) + 0.1 * action["dose"]}


def laid_out(folder: Path) -> Path:
    """Fills a folder with the files that pages name.

    Args:
        folder: An empty folder.

    Returns:
        The same folder.
    """
    rows = chain().table(60)
    _table(folder / "table.csv", rows.names, rows.values)
    pd.read_csv(folder / "table.csv").to_parquet(folder / "rows.parquet")
    opened = sqlite3.connect(folder / "shop.db")
    pd.DataFrame({"season": [1, 2], "price": [9.5, 8], "sales": [30, 45]}).to_sql(
        "weeks", opened, index=False
    )
    opened.close()
    (folder / "cases.csv").write_text("x\n0.1\n-0.4\n")
    (folder / "task.yaml").write_text(TASK)
    (folder / "problem.yaml").write_text(PROBLEM)
    tried = [{"valve": place / 6, "dose": (2.5 * place) % 5} for place in range(6)]
    told = [{**each, **system(each)} for each in tried]
    lines = [",".join(told[0]), *(",".join(map(repr, row.values())) for row in told)]
    (folder / "experiments.csv").write_text("\n".join(lines) + "\n")
    (folder / "checkpoints").symlink_to(ROOT / "checkpoints")
    run("prepare", ["machines", f"out={folder / 'machines'}", "machines=60"])
    pd.read_csv(folder / "machines/machines.csv").to_parquet(folder / "machines/machines.parquet")
    return folder


def with_stores(folder: Path) -> None:
    """Puts a table of two stores in the place of table.csv: season, two prices, customers."""
    draws = torch.randn(200, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    season = draws[:, 0]
    ours, theirs = season + draws[:, 1], 0.5 * season + draws[:, 2]
    customers = theirs - ours + draws[:, 3]
    names = ("season", "ours", "theirs", "customers")
    _table(folder / "table.csv", names, torch.stack([season, ours, theirs, customers], -1))


def with_killed_run(folder: Path) -> None:
    """Adds what the configuration of a killed run is read from; nothing that a run goes on with."""
    run = folder / KILLED
    run.mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"script": "train", "overrides": STARTED}))
    (run / "config.yaml").write_text("name: sepsis\n")


def _table(path: Path, names: Sequence[str], values: Tensor) -> None:
    lines = [",".join(names), *(",".join(map(repr, row)) for row in values.tolist())]
    path.write_text("\n".join(lines) + "\n")
