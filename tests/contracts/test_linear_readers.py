"""What is read from outside takes time in proportion to its size: twice the size, at most 2.5 times the time.

Each format is read at n and at 2n, as people write it and in the shapes that cost the most for their size.
"""

import gc
import math
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.data.problem_file.diagnostics import ProblemError
from rehearsal_torch.data.tables.reader import TableError, read_table
from rehearsal_torch.data.trials.trial_store import TrialFileError, read_campaign
from rehearsal_torch.files.bounded_yaml import PlainFileError, read_json, read_yaml
from rehearsal_torch.files.csv_rows import read_rows
from rehearsal_torch.problems.cases.cases_file import OwnProblem
from rehearsal_torch.run_folder import RunFolder
from tests.toys.graph_files import read_graph

pytestmark = pytest.mark.slow

RATIO = 2.5
REFUSALS = (PlainFileError, TableError, TrialFileError, ProblemError, ValueError)
# From a folder and a size to what reads a file of this size.
Make = Callable[[Path, int], Callable[[], object]]


def text(name: str, written: Callable[[int], str], read: Callable[[Path], object]) -> Make:
    """A reader of a text of size n."""

    def make(folder: Path, size: int) -> Callable[[], object]:
        file = folder / name
        file.write_text(written(size), encoding="utf-8")
        return lambda: read(file)

    return make


def frame(name: str, columns: Callable[[int], dict[str, object]], save: str, **options: object) -> Make:
    """A reader of a table of n rows."""

    def make(folder: Path, size: int) -> Callable[[], object]:
        getattr(pd.DataFrame(columns(size)), save)(folder / name, **options)
        return lambda: read_table(folder / name)

    return make


def mixed(size: int) -> dict[str, object]:
    """Numbers, whole numbers and texts."""
    random = np.random.default_rng(size)
    return {
        "a": random.normal(size=size),
        "b": random.integers(0, 9, size),
        "c": random.choice(["x", "yy"], size),
    }


def keys(size: int) -> str:
    return ", ".join(f'"k{place}": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]' for place in range(size))


def head(trials: str) -> str:
    task = '{"graph": ["a -> Y"], "actions": {"a": [0, 1]}, "reward": "Y"}'
    return (
        f'{{"format": "rehearsal-trials/1", "task": {task}, "seed": 0, "initial": 5, "trials": [{trials}]}}'
    )


def trials(size: int) -> str:
    each = '{{"id": {}, "state": "completed", "asked": {{"a": 0.5}}, "nodes": {{"Y": 1.5}}}}'
    return head(",\n".join(each.format(place + 1) for place in range(size)))


def workbook(mark: str) -> Make:
    """A reader of a workbook with a mark of n letters in its sheet."""

    def make(folder: Path, size: int) -> Callable[[], object]:
        pd.DataFrame({"a": ["x"]}).to_excel(folder / "small.xlsx", index=False)
        with ZipFile(folder / "small.xlsx") as before, ZipFile(folder / "t.xlsx", "w") as after:
            for name in before.namelist():
                head, sign, rest = before.read(name).decode().rpartition("</")
                long = mark.format("x" * size) if name.endswith("sheet1.xml") else ""
                after.writestr(name, head + long + sign + rest)
        return lambda: read_table(folder / "t.xlsx")

    return make


def decisions(size: int) -> str:
    line = '{{"index": {}, "identity": "{}", "status": "leave"}}\n'
    return "".join(line.format(place, place) for place in range(size))


def problem(size: int) -> str:
    cases = "".join(f"  - {{x: {place / size}, a: 0.5}}\n" for place in range(size))
    return (
        "data: table.csv\nvariables: {x: context, a: {role: action, range: [0, 1]}, y: outcome}\n"
        f"graph: [x -> a, x -> y, a -> y]\ndesired: y >= 0\ncases:\n{cases}"
    )


def misnamed(size: int) -> str:
    names = "".join(f"  variable{place}: context\n" for place in range(size))
    return f"data: table.csv\nvariables:\n{names}  y: outcome\ngraph: [x -> y]\ndesired: y >= 0\n"


def decide_from(file: Path) -> object:
    random = np.random.default_rng(0)
    pd.DataFrame(random.random((40, 3)), columns=["x", "a", "y"]).to_csv(
        file.with_name("table.csv"), index=False
    )
    return OwnProblem(str(file))


def dagitty(size: int) -> str:
    edges = (f"v{place % 900} -> w{place // 900}" for place in range(size))
    return "dag {\n" + "\n".join(edges) + "\n}\n"


def gml(size: int) -> str:
    nodes = "".join(f'node [ id {place} label "v{place}" ]\n' for place in range(900))
    return (
        f"graph [ directed 1\n{nodes}"
        + "".join(f"edge [ source {place % 449} target {450 + place // 449} ]\n" for place in range(size))
        + "]\n"
    )


def graphml(size: int) -> str:
    edges = "".join(f'<edge source="v{place % 449}" target="w{place // 449}"/>' for place in range(size))
    nodes = "".join(f'<node id="v{place}"/><node id="w{place}"/>' for place in range(450))
    return (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
        f"{nodes}{edges}</graph></graphml>"
    )


def dot(size: int) -> str:
    edges = (f"v{place % 449} -> w{place // 449} [dir=both, arrowtail=none];" for place in range(size))
    return "digraph {\n" + "\n".join(edges) + "\n}\n"


FORMATS: dict[str, tuple[Make, int]] = {
    "json": (text("run.json", lambda size: f"{{{keys(size)}}}", read_json), 15_000),
    "json, last key twice": (
        text("run.json", lambda size: f'{{{keys(size)}, "k{size - 1}": 0}}', read_json),
        15_000,
    ),
    "json, lists": (text("run.json", lambda size: f"[{'[0, 1, 2, 3],' * size}[]]", read_json), 60_000),
    "trials": (text("trials.json", trials, read_campaign), 5_000),
    "trials, last key twice": (
        text("trials.json", lambda size: head(f'{{{keys(size)}, "k{size - 1}": 0}}'), read_campaign),
        15_000,
    ),
    "trials, all wrong": (
        text("trials.json", lambda size: head(", ".join(["3"] * size)), read_campaign),
        4_000,
    ),
    "decisions": (
        text("decisions.jsonl", decisions, lambda file: RunFolder(file.parent).decision_lines()),
        2_000,
    ),
    "metrics": (
        text(
            "metrics.csv",
            lambda size: "step,name,value\n" + "".join(f"{place},loss,0.5\n" for place in range(size)),
            lambda file: RunFolder(file.parent).metrics(),
        ),
        10_000,
    ),
    "rows": (
        text("rows.csv", lambda size: "a,b\n" + "1,2\n" * size, lambda file: read_rows(file, numbers=("a",))),
        20_000,
    ),
    "yaml": (
        text("a.yaml", lambda size: "".join(f"k{place}: {place}\n" for place in range(size)), read_yaml),
        4_000,
    ),
    "yaml, last key twice": (
        text("a.yaml", lambda size: "".join(f"k{place}: 1\n" for place in range(size)) * 2, read_yaml),
        2_000,
    ),
    "yaml, aliases": (
        text("a.yaml", lambda size: "a: &a [1, 2]\nb: [" + "*a, " * size + "1]\n", read_yaml),
        8_000,
    ),
    "yaml, merged": (
        text("a.yaml", lambda size: "a: &a {x: 1}\nb:\n" + "  - {<<: *a}\n" * size, read_yaml),
        2_000,
    ),
    "yaml, cut": (text("a.yaml", lambda size: "a: [" * size, read_yaml), 20_000),
    "problem": (text("problem.yaml", problem, decide_from), 1_000),
    "problem, unknown columns": (text("problem.yaml", misnamed, decide_from), 200),
    "csv": (frame("t.csv", mixed, "to_csv", index=False), 60_000),
    "csv, packed": (frame("t.csv.gz", mixed, "to_csv", index=False), 60_000),
    "csv, decimal commas": (frame("t.csv", mixed, "to_csv", index=False, sep=";", decimal=","), 40_000),
    "csv, blank lines": (text("t.csv", lambda size: "a,b\n" + "\n,\n1,2\n" * size, read_table), 30_000),
    "csv, one quote": (text("t.csv", lambda size: 'a,b\n"' + "1,2\n" * size, read_table), 200_000),
    "csv, columns": (
        text(
            "t.csv",
            lambda size: ",".join(f"c{p}" for p in range(size)) + "\n" + "1," * (size - 1) + "1\n",
            read_table,
        ),
        2_500,
    ),
    "excel": (frame("t.xlsx", mixed, "to_excel", index=False), 500),
    "excel, comment": (workbook("<!--{}-->"), 2_000_000),
    "excel, attribute": (workbook('<c r="{}"/>'), 2_000_000),
    "parquet": (frame("t.parquet", mixed, "to_parquet"), 100_000),
    "dagitty": (text("g.dagitty", dagitty, read_graph), 4_000),
    "dagitty, comments left open": (
        text("g.dagitty", lambda size: "dag { " + "/* " * size, read_graph),
        40_000,
    ),
    "dagitty, brackets": (text("g.dagitty", lambda size: "dag { a " + "[" * size, read_graph), 100_000),
    "dagitty, marks": (text("g.dagitty", lambda size: "dag { a " + "=" * size, read_graph), 100_000),
    "dagitty, blanks": (text("g.dagitty", lambda size: "dag {" + " " * size + "?", read_graph), 100_000),
    "dagitty, words": (text("g.dagitty", lambda size: "dag {" + " a" * size + "}", read_graph), 20_000),
    "dagitty, roles": (
        text(
            "g.dagitty",
            lambda size: (
                f"dag {{ {{{' '.join(f'v{place}' for place in range(900))}}} {'[exposure]' * size}}}"
            ),
            read_graph,
        ),
        5_000,
    ),
    "dagitty, quoted": (text("g.dagitty", lambda size: 'dag { "' + "a " * size, read_graph), 100_000),
    "gml": (text("g.gml", gml, read_graph), 4_000),
    "gml, brackets": (text("g.gml", lambda size: "graph " + "[" * size, read_graph), 50_000),
    "gml, one quote": (text("g.gml", lambda size: 'graph [ label "' + "a\n" * size, read_graph), 5_000),
    "graphml": (text("g.graphml", graphml, read_graph), 4_000),
    "graphml, entities": (
        text(
            "g.graphml",
            lambda size: '<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa">]><g>' + "&a;" * size + "</g>",
            read_graph,
        ),
        50_000,
    ),
    "dot": (text("g.dot", dot, read_graph), 2_000),
    "dot, brackets": (text("g.dot", lambda size: "digraph { a " + "[" * size + "}", read_graph), 100_000),
    "dot, defaults": (text("g.dot", lambda size: "digraph { " + "node [" * size + "}", read_graph), 100_000),
    "dot, comments left open": (
        text("g.dot", lambda size: "digraph { " + "/* " * size + "}", read_graph),
        100_000,
    ),
    "dot, quotes": (text("g.dot", lambda size: "digraph { " + '"a ' * size + "}", read_graph), 100_000),
    "dot, blanks": (text("g.dot", lambda size: "digraph" + "\n " * size + "}", read_graph), 100_000),
    "dot, a long name": (text("g.dot", lambda size: "digraph { " + "a" * size + "}", read_graph), 200_000),
    "dot, a long attribute": (
        text("g.dot", lambda size: "digraph { a [" + "a" * size + "] }", read_graph),
        200_000,
    ),
    "arrows": (
        text(
            "g.yaml",
            lambda size: "graph:\n" + "".join(f"- v{p % 449} -> w{p // 449}\n" for p in range(size)),
            read_graph,
        ),
        2_000,
    ),
    "arrows, marks": (text("g.yaml", lambda size: f'graph: "{"=" * size}x"\n', read_graph), 100_000),
}


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds; a refusal counts as the end."""
    begun = time.process_time()
    with suppress(*REFUSALS):
        work()
    return time.process_time() - begun


@pytest.mark.parametrize("name", FORMATS)
def test_twice_the_size_takes_at_most_two_and_a_half_times_the_time(name, tmp_path):
    make, size = FORMATS[name]
    reads = []
    for count in (size, 2 * size):
        folder = tmp_path / str(count)
        folder.mkdir()
        reads.append(make(folder, count))
    once = twice = math.inf
    gc.disable()
    try:
        for _ in range(5):
            once, twice = min(once, seconds(reads[0])), min(twice, seconds(reads[1]))
    finally:
        gc.enable()
    # Below a hundredth of a second there is nothing to tell.
    assert twice <= max(RATIO * once, 0.01), f"{once:.4f} s, then {twice:.4f} s"
