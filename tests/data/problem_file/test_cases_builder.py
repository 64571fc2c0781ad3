"""Problem files compiled to tasks; the faults of all parts at once."""

import pytest

from rehearsal_torch.data.problem_file.cases_builder import written_problem
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.problems.cases.user_table import written_task
from tests.data.problem_file.conftest import RIGHT
from tests.toys.graph_files import write_graph


def test_a_problem_is_the_task_that_is_written_by_hand(written):
    problem = written_problem(written(candidates=[["a"], ["a", "d"]]))
    by_hand = written_task(
        {
            "graph": {"parents": {"a": ["x"], "d": ["x"], "y": ["x", "a"], "z": ["a", "d"]}},
            "context": "x",
            "box": {"a": [-1, 1], "d": {"values": [0, 1, 2, 3]}},
            "region": {"names": ["y", "z"], "normals": [[-1, 2], [0, 1]], "offsets": [0, 1]},
            "candidates": [["a"], ["a", "d"]],
        }
    )
    made = problem.task
    assert set(made.graph.edges) == set(by_hand.graph.edges)
    assert made.to_plain() | {"graph": None} == by_hand.to_plain() | {"graph": None}
    assert problem.findings.warnings == [
        "line 9, variables.d: 1 of the 5 values that it could be set to occur in no row and are not offered; "
        "offered are 0, 1, 2, 3"
    ]


@pytest.mark.parametrize("ending", [".dagitty", ".gml", ".graphml", ".yaml"])
def test_the_graph_may_be_a_file(written, tmp_path, ending):
    edges = [("x", "a"), ("x", "d"), ("x", "y"), ("a", "y"), ("a", "z"), ("d", "z")]
    write_graph(RehearsalGraph.mixed("xadyz", edges, []), tmp_path / f"graph{ending}")
    problem = written_problem(written(graph=f"graph{ending}"))
    assert set(problem.task.graph.edges) == set(edges)


def test_bounds_costs_and_named_cases(written):
    about = {"role": "action", "range": [-1, 1], "cost": 2.5}
    problem = written_problem(
        written(
            variables=RIGHT["variables"] | {"a": about},
            cases=[{"who": "Ann", "x": 0, "a": 0.5}, {"who": "Bo", "x": 1, "a": -1}],
            identity="who",
            bounds={"a": ["current - 0.25", "current"]},
        )
    )
    assert problem.ranges == {"a": [(0.25, 0.5), (-1.0, -1.0)]}
    assert problem.cases.frame["who"].tolist() == ["Ann", "Bo"]


def test_edges_without_a_direction_are_read_from_a_file(written, tmp_path):
    (tmp_path / "graph.pdag").write_text("pdag { x -> {a d y} a -- d a -> {y z} d -> {y z} }")
    problem = written_problem(written(graph="graph.pdag"))
    same = written_problem(
        written(
            graph={
                "parents": {"a": ["x"], "d": ["x"], "y": ["x", "a", "d"], "z": ["a", "d"]},
                "undirected": [["a", "d"]],
            }
        )
    )
    assert {graph.edges for graph in problem.graphs} == {graph.edges for graph in same.graphs}
    assert len(problem.graphs) == 2
