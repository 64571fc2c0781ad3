"""The problem and task files of docs, examples and tests, and what each is read to, as plain data.

Problem files are read beside the tables that they name; those in pages, which name tables that are not there,
beside tables that are made of what they say of their variables. Tasks in the Python blocks of pages are found
by their keys.
"""

import ast
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import yaml

from rehearsal_torch.data.problem_file.cases_builder import written_problem
from rehearsal_torch.data.problem_file.variable_kinds import costs
from rehearsal_torch.problems.cases.user_table import written_task
from rehearsal_torch.problems.sequences.sequence_file import sequence_problem
from rehearsal_torch.problems.trials.trials_file import trials_problem
from rehearsal_torch.problems.trials.user_experiments import causal_task
from tests.golden.snapshots.plain_calls import places
from tests.house.desk import EXPERIMENTS, PROBLEM, TASK
from tests.places import ROOT


def cases_problem(path: Path) -> Any:
    """A problem of cases, its task as plain data."""
    found = written_problem(path)
    names = "task rows cases identity ranges bounds from_present variables costs gaps method codings graphs"
    parts = {**vars(found.form), **vars(found), "from_present": found.from_present}
    parts |= {
        "task": found.task.to_plain(),
        "costs": costs(found.form.variables),
        "codings": found.task.coded,
    }
    return {name: parts[name] for name in names.split() if _said(parts[name])}


READERS: dict[str, Callable[[Any], Any]] = {
    "cases": cases_problem,
    "sequence": sequence_problem,
    "trials": trials_problem,
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FIXTURES = ROOT / "tests" / "fixtures" / "problem_files"
_BLOCK = re.compile(r"```(yaml|python)\n(.*?)```", re.DOTALL)
# What a problem or a task has beside its graph.
_ASKING = {"actions", "context", "reward", "variables"}
_ROWS = 48
# What is not of the content: where faults are collected, and where files lie.
_ASIDE = {"file", "findings", "found", "source", "where"}
_DIGITS = 6
# Of longer lists, such as one entry for each row, the length is told.
_LONGEST = 40


def plain(value: Any) -> Any:
    """A value as data of YAML: records as their fields, tables as columns and numbers of rows."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return {name: plain(each) for name, each in fields.items() if name not in _ASIDE and _said(each)}
    if isinstance(value, pd.DataFrame):
        return {"rows": len(value), "columns": [str(name) for name in value.columns]}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, torch.Tensor | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset) and len(value) > _LONGEST:
        return f"{len(value)} entries"
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, str):
        return value.replace(f"{ROOT}/", "")
    return value if value is None or isinstance(value, bool | int) else _other(value)


def _said(value: Any) -> bool:
    return value is not None and not (isinstance(value, Mapping | tuple | list) and not len(value))


def _other(value: Any) -> Any:
    try:
        fields = value.model_dump(exclude_none=True, exclude_defaults=True)
    except AttributeError:
        return type(value).__name__
    return plain(fields)


def read_to(read: Callable[[Any], Any], given: Any, here: Path) -> Any:
    """What something is read to, or the places that the refusal names."""
    try:
        return plain(read(given))
    except (ValueError, OSError) as error:
        return {"refused": places(str(error), here)}


def problem_files() -> Iterator[tuple[str, Path]]:
    """Name and path of every problem file that has its tables beside it."""
    for path in (*sorted((ROOT / "examples").glob("*/problem.yaml")), *sorted(FIXTURES.glob("*.yaml"))):
        yield path.relative_to(ROOT).as_posix(), path


def problem(path: Path) -> Any:
    """What a problem file is read to."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    question = content.get("question", "cases") if isinstance(content, dict) else "cases"
    return read_to(READERS.get(question, cases_problem), path, path.parent)


def blocks() -> Iterator[tuple[str, Any]]:
    """Name and content of every problem and task in a page, and of those that tests put beside pages."""
    for page in PAGES:
        for place, (kind, text) in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8"))):
            found = [yaml.safe_load(text)] if kind == "yaml" and "\n# my_" not in text else []
            found += list(_written_out(text)) if kind == "python" else []
            for number, each in enumerate(found):
                if isinstance(each, dict) and "graph" in each and _ASKING & set(each):
                    yield f"{page.name}, block {place}" + (f", {number}" if number else ""), each
    yield from (("desk, problem", yaml.safe_load(PROBLEM)), ("desk, task", yaml.safe_load(TASK)))
    yield "desk, experiments", EXPERIMENTS


def _written_out(text: str) -> Iterator[Any]:
    for node in ast.walk(ast.parse(text)):
        keys = (
            {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if isinstance(node, ast.Dict)
            else ()
        )
        if "graph" in keys:
            try:
                yield ast.literal_eval(node)
            except ValueError:
                # It names what stands elsewhere in the block.
                continue


def block(content: Mapping[str, Any], folder: Path) -> Any:
    """What the content of a block is read to, in an empty folder.

    Args:
        content: A problem, a task of rehearsal or a task of trials, or a part of one.
        folder: The folder.
    """
    if "variables" in content:
        if isinstance(content.get("data"), str):
            table(content).to_csv(folder / content["data"], index=False)
        if isinstance(content.get("cases"), str):
            table(content).head(2).to_csv(folder / content["cases"], index=False)
        file = folder / "problem.yaml"
        file.write_text(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True), encoding="utf-8")
        return read_to(READERS[content.get("question", "cases")], file, folder)
    return read_to(causal_task if {"actions", "reward"} & set(content) else written_task, content, folder)


def table(content: Mapping[str, Any]) -> pd.DataFrame:
    """A table with a column for each variable of a problem, of the kind that the problem says."""
    random, columns = np.random.default_rng(0), dict[str, Any]()
    units = [content[key] for key in ("unit", "time") if key in content]
    for place, name in enumerate(units):
        columns[name] = np.arange(_ROWS) // 8 if place == 0 else np.arange(_ROWS) % 8
    for name, about in content["variables"].items():
        said = about if isinstance(about, dict) else {}
        choice = said.get("levels") or {"categorical": ["A", "B", "C"], "binary": [1, 2]}.get(
            said.get("kind", "")
        )
        lower, upper = (said.get("range") or [0, 100])[:2]
        lower, upper = 0 if lower is None else lower, 100 if upper is None else upper
        column = random.choice(choice, _ROWS) if choice else random.uniform(lower, upper, _ROWS).round(3)
        each_unit = np.repeat(column[: -(-_ROWS // 8)], 8)
        columns[name] = each_unit if said.get("role") == "static" else column
    return pd.DataFrame(columns)
