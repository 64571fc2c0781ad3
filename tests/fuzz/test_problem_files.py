"""Problem files, and tables of other formats than text: mutated, checked, and compiled."""

import numpy as np
import pandas as pd
import yaml

from rehearsal_torch.data.reading import number_columns, read_table
from rehearsal_torch.problems.written.first_draft import first_draft
from rehearsal_torch.problems.written.own_problem import OwnProblem
from rehearsal_torch.problems.written.sample_warnings import warned
from tests.data.problem_file.conftest import RIGHT, table
from tests.fuzz.mutations import changed, damaged, source
from tests.fuzz.verdicts import FaultError

FULL = RIGHT | {
    "cases": [{"who": "Ann", "x": 0.5, "a": 0.1}, {"who": "Bo", "x": -1, "a": 0}],
    "identity": "who",
    "bounds": {"a": ["current - 0.5", "0.9*current + 0.2"]},
    "candidates": [["a"], ["a", "d"]],
}
SHEET = RIGHT | {"data": {"file": "table.xlsx", "sheet": "Sheet1"}}
TEXTS = {
    "data": "texts.csv",
    "variables": {
        "ward": {"role": "context", "kind": "categorical", "reference": "B"},
        "severity": {"role": "context", "kind": "ordinal", "levels": ["low", "medium", "high"]},
        "smoker": {"role": "action", "kind": "binary", "levels": [False, True]},
        "state": {"role": "outcome", "kind": "binary"},
        "note": "other",
    },
    "graph": ["{ward severity} -> {smoker state}", "smoker -> state"],
    "desired": "state = well",
    "cases": [{"ward": "A", "severity": "low", "smoker": True}, {"ward": "C", "severity": "high"}],
}
CLASSES = {
    "data": "texts.csv",
    "variables": {
        "severity": {"role": "context", "kind": "ordinal", "levels": ["low", "medium", "high"]},
        "ward": {"role": "action", "kind": "categorical", "levels": ["A", "B", "C"], "reference": "B"},
        "smoker": {"role": "action", "kind": "binary"},
        "course": {"role": "outcome", "kind": "categorical"},
        "state": {"role": "outcome", "kind": "binary"},
    },
    "graph": ["severity -> {ward smoker course}", "{ward smoker} -> {course state}"],
    "desired": ["course in {well, mild}", "state = well"],
    "candidates": [["ward"], ["smoker", "ward"]],
    "cases": [{"ward": "A", "severity": "low", "smoker": True}, {"severity": "high"}],
}
FILES = ("table.xlsx", "table.parquet", "table.feather", "table.tsv")


def laid_out(folder):
    rows = table()
    rows.to_csv(folder / "table.csv", index=False)
    rows.to_csv(folder / "table.tsv", index=False, sep="\t", decimal=",")
    rows.to_excel(folder / "table.xlsx", index=False)
    rows.to_parquet(folder / "table.parquet")
    rows.to_feather(folder / "table.feather")
    texts().to_csv(folder / "texts.csv", index=False)


def texts():
    random = np.random.default_rng(1)
    columns = {
        "ward": ["A", "B", "C"],
        "severity": ["low", "medium", "high"],
        "smoker": ["no", "yes"],
        "state": ["ill", "well"],
        "course": ["well", "mild", "ill"],
        "note": ["a b", "c d", "3"],
    }
    return pd.DataFrame({name: random.choice(each, 80) for name, each in columns.items()})


def test_columns_of_texts(number, judged, tmp_path):
    rng = source("columns of texts", number)
    laid_out(tmp_path)
    content = yaml.safe_dump(
        changed(rng, rng.choice([TEXTS, CLASSES]), (0, 3)), sort_keys=False, allow_unicode=True
    ).encode()
    (tmp_path / "problem.yaml").write_bytes(content)
    file = tmp_path / "texts.csv"
    if rng.random() < 0.5:
        file.write_bytes(damaged(rng, file.read_bytes()))

    def work():
        first_draft(read_table(file), file.name, "problem.yaml")
        problem = OwnProblem("problem.yaml")
        warned(problem)
        for place in range(min(problem.count(), 5)):
            case = problem.case(place)
            said = problem.task.worded({name: float(each) for name, each in case.given.items()})
            if set(said) != set(problem.task.variables(problem.task.context)):
                raise FaultError(f"{case.identity} is told as {said}")
            present = problem.task.worded(case.present)
            if any("=" in name for name in present):
                raise FaultError(f"{case.identity} is told to be at {present}")

    judged(work, content)


def test_problem_files(number, judged, tmp_path):
    rng = source("problem files", number)
    laid_out(tmp_path)
    plain = changed(rng, rng.choice([RIGHT, FULL, SHEET]), (0, 3))
    content = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).encode("utf-8", "replace")
    content = damaged(rng, content) if rng.random() < 0.4 else content
    (tmp_path / "problem.yaml").write_bytes(content)

    def work():
        problem = OwnProblem("problem.yaml", validation=0.5)
        warned(problem)
        for place in range(min(problem.count(), 5)):
            case = problem.case(place)
            if any(not lower <= upper for lower, upper in case.feasible.values()):
                raise FaultError(f"bounds of {case.identity}: {case.feasible}")

    judged(work, content)


def test_other_tables(number, judged, tmp_path):
    rng = source("other tables", number)
    laid_out(tmp_path)
    file = tmp_path / FILES[number % len(FILES)]
    content = damaged(rng, file.read_bytes())
    file.write_bytes(content)

    def work():
        found = read_table(file)
        names = [name for name in ("x", "a", "d", "y", "z") if name in found.frame.columns]
        first_draft(found, file.name, "problem.yaml")
        number_columns(found.frame, names, file.name, min_rows=5)
        if not isinstance(found.frame, pd.DataFrame):
            raise FaultError(f"{file.name} gave {type(found.frame)}")

    judged(work, content)
