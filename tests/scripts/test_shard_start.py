"""What a shard with one case costs beyond its imports: less than two CPU seconds, on a core that is free."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import yaml

from tests.scripts.typing_in import ROOT, called, surroundings

pytestmark = pytest.mark.bench

# Imports first what such a shard has imported at its end, if that is known, and says what it spent then.
STARTED = """
import json, sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

def spent():
    return sum(each.ru_utime + each.ru_stime for each in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))

known, *typed = sys.argv[1:]
for name in json.loads(Path(known).read_text()) if Path(known).exists() else []:
    with suppress(ImportError):
        import_module(name)
from rehearsal_torch.cli.main import main
from rehearsal_torch.cli.main import decide
began = spent()
code = main(decide, typed)
print(f"CPU {spent() - began}")
if not Path(known).exists():
    Path(known).write_text(json.dumps([name for name in sys.modules if name != "__main__"]))
sys.exit(code)
"""


def beyond_imports(folder, *typed):
    """The CPU seconds of a shard with one case, after its imports: the least of three."""
    found = []
    for number in range(4):
        command = [sys.executable, "-c", STARTED, str(folder / "modules.json"), *typed, f"out=shard-{number}"]
        answer = subprocess.run(
            command, cwd=folder, env=surroundings(), capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, answer.stderr
        assert len((folder / f"shard-{number}/decisions.jsonl").read_text().splitlines()) == 1
        found.append(float(answer.stdout.rpartition("CPU ")[2]))
    # The first one has imported as it went, and says what there is to import.
    return min(found[1:])


def test_a_shard_of_patients(tmp_path):
    # The first patient is decided for in .3 seconds; the third one takes 1.2.
    typed = ("+experiment=sepsis", f"checkpoint={ROOT / 'checkpoints/sepsis'}", "shards=4", "shard=0")
    assert beyond_imports(tmp_path, *typed, "limit=1", "workers=1") < 2


def test_a_shard_of_a_large_table(tmp_path):
    draws, rows = np.random.default_rng(0), 2_000_000
    x, a = draws.standard_normal(rows), draws.uniform(-1, 1, rows)
    table = pd.DataFrame({"x": x, "a": a, "y": x + a + draws.standard_normal(rows)})
    table.to_parquet(tmp_path / "rows.parquet", index=False)
    task = {
        "graph": {"parents": {"a": ["x"], "y": ["a", "x"]}},
        "context": ["x"],
        "box": {"a": [-1, 1]},
        "region": {"y": [0.5, None]},
    }
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    pd.DataFrame({"x": [0.0]}).to_csv(tmp_path / "cases.csv", index=False)
    typed = ("+experiment=own_table", "dataset.task=task.yaml", "decision=cme_nystrom")
    typed += ("dataset.contexts=cases.csv", "path=rows.parquet", "workers=1")
    trained = called(tmp_path, "train", *typed, "out=model")
    assert trained.code == 0, trained.err
    assert beyond_imports(tmp_path, *typed, "checkpoint=model", "shards=3", "shard=0") < 2
