"""The Python blocks of README and docs run as they stand, in a folder that has the files that they name."""

import re
from pathlib import Path

import pytest
import torch

from tests.house.layers import ROOT
from tests.toys.linear_truth import chain

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
WITH_BLOCKS = [page for page in PAGES if PYTHON.search(page.read_text(encoding="utf-8"))]


def system(action: dict[str, float]) -> dict[str, float]:
    """Somebody's experiment."""
    temperature = action["valve"] - 0.3
    return {"temperature": temperature, "yield": -(temperature**2) + 0.1 * action["dose"]}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, a task, cases, and the checkpoints of the project."""
    rows = chain().table(60)
    lines = [",".join(rows.names), *(",".join(map(repr, row)) for row in rows.values.tolist())]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "cases.csv").write_text("x\n0.1\n-0.4\n")
    (tmp_path / "task.yaml").write_text(TASK)
    tried = [{"valve": place / 6, "dose": (2.5 * place) % 5} for place in range(6)]
    rows = [{**each, **system(each)} for each in tried]
    (tmp_path / "experiments.csv").write_text("\n".join([",".join(rows[0]), *(",".join(map(repr, row.values())) for row in rows)]) + "\n")
    (tmp_path / "checkpoints").symlink_to(ROOT / "checkpoints")
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    return tmp_path


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_one_after_the_other(page: Path, desk: Path) -> None:
    import rehearsal_torch as rt

    # What a page has shown or said before its first block.
    known = {"rt": rt, "table": chain().table(60), "task": EXPERIMENTS if page.name == "optimise.md" else chain().task}
    known |= {"run": system, "nodes": system({"valve": 0.63, "dose": 1.7})}
    for place, text in enumerate(PYTHON.findall(page.read_text(encoding="utf-8"))):
        exec(compile(text, f"{page.name}, block {place}", "exec"), known)


def test_every_page_with_blocks_is_found() -> None:
    assert {"README.md", "decisions.md", "influence.md", "optimise.md", "own_weights.md"} <= {page.name for page in WITH_BLOCKS}
