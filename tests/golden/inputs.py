"""Tables and tasks that the runs read, each drawn from a fixed seed."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from rehearsal_torch.problems.world_size import SampleSize

RATES: dict[str, Any] = {
    "graph": ["x -> {u z y}", "u -> {z y}", "z -> y"],
    "context": ["x"],
    "box": {"z": [0, 1]},
    "region": "0.4 <= y <= 1.1",
}
RATE_CASES = [{"x": 0.3}, {"x": 0.6}, {"x": 0.9}]
STAYS: dict[str, Any] = {
    "graph": ["ward -> {smoker severity}", "smoker -> severity"],
    "context": ["ward"],
    "box": {"smoker": {"values": ["no", "yes"]}},
    "region": "severity <= medium",
    "codings": {
        "smoker": ["no", "yes"],
        "severity": ["low", "medium", "high"],
        "ward": {"classes": ["A", "B", "C"], "reference": "A"},
    },
}
CHOICE: dict[str, Any] = {
    "graph": ["old -> {treatment status}", "treatment -> status"],
    "context": ["old"],
    "box": {"treatment": {"values": ["A", "B", "C"]}},
    "region": "status in {well, mild}",
    "codings": {
        "treatment": {"classes": ["A", "B", "C"], "reference": "A"},
        "status": {"classes": ["ill", "mild", "well"]},
    },
}
TWO_STAGES: dict[str, Any] = {
    "graph": ["x -> {a v y}", "a -> {v y}", "v -> {b y}", "b -> y"],
    "context": ["x"],
    "box": {"a": [-1, 1], "b": [-1, 1]},
    "region": "y >= 1",
    "candidates": [["a", "b"]],
}
CURRENT = """
data: table.csv
variables:
  x: context
  u: other
  z: {role: action, range: [0, 1]}
  y: outcome
graph: ["x -> {u z y}", "u -> {z y}", "z -> y"]
desired: 0.4 <= y <= 1.1
cases: [{x: 0.3, z: 0.2}, {x: 0.6, z: 0.5}, {x: 0.9, z: 0.9}]
bounds: {z: [current - 0.2, current + 0.2]}
"""
TRIALS: dict[str, Any] = {
    "graph": {"parents": {"X": ["a0", "a1"], "Y": ["X"]}},
    "actions": {"a0": [0, 1], "a1": [0, 1]},
    "reward": "Y",
}
TRIALS_FILE = """
question: trials
data: experiments.csv
variables:
  a0: {role: action, range: [0, 1]}
  a1: {role: action, range: [0, 1]}
  X: other
  Y: outcome
graph: ["{a0 a1} -> X", "X -> Y"]
"""


def rates(rows: int = 200) -> pd.DataFrame:
    """Context x, covariate u, action z and outcome y, linear."""
    random = np.random.default_rng(0)
    x, u, free = random.random((3, rows))
    z = 0.5 * x + 0.3 * u + 0.8 * free
    return pd.DataFrame(
        {"x": x, "u": u, "z": z, "y": 0.4 * x + 0.2 * u + 0.6 * z + 0.1 * random.normal(size=rows)}
    )


def holed(rows: int = 200) -> pd.DataFrame:
    """The rates, of which a tenth of the cells of u and z is empty."""
    frame, random = rates(rows), np.random.default_rng(1)
    for name in ("u", "z"):
        frame.loc[random.random(rows) < 0.1, name] = np.nan
    return frame


def stays(rows: int = 200) -> pd.DataFrame:
    """Texts: a class as context, yes or no as action, an order as outcome."""
    random = np.random.default_rng(2)
    ward = random.choice(["A", "B", "C"], rows, p=[0.5, 0.3, 0.2])
    smoker = np.where(random.random(rows) < 0.4 + 0.2 * (ward == "B"), "yes", "no")
    worse = (ward == "C") + 1.5 * (smoker == "yes") + random.normal(size=rows)
    severity = np.select([worse < 0.5, worse < 2], ["low", "medium"], "high")
    return pd.DataFrame({"ward": ward, "smoker": smoker, "severity": severity})


def patients(rows: int = 400) -> pd.DataFrame:
    """A treatment of three classes, of which B helps the young and C the old."""
    random = np.random.default_rng(3)
    old = random.integers(0, 2, rows)
    treatment = random.choice(["A", "B", "C"], rows)
    helped = (treatment == np.where(old, "C", "B")) + random.normal(0, 0.7, rows)
    status = np.select([helped < 0, helped < 1], ["ill", "mild"], "well")
    return pd.DataFrame({"old": old, "treatment": treatment, "status": status})


def overlapping(rows: int = 1000) -> pd.DataFrame:
    """A covariate that nearly determines the action; the outcome is best where the action is usual."""
    random = np.random.default_rng([1, 11])
    x = random.normal(0, 1, rows)
    u = 0.3 * x + random.normal(0, 1, rows)
    a = u + 0.5 * x + random.normal(0, 0.15, rows)
    y = -1.2 * (a - u - 0.5 * x) ** 2 + 0.3 * random.normal(0, 1, rows)
    return pd.DataFrame({"x": x, "u": u, "a": a, "y": y})


def two_stages(rows: int = 300) -> pd.DataFrame:
    """Actions a and b, of which b was chosen by what had followed a."""
    random = np.random.default_rng(5)
    x, a, noise, free, rest = random.normal(size=(5, rows))
    a = np.clip(0.4 * x + 0.5 * a, -1, 1)
    v = 0.5 * x + a + 0.4 * noise
    b = np.clip(0.5 * v + 0.5 * free, -1, 1)
    y = 0.4 * x + 0.3 * a + 0.6 * v + b + 0.3 * rest
    return pd.DataFrame({"x": x, "a": a, "v": v, "b": b, "y": y})


def experiments(rows: int) -> pd.DataFrame:
    """Actions a0 and a1, a node X and the reward Y."""
    random = np.random.default_rng(4)
    first, second = random.random((2, rows))
    node = first + second + 0.05 * random.normal(size=rows)
    reward = -((node - 1.2) ** 2) + 0.02 * random.normal(size=rows)
    return pd.DataFrame({"a0": first, "a1": second, "X": node, "Y": reward})


def world(kind: Any, rows: int, cases: int, **settings: Any) -> tuple[Any, Any, list[dict[str, float]]]:
    """Observations, task and contexts of one of the package's worlds, by seed 0."""
    made = kind(size=SampleSize(rows=rows, contexts=cases), seed=0, **settings)
    given = [{name: float(each) for name, each in made.case(i).given.items()} for i in range(cases)]
    return made.observations(), made.task, given


def written(**files: Any) -> None:
    """Writes files into the working folder: ``table_csv`` is table.csv; frames, mappings and texts."""
    for name, content in files.items():
        path = Path(".".join(name.rsplit("_", 1)))
        if isinstance(content, pd.DataFrame):
            content.to_csv(path, index=False)
        else:
            text = content if isinstance(content, str) else yaml.safe_dump(content)
            path.write_text(text, encoding="utf-8")
