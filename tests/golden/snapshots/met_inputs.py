"""Inputs of the kinds that people meet: small tables and problem files about an orchard, made here.

Each is right but for one thing, and what happens to it today is recorded, right or wrong.
"""

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

ROWS = 220
ORCHARD: dict[str, Any] = {
    "data": "orchard.csv",
    "variables": {"soil": "context", "water": {"role": "action", "range": [1, 19]}, "loss": "outcome"},
    "graph": ["soil -> {water loss}", "water -> loss"],
    "desired": "loss <= 35",
    "cases": [{"soil": 31}],
}
TASTED: dict[str, Any] = {
    "question": "trials",
    "data": "tasted.csv",
    "variables": {"ripe": {"role": "action", "levels": [2, 5]}, "taste": "outcome"},
    "graph": ["ripe -> taste"],
    "reward": "taste",
}
PRESSES: dict[str, Any] = {
    "question": "sequence",
    "data": "presses.csv",
    "unit": "press",
    "time": "month",
    "variables": {"load": "state", "lever": {"role": "action", "levels": ["low", "mid", "top"]}},
    "reward": {"weights": {"load": 0.2}},
}


def orchard(**columns: Callable[[pd.DataFrame], Any]) -> pd.DataFrame:
    """Trees, whose loss grows with the soil and falls with water; further columns are made of these."""
    random = np.random.default_rng(17)
    soil, water = random.normal(30, 6, ROWS), random.uniform(0, 20, ROWS)
    loss = 25 + soil - 1.4 * water + random.normal(0, 5, ROWS)
    table = pd.DataFrame({"soil": soil, "water": water, "loss": loss}).round(2)
    for name, made in columns.items():
        table[name] = made(table)
    return table


def presses(months: pd.Index, units: int = 36) -> pd.DataFrame:
    """Presses with a load and a lever for each of some months."""
    random, rows = np.random.default_rng(19), units * len(months)
    load = random.uniform(10, 70, rows).round(2)
    lever = random.choice(["low", "mid", "top"], rows)
    each = np.repeat(np.arange(units), len(months))
    return pd.DataFrame({"press": each, "month": np.tile(months, units), "load": load, "lever": lever})


def _written(folder: Path, problem: dict[str, Any], table: pd.DataFrame | None) -> None:
    if table is not None:
        table.to_csv(folder / problem["data"], index=False)
    text = yaml.safe_dump(problem, sort_keys=False, allow_unicode=True)
    (folder / "problem.yaml").write_text(text, encoding="utf-8")


def _trees(folder: Path, table: pd.DataFrame, about: dict[str, Any] | None = None, **parts: Any) -> None:
    variables = {**ORCHARD["variables"], **(about or {})}
    _written(folder, {**ORCHARD, "variables": variables, **parts}, table)


def _every(column: str, step: int, value: float) -> Callable[[pd.DataFrame], Any]:
    return lambda table: table[column].where(table.index % step != 0, value)


def _latent(folder: Path) -> None:
    (folder / "orchard.dot").write_text(
        'digraph {\n soil -> water; soil -> loss; water -> loss;\n Bug [label="Not measured"];\n'
        " Bug -> water; Bug -> loss;\n}\n"
    )
    _trees(folder, orchard(), graph="orchard.dot")


def _same_every_time(folder: Path) -> None:
    random = np.random.default_rng(23)
    table = pd.DataFrame({"heat": random.uniform(5, 45, 10), "days": random.uniform(1, 9, 10)}).round(1)
    table["sugar"], table["taste"] = (table.heat / 10 + table.days).round(2), 4.0
    actions = {"heat": {"role": "action", "range": [5, 45]}, "days": {"role": "action", "range": [1, 9]}}
    variables = {**actions, "sugar": "other", "taste": "outcome"}
    graph = ["{heat days} -> sugar", "sugar -> taste"]
    _written(folder, {**TASTED, "variables": variables, "graph": graph}, table)


def _mixture(folder: Path) -> None:
    juices = ("apple", "pear", "quince")
    variables = {**{name: {"role": "action", "range": [0, 1]} for name in juices}, "taste": "outcome"}
    problem = {**TASTED, "variables": variables, "graph": [f"{{{' '.join(juices)}}} -> taste"]}
    total = " + ".join(juices)
    _written(folder, {key: each for key, each in problem.items() if key != "data"}
             | {"limits": [f"{total} <= 1", f"{total} >= 1"]}, None)  # fmt: skip


def _two_ripe(folder: Path) -> None:
    random = np.random.default_rng(29)
    taste = (6 + 0.3 * random.normal(size=10)).round(2)
    _written(folder, TASTED, pd.DataFrame({"ripe": [2, 5] * 5, "taste": taste}))


def _decomposed(folder: Path) -> None:
    text = yaml.safe_dump(ORCHARD, sort_keys=False).replace("soil", "säure")
    table = orchard().rename(columns={"soil": unicodedata.normalize("NFD", "säure")})
    _written(folder, yaml.safe_load(text), table)


def _collinear(folder: Path) -> None:
    table = orchard()
    table["water"], table["loss"] = 0.5 * table.soil, 60 - table.soil
    _trees(folder, table, graph="learn")


def _named_by_month(folder: Path, **parts: Any) -> None:
    months = pd.date_range("2021-10-01", periods=7, freq="MS").strftime("%Y-%m-%d")
    _written(folder, {**PRESSES, **parts}, presses(months))


KINDS = np.array(["ash", "Oak", "oak", "ash", "elm"])
WITH_KIND = {"kind": {"role": "context", "kind": "categorical"}}
MET: dict[str, Callable[[Path], None]] = {
    "after the action": lambda folder: _trees(
        folder, orchard(sap=lambda table: (2 * table.water + table.soil / 9).round(2)), {"sap": "context"},
        graph=["soil -> {water loss}", "water -> sap", "{water sap} -> loss"],
        cases=[{"soil": 31, "sap": 12}],
    ),
    "a case says true": lambda folder: _trees(
        folder, orchard(shaded=lambda table: table.index % 3 == 0),
        {"shaded": {"role": "context", "kind": "binary"}},
        graph=["{soil shaded} -> {water loss}", "water -> loss"], cases=[{"soil": 31, "shaded": True}],
    ),
    "a class written in two ways": lambda folder: _trees(
        folder, orchard(kind=lambda table: KINDS[table.index % 5]), WITH_KIND,
        graph=["{soil kind} -> {water loss}", "water -> loss"], cases=[{"soil": 31, "kind": "oak"}],
    ),
    "collinear columns": _collinear,
    "front door": lambda folder: _trees(
        folder, orchard(uptake=lambda table: (0.6 * table.water + 1).round(2)), {"uptake": "other"},
        graph=["soil -> {water loss}", "water -> uptake -> loss", "water <-> loss"],
    ),
    "a header in decomposed letters": _decomposed,
    "a hidden node of a graph file": _latent,
    "missing written as -99": lambda folder: _trees(folder, orchard(loss=_every("loss", 11, -99.0))),
    "missing written as -1": lambda folder: _trees(folder, orchard(loss=_every("loss", 13, -1.0))),
    "mixture of three": _mixture,
    "months": _named_by_month,
    "months of 31 days": lambda folder: _named_by_month(folder, step=31),
    "reward without variation": _same_every_time,
    "rows three times": lambda folder: _trees(folder, pd.concat([orchard()] * 3)),
    "thousands with a comma": lambda folder: _trees(
        folder, orchard(loss=lambda table: [f"{1000 * each:,.1f}" for each in table.loss]),
        desired="loss <= 35000",
    ),
    "two settings that are equal": _two_ripe,
}  # fmt: skip
