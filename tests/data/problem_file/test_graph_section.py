"""A graph that is learnt from the rows of a problem file."""

import numpy as np
import pandas as pd
import pytest
import yaml

import rehearsal_torch as rt
from rehearsal_torch.data.problem_file.cases_builder import written_problem
from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.data.problem_file.graph_section import graph_part
from rehearsal_torch.problems.cases.cases_file import OwnProblem

PROBLEM = {
    "data": "table.csv",
    "variables": {
        "x": "context",
        "a": {"role": "action", "range": [-1, 1]},
        "b": {"role": "action", "range": [-1, 1]},
        "m": "other",
        "y": "outcome",
    },
    "graph": "learn",
    "desired": "y >= 0.5",
    "method": "care",
}
TRUE = {("x", "a"), ("a", "m"), ("b", "m"), ("m", "y"), ("x", "y")}


@pytest.fixture
def file(tmp_path):
    random = np.random.default_rng(4)
    x, b = random.normal(size=(2, 900))
    a = x + random.normal(size=900)
    m = a - b + 0.5 * random.normal(size=900)
    y = m + x + 0.5 * random.normal(size=900)
    frame = pd.DataFrame(
        {"x": x, "a": a, "b": b, "m": m, "y": y, "ward": random.choice(["p", "q", "r"], 900)}
    )
    frame.loc[3, "m"] = None
    frame.to_csv(tmp_path / "table.csv", index=False)

    def write(**changes):
        (tmp_path / "problem.yaml").write_text(yaml.safe_dump({**PROBLEM, **changes}, sort_keys=False))
        return tmp_path / "problem.yaml"

    return write


def test_the_arrows_of_a_world_are_found_from_its_rows_and_the_roles(file):
    problem = written_problem(file())
    found = {tuple(edge) for edge in problem.task.graph.edges}
    # Beside `a`, nothing says which of x and a comes first but that x is known before deciding.
    assert found == TRUE
    assert len(problem.graphs) == 1
    (note,) = [each for each in problem.rows.notes if each.startswith("the graph was learnt")]
    assert "learnt from 899 rows, without hidden common causes" in note
    assert "the only graph that agrees with them and the roles" in note
    assert OwnProblem(file()).facts().graphs is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
def test_graphs_that_rows_cannot_tell_apart_are_all_asked(file):
    free = {**PROBLEM["variables"], "x": "other"}
    path = file(variables=free, cases=[{"a": 0.1}], graph={"learn": True, "level": 0.01})
    problem = OwnProblem(path)
    known = problem.facts().graphs
    assert len(known.graphs) == len(problem.problem.graphs) == 2
    assert {("x", "a") in graph.edges for graph in known.graphs} == {True, False}
    (decision,) = rt.rehearse(path)
    assert decision.trace["graphs"]["stand"] in (0.5, 1.0)
    assert decision.trace["graphs"]["worst_named"] in ("x -> a", "a -> x")


def test_what_is_known_is_kept(file):
    known = {"learn": True, "forbidden": ["x -> y"], "required": ["b -> y"]}
    edges = {tuple(edge) for edge in written_problem(file(graph=known)).task.graph.edges}
    assert ("b", "y") in edges
    assert ("x", "y") not in edges


def test_edges_without_a_direction_are_all_graphs_that_have_them(file):
    graph = {"parents": {"m": ["a", "b"], "y": ["m", "x"]}, "undirected": [["x", "a"]]}
    free = {**PROBLEM["variables"], "x": "other"}
    problem = OwnProblem(file(graph=graph, variables=free, cases=[{"a": 0.1}]))
    known = problem.facts().graphs
    assert {("x", "a") in each.edges for each in known.graphs} == {True, False}
    assert any("2 graphs have the edges of the file" in each for each in problem.facts().notes)


def test_a_written_graph_is_kept_and_a_file_is_read(tmp_path):
    found = Findings("problem.yaml")
    assert graph_part(["a -> b"], tmp_path, found) == ["a -> b"]
    assert graph_part("a -> b", tmp_path, found) == "a -> b"
    (tmp_path / "graph.dot").write_text("digraph { a -> b; }")
    assert graph_part("graph.dot", tmp_path, found)["edges"] == [["a", "b"]]
    assert found.faults == []
