"""Files that people write and programs damage: tasks, tables, graphs and problem files are mutated, read, and
decided from where they still can be."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from hypothesis import strategies as st

from rehearsal_torch.data.tables.reader import number_columns, read_table
from rehearsal_torch.graphs.graph_files import ENDINGS
from rehearsal_torch.graphs.graph_learning import bootstrap, learn
from rehearsal_torch.graphs.graph_notation import graph_class, graph_of
from rehearsal_torch.graphs.separation import adjustment, c_separated
from rehearsal_torch.problems.cases.cases_file import OwnProblem
from rehearsal_torch.problems.cases.user_table import RehearsalTable, written_task
from rehearsal_torch.problems.trials.user_experiments import ExperimentTable, causal_task
from rehearsal_torch.spaces.box import as_tensor
from tests.data.problem_file.conftest import RIGHT, table
from tests.fuzz.decisions import REHEARSALS, TRIALS, experiments, optimised, rehearse, rows_of
from tests.fuzz.strategies import NAMES, changed, copied, damaged, renamed, rows_changed, text_of
from tests.fuzz.verdicts import FaultError, desk, fuzzed, judged
from tests.toys.graph_files import read_graph, write_graph

CASES = [["who", "x", "note"], ["ann", "0.5", "a"], ["bob", "-1.5", ""], ["cid", "2", "c"]]
GRAPHS = [
    *(task["graph"] for task, _ in REHEARSALS),
    {"cliques": [["weather"], ["recommend", "congestion"], ["rating"]],
     "edges": [["weather", "recommend"], ["weather", "congestion"], ["congestion", "rating"], ["recommend",
     "rating"]]},
    {"cliques": [["a"], ["b"], ["c", "d"]], "edges": [["a", "b"], ["b", "c"], ["b", "d"]], "hidden": [["a",
    "b"]]},
]  # fmt: skip
CLASSES_OF_GRAPHS = [
    {"parents": {"c": ["x"], "y": ["x", "a", "u"]}, "undirected": [["u", "a"]]},
    {"parents": {"y": ["a"]}, "undirected": [["a", "b"], ["b", "c"], ["c", "d"]]},
    [{**graph, "probability": 0.5} for graph in GRAPHS[-2:-1]] * 2,
    {"class": {"notes": []}, "posterior": {"graphs": [{**GRAPHS[-1], "probability": 1.0, "votes": 0.5}]}},
]
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
CELLS = {
    "ward": ["A", "B", "C"],
    "severity": ["low", "medium", "high"],
    "smoker": ["no", "yes"],
    "state": ["ill", "well"],
    "course": ["well", "mild", "ill"],
    "note": ["a b", "c d", "3"],
}


@st.composite
def texts(draw, plain):
    """The bytes of a YAML file of plain data, which may be damaged."""
    content = yaml.safe_dump(plain, allow_unicode=draw(st.booleans()), sort_keys=False).encode(
        "utf-8", "replace"
    )
    return draw(st.one_of(st.just(content), damaged(content)))


@st.composite
def tables(draw, rows):
    """The bytes of a table that may be changed, damaged and packed, and how its file is called."""
    content = text_of(draw(rows_changed(rows, least=0)), draw(st.sampled_from([",", ",", ";"])))
    content = content.encode("utf-8", "replace")
    content = draw(st.one_of(st.just(content), st.just(content), damaged(content)))
    return draw(st.sampled_from([(content, "table.csv"), (gzip.compress(content, mtime=0), "table.csv.gz")]))


@st.composite
def tasks(draw, causal):
    """A task, changed, and rows it was meant for, whose variables may bear odd names."""
    base, frame = (
        (draw(st.sampled_from(TRIALS)), experiments()) if causal else draw(st.sampled_from(REHEARSALS))
    )
    rows = rows_of(frame)
    if draw(st.integers(0, 6)) == 0:
        names = dict(zip(rows[0], draw(st.permutations(NAMES)), strict=False))
        base, rows[0] = renamed(base, names), ['"' + names[name].replace('"', '""') + '"' for name in rows[0]]
    return draw(changed(base, 0, 2)), rows


@fuzzed
def test_tasks(data):
    causal = data.draw(st.booleans())
    plain, rows = data.draw(tasks(causal))
    content = data.draw(st.one_of(st.none(), texts(plain)))
    task = copied(plain) if content is None else "task.yaml"
    method = data.draw(st.sampled_from(["care", "cme"]))

    def work():
        if causal:
            optimised(causal_task(task), "table.csv")
        else:
            written_task(task)
            problem = RehearsalTable("table.csv", task, validation=0.5)
            problem.card()
            rehearse(problem, method)

    with desk() as folder:
        (folder / "table.csv").write_text(text_of(rows), encoding="utf-8")
        (folder / "task.yaml").write_bytes(content or b"")
        judged(work)


@fuzzed
def test_tables(data):
    kind = data.draw(st.sampled_from(["rows", "rows", "cases", "experiments", "experiments", "graph"]))
    task, frame = data.draw(st.sampled_from(REHEARSALS))
    rows = rows_of(experiments() if kind == "experiments" else frame)
    content, name = data.draw(tables(CASES if kind == "cases" else rows))
    causal, method = data.draw(st.sampled_from(TRIALS)), data.draw(st.sampled_from(["care", "cme"]))

    def work():
        if kind == "experiments":
            ExperimentTable(name, causal).card()
            optimised(causal, name)
        elif kind == "graph":
            found = read_table(name, "data").frame
            names = [str(each) for each in found.columns]
            values = as_tensor(number_columns(found, names, name, min_rows=5, varying=True))
            learn(values, names)
            bootstrap(values, names, 2, 0)
        else:
            given = {"contexts": name, "identity": "who"} if kind == "cases" else {"validation": 0.5}
            problem = RehearsalTable("rows.csv" if kind == "cases" else name, task, **given)
            problem.card()
            rehearse(problem, method)

    with desk() as folder:
        (folder / "rows.csv").write_text(text_of(rows), encoding="utf-8")
        (folder / name).write_bytes(content)
        judged(work)


def asked(graph):
    """What a graph is asked: it answers, or refuses what it is no answer to."""
    for one, other in itertools.islice(itertools.permutations(graph.names, 2), 12):
        rest = [name for name in graph.names if name not in (one, other)]
        c_separated(graph, [one], [other], rest[:1])
        if not graph.hidden:
            adjustment(graph, rest[:1], [one], [other])
        graph.altered([one]).descendants([one])


@fuzzed
def test_graphs(data):
    base, ending = data.draw(st.sampled_from(GRAPHS)), data.draw(st.sampled_from(ENDINGS))
    if data.draw(st.integers(0, 4)) == 0:
        base = renamed(base, dict(zip(graph_of(base).names, data.draw(st.permutations(NAMES)), strict=False)))
    plain = data.draw(changed(base, 0, 3))

    def work():
        if ending in (".yaml", ".yml"):
            file.write_bytes(data.draw(texts(plain)))
        else:
            write_graph(graph_of(copied(plain)), file)
            file.write_bytes(data.draw(st.one_of(st.just(file.read_bytes()), damaged(file.read_bytes()))))
        graph = read_graph(file)
        asked(graph)
        for other in ENDINGS:
            again = read_graph(write_graph(graph, Path(f"again{other}")))
            if (set(again.edges), {frozenset(each) for each in again.cliques}) != (
                set(graph.edges),
                {frozenset(each) for each in graph.cliques},
            ):
                raise FaultError(f"{other} gives another graph: {graph.to_plain()} became {again.to_plain()}")

    with desk() as folder:
        file = folder / f"graph{ending}"
        judged(work)


@fuzzed
def test_classes_of_graphs(data):
    plain = data.draw(changed(data.draw(st.sampled_from(CLASSES_OF_GRAPHS)), 0, 3))
    content = data.draw(st.one_of(st.none(), texts(plain)))

    def work():
        found = graph_class(copied(plain) if content is None else file)
        if abs(sum(found.weights) - 1) > 1e-9 or len(found.graphs) != len(found.weights):
            raise FaultError(f"weights {found.weights} of {len(found.graphs)} graphs")
        for index, graph in enumerate(found.graphs[:3]):
            asked(graph)
            found.described(index)

    with desk() as folder:
        file = folder / "graphs.yaml"
        file.write_bytes(content or b"")
        judged(work)


def laid_out(folder):
    """The tables that the problem files name, in every format."""
    rows, random = table(), np.random.default_rng(1)
    rows.to_csv(folder / "table.csv", index=False)
    rows.to_csv(folder / "table.tsv", index=False, sep="\t", decimal=",")
    rows.to_excel(folder / "table.xlsx", index=False)
    rows.to_parquet(folder / "table.parquet")
    columns = {name: random.choice(each, 80) for name, each in CELLS.items()}
    pd.DataFrame(columns).to_csv(folder / "texts.csv", index=False)


@fuzzed
def test_problem_files(data):
    plain = data.draw(st.sampled_from([RIGHT, FULL, SHEET, TEXTS, CLASSES]))
    content = data.draw(texts(data.draw(changed(plain, 0, 3))))

    def work():
        problem = OwnProblem("problem.yaml", validation=0.5)
        problem.findings()
        for place in range(min(problem.count(), 5)):
            case, task = problem.case(place), problem.task
            if any(not lower <= upper for lower, upper in case.feasible.values()):
                raise FaultError(f"bounds of {case.identity}: {case.feasible}")
            said = task.worded({name: float(each) for name, each in case.given.items()})
            if set(said) != set(task.variables(task.context)):
                raise FaultError(f"{case.identity} is told as {said}")
            if any("=" in name for name in task.worded(case.present)):
                raise FaultError(f"{case.identity} is told to be at {task.worded(case.present)}")

    with desk() as folder:
        laid_out(folder)
        (folder / "problem.yaml").write_bytes(content)
        judged(work)
