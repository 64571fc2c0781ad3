"""The Python blocks of README and docs run as they stand, in a folder that has the files that they name."""

import re
from pathlib import Path

import pytest
import torch

from tests.house.desk import EXPERIMENTS, laid_out, system
from tests.places import ROOT
from tests.toys.linear_truth import chain

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
WITH_BLOCKS = [page for page in PAGES if PYTHON.search(page.read_text(encoding="utf-8"))]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, a task, cases, and the checkpoints of the project."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    return laid_out(tmp_path)


# Some ten seconds each.
LONG = ("choose_method.md", "rehearsal.md")


# Of Lightning, about its own use of torch, and about a training without held-out rows.
@pytest.mark.filterwarnings("ignore:Total length of `list` across ranks is zero")
@pytest.mark.filterwarnings("ignore:.*LeafSpec.* is deprecated:FutureWarning")
@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=pytest.mark.bench if page.name in LONG else ())
        for page in WITH_BLOCKS
    ],
)
def test_the_blocks_of_a_page_run_one_after_the_other(page: Path, desk: Path) -> None:
    import rehearsal_torch as rt

    # What a page has shown or said before its first block.
    known = {
        "rt": rt,
        "table": chain().table(60),
        "task": EXPERIMENTS if page.name in ("noise.md", "optimise.md") else chain().task,
    }
    known |= {"run": system, "nodes": system({"valve": 0.63, "dose": 1.7})}
    for place, text in enumerate(PYTHON.findall(page.read_text(encoding="utf-8"))):
        exec(compile(text, f"{page.name}, block {place}", "exec"), known)


def test_notation_gives_every_letter_a_standard_term():
    lines = (ROOT / "reproduction/notation.md").read_text(encoding="utf-8").splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("|")]
    tables = [[cell.strip() for cell in row] for row in rows]
    letters = [cells for cells in tables if len(cells) == 4]
    assert letters.count(["letter", "meaning", "standard term", "name in the code"]) == 4
    assert len(letters) > 60
    assert all(all(cells) for cells in tables), "a cell is empty"
