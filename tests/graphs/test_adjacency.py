"""Graphs as tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.adjacency import from_general_graph, from_matrix, from_table, to_table
from rehearsal_torch.graphs.bidirection import signature
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.written_graph import graph_of
from tests.toys.random_graphs import random_graph

MATRIX = """,age,bmi,progression
age,0,1,1
bmi,,0,1
progression,0,0,0
"""
EDGES = [("age", "bmi"), ("age", "progression"), ("bmi", "progression")]


class GeneralGraph:
    """What causal-learn's class has of it."""

    def __init__(self, marks, names):
        self.graph, self.names = np.array(marks), names

    def get_node_names(self):
        return self.names


def test_a_matrix_has_causes_in_its_rows():
    assert sorted(from_table(MATRIX).edges) == EDGES


def test_a_list_of_edges_may_have_kinds():
    text = "Source,Target,kind\nage,bmi,\nbmi,progression,Directed\nage,alone,bidirected\nsingle,,\n"
    graph = from_table(text)
    assert set(graph.names) == {"age", "bmi", "progression", "alone", "single"}
    assert graph.bidirected == (("age", "alone"),)


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_marks_of_causal_learn_are_the_same_graph(seed):
    graph = random_graph(seed)
    if graph.bows:
        return
    names = list(graph.names)
    marks = np.zeros((len(names), len(names)))
    for one, other in graph.edges:
        marks[names.index(one), names.index(other)] = -1
        marks[names.index(other), names.index(one)] = 1
    for one, other in graph.bidirected:
        marks[names.index(one), names.index(other)] = marks[names.index(other), names.index(one)] = 1
    if not (marks < 0).any():
        return
    assert signature(graph_of(GeneralGraph(marks, names))) == signature(graph)
    assert signature(from_general_graph(GeneralGraph(marks, names))) == signature(graph)


def test_a_table_is_written_as_edges():
    graph = RehearsalGraph.of({"b": ("a",), "d": ()}, [("b", "c")])
    assert to_table(graph).splitlines()[:2] == ["from,to,kind", "d,,"]
    assert "b,c,bidirected" in to_table(graph)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "got no lines"),
        (",a,b\na,0,1\nc,0,0\n", "whose rows have the names of its columns"),
        (",a,b\na,0,1\nb,1,0\n", "a and b: the direction of the edge is unknown"),
        (",a,b\na,0,2\nb,2,0\n", "expected marks among"),
        (",a,b\na,0,x\nb,0,0\n", "line 2: expected 0 or 1 in a matrix; got 'x'"),
        (",a,b\na,1,1\nb,0,0\n", "a cannot be a cause of itself"),
        ("from,to,kind\na,b,maybe\n", "line 2: expected kind directed or bidirected; got 'maybe'"),
        ("from,to\n,b\n", "line 2: expected a variable under from"),
    ],
)
def test_what_is_unknown_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        from_table(text)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0, 1]], "expected a square matrix of 2 variables"),
        ([[0, -1], [-1, 0]], "the direction of the edge is unknown"),
        ([[0, -1], [2, 0]], "also for those with the circles of a PAG"),
        ([[0, -1], [0, 0]], "the direction of the edge is unknown"),
    ],
)
def test_marks_without_a_direction_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        from_matrix(matrix, ["a", "b"])
