"""Rows of a Parquet file in parts, from the command line; and how little of them is in memory."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from rehearsal_torch.cli.main import main
from rehearsal_torch.cli.verbs.decide import decide
from tests.scripts.typing_in import lines

TASK = {
    "graph": {"parents": {"u": ["x"], "a": ["u"], "y": ["a", "u", "x"]}},
    "context": ["x"],
    "box": {"a": [-2, 2]},
    "region": {"y": [1.0, None]},
}
FEW = {
    "cme_nystrom": ["surrogate.estimator.rank=40"],
    "cme_published": ["surrogate=nested_ridge_cg", "surrogate.estimator.rank=40"],
    "outcome_regression": ["surrogate.frequencies=20", "surrogate.evidence_rows=60"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    draws = np.random.default_rng(0)
    x, u, a, rest = draws.standard_normal((4, 900))
    a = 0.5 * u + a
    rows = pd.DataFrame({"x": x, "u": u, "a": a, "y": np.sin(a) + 0.5 * u + 0.3 * x + 0.2 * rest})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet", index=False, row_group_size=200)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(TASK))
    (tmp_path / "cases.csv").write_text("x\n0\n1\n-0.5\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "method",
    [pytest.param(name, marks=[] if name == "outcome_regression" else pytest.mark.bench) for name in FEW],
)
def test_a_file_in_parts_gives_the_decisions_of_the_table(folder, method):
    typed = [
        "dataset.task=task.yaml",
        "dataset.contexts=cases.csv",
        f"decision={method}",
        "workers=1",
        *FEW[method],
    ]
    for name, file in (("table", "rows.csv"), ("table_file", "rows.parquet")):
        assert main(decide, [f"dataset={name}", f"path={file}", *typed, f"out={name}"]) == 0
    assert lines(Path("table_file")) == lines(Path("table"))
    card = yaml.safe_load(Path("table_file/data.yaml").read_text())
    assert card["rows"] == 900
    recorded = [
        json.loads(Path(name, "run.json").read_text())["data_fingerprint"] for name in ("table", "table_file")
    ]
    assert recorded[0] == recorded[1]


@pytest.mark.bench
def test_held_out_rows_are_decided_for_and_a_checkpoint_serves_the_file_again(folder, capsys):
    typed = [
        "dataset=table_file",
        "path=rows.parquet",
        "dataset.task=task.yaml",
        "dataset.cases=20",
        "workers=1",
    ]
    typed += ["decision=cme_nystrom", *FEW["cme_nystrom"]]
    assert main(decide, [*typed, "out=first"]) == 0
    found = lines(Path("first"))
    assert len(found) == 20
    assert all("brier_no_action" in line["score"] for line in found)
    again = [*typed[:5], "decision=cme_nystrom", "checkpoint=first/checkpoint", "out=again"]
    assert main(decide, again) == 0
    assert lines(Path("again")) == found
    assert "fitted to other data" not in capsys.readouterr().out


@pytest.mark.parametrize("method", ["cme", "care", "cme_stack"])
def test_methods_that_need_all_rows_say_so(folder, capsys, method):
    typed = [
        "dataset=table_file",
        "path=rows.parquet",
        "dataset.task=task.yaml",
        "dataset.contexts=cases.csv",
    ]
    assert main(decide, [*typed, f"decision={method}", "workers=1", "out=none"]) == 2
    told = capsys.readouterr().err
    assert "is fitted to a table in memory" in told
    assert "choose decision=cme_nystrom or decision=outcome_regression" in " ".join(told.split())


@pytest.mark.bench
@pytest.mark.parametrize("method", ["nystrom", "outcomes"])
def test_two_million_rows_are_fitted_in_little_memory(method):
    """Some 0.4 GB of them are imported packages. With all rows as candidates, landmarks alone took 3.2 GB."""
    root = Path(__file__).parents[2]
    typed = [sys.executable, str(root / "benchmarks/rows_larger_than_memory.py"), "2000000", method]
    done = subprocess.run(typed, cwd=root, capture_output=True, text=True, check=True)
    assert float(done.stdout.split("largest memory ")[1].split()[0]) < 1.2
