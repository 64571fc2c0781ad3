"""Small runs of every kind of question, as they are typed, each with a page.

A run is what stands behind ``rehearsal decide``, and what writes its files. Models are small and few, so that
each takes seconds: the pages are looked at, not the numbers.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from rehearsal_torch.console_command import main
from rehearsal_torch.console_command import run as run_verb
from tests.places import PUBLISHED_SEPSIS

ROWS = 160
KETTLES: dict[str, Any] = {
    "data": "kettles.csv",
    "variables": {
        "hardness": {"role": "context", "unit": "mg/l"},
        "maker": {"role": "context", "kind": "categorical"},
        "heat": {"role": "action", "range": [0, 8], "unit": "kW"},
        "descaled": {"role": "action", "kind": "binary"},
        "minutes": {"role": "outcome", "unit": "min"},
        "boiled": {"role": "outcome", "kind": "binary"},
    },
    "graph": ["{hardness maker} -> {heat descaled minutes boiled}", "{heat descaled} -> {minutes boiled}"],
    "desired": ["minutes <= 6", "boiled = yes"],
    "cases": [
        {"hardness": 140, "maker": "Aba", "heat": 3, "descaled": "no"},
        {"hardness": 260, "maker": "Cor", "heat": 5, "descaled": "yes"},
    ],
}
TASK = {
    "graph": {"parents": {"heat": ["hardness"], "minutes": ["hardness", "heat"]}},
    "context": ["hardness"],
    "box": {"heat": [0, 8]},
    "region": {"minutes": [None, 6]},
}
BREWS = {
    "question": "trials",
    "data": "brews.csv",
    "variables": {
        "grind": {"role": "action", "range": [0, 1]},
        "dose": {"role": "action", "levels": [14, 16, 18], "unit": "g"},
        "flow": {"role": "other", "unit": "ml/s"},
        "taste": "outcome",
    },
    "graph": ["grind -> flow", "{flow dose} -> taste"],
    "reward": "taste",
    "method": "ucb",
}


def kettles(folder: Path, about: Mapping[str, object] | None = None, **parts: object) -> None:
    """A table of kettles that somebody heated, and a problem file about them.

    Args:
        folder: Where they are written.
        about: What is said of some variables in place of `KETTLES`.
        parts: Parts of the file in place of those of `KETTLES`, and further ones.
    """
    random = np.random.default_rng(7)
    hardness, heat = random.normal(200, 40, ROWS).round(1), random.uniform(0, 8, ROWS).round(2)
    maker, descaled = random.choice(["Aba", "Bel", "Cor"], ROWS), random.choice(["no", "yes"], ROWS)
    minutes = 9 + 0.01 * hardness - 0.9 * heat - 1.5 * (descaled == "yes") + random.normal(0, 1, ROWS)
    columns = {"hardness": hardness, "maker": maker, "heat": heat, "descaled": descaled, "minutes": minutes}
    boiled = np.where(minutes + random.normal(0, 1, ROWS) < 6, "yes", "no")
    pd.DataFrame({**columns, "boiled": boiled}).to_csv(folder / "kettles.csv", index=False)
    variables = {**KETTLES["variables"], **(about or {})}
    problem = {**KETTLES, "variables": variables, **parts}
    (folder / "problem.yaml").write_text(yaml.safe_dump(problem, sort_keys=False))


def priced(folder: Path) -> None:
    """The same with costs of changes, and what a desired outcome is worth."""
    prices = {
        "heat": {"role": "action", "range": [0, 8], "unit": "kW", "cost": 0.2},
        "descaled": {"role": "action", "kind": "binary", "cost": {"no": 0, "yes": 0.5}},
    }
    kettles(folder, prices, worth=10)


def answered(folder: Path) -> None:
    """The same with an outcome that is yes or no, and a method for such outcomes."""
    kettles(folder, {"minutes": "other"}, desired="boiled = yes", method="outcome_regression")


def own_table(folder: Path) -> None:
    """The same table, a task, and cases in a file of their own."""
    kettles(folder)
    (folder / "task.yaml").write_text(yaml.safe_dump(TASK))
    (folder / "cases.csv").write_text("kettle,hardness\nk1,150\nk2,320\n")


def brews(folder: Path) -> None:
    """Experiments with coffee, and a problem file that asks for the next one."""
    random = np.random.default_rng(8)
    grind, dose = random.uniform(0, 1, 9).round(3), random.choice([14, 16, 18], 9)
    flow = (3 - 2 * grind + 0.1 * random.normal(size=9)).round(3)
    taste = (8 - (flow - 1.8) ** 2 - 0.1 * (dose - 17) ** 2 + 0.1 * random.normal(size=9)).round(3)
    table = pd.DataFrame({"grind": grind, "dose": dose, "flow": flow, "taste": taste})
    table.to_csv(folder / "brews.csv", index=False)
    (folder / "problem.yaml").write_text(yaml.safe_dump(BREWS, sort_keys=False))


def machines(folder: Path) -> None:
    """Machines that wear, and a problem file that asks for their service, step by step."""
    assert run_verb("prepare", ["machines", f"out={folder}", "machines=60", "seed=3"]) == 0


def nothing(folder: Path) -> None:
    """No files: the world is part of the package."""


FEW = ("dataset.size.rows=60", "dataset.size.contexts=2")
OPTIMISED = ("search.screened=16", "search.starts=5", "search.steps=8", "objective.draws=8")
Files = Callable[[Path], None]
RUNS: dict[str, tuple[Files, tuple[str, ...]]] = {
    "rehearsal": (nothing, ("+experiment=auf", "dataset=market", *FEW)),
    "costs": (priced, ("problem.yaml",)),
    "own_table": (
        own_table,
        (
            "kettles.csv",
            "+experiment=own_table",
            "decision=care",
            "dataset.task=task.yaml",
            "dataset.contexts=cases.csv",
            "dataset.identity=kettle",
        ),
    ),
    "yes_no": (answered, ("problem.yaml",)),
    "sequence": (machines, ("problem.yaml", "limit=3")),
    "trials": (brews, ("problem.yaml", *OPTIMISED)),
    "world_trials": (nothing, ("+experiment=cbo", "dataset=dropwave", "limit=2", *OPTIMISED)),
    "sepsis": (
        nothing,
        (
            "+experiment=sepsis",
            f"checkpoint={PUBLISHED_SEPSIS}",
            "reward=linear",
            "dataset.patients=80",
            "limit=2",
        ),
    ),
    "online": (nothing, ("+experiment=two_stores", "limit=3", "decision=micns_online")),
}


def run(name: str, folder: Path) -> Path:
    """Runs one of `RUNS` in an empty folder that is the current one; its run folder.

    Raises:
        AssertionError: if the command fails.
    """
    files, typed = RUNS[name]
    files(folder)
    where = folder / "run"
    quiet = ("workers=1", "trainer.progress=false", "out=run")
    assert main(["decide", *typed, *quiet]) == 0
    return where


def compared(folder: Path) -> Path:
    """Two runs in the same world by two methods; a page that compares them."""
    for decision in ("none", "care"):
        typed = ["+experiment=auf", "dataset=market", *FEW, f"decision={decision}", "workers=1"]
        assert main(["decide", *typed, f"out={decision}"]) == 0
    assert main(["report", "none", "care", "out=compared.html"]) == 0
    return folder / "compared.html"
