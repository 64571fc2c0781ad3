"""Graphs of causal-learn."""

import numpy as np
import pytest
from causallearn.graph.Edges import Edges
from causallearn.graph.GeneralGraph import GeneralGraph
from causallearn.graph.GraphNode import GraphNode
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.bidirection import signature
from rehearsal_torch.graphs.general_graph import from_general_graph
from rehearsal_torch.graphs.written_graph import graph_of
from tests.toys.random_graphs import random_graph


class Marked:
    """What causal-learn's class has of it."""

    def __init__(self, marks, names):
        self.graph, self.names = np.array(marks), names

    def get_node_names(self):
        return self.names


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_marks_of_causal_learn_are_the_same_graph(seed):
    graph = random_graph(seed)
    if graph.bows:
        return
    nodes = {name: GraphNode(name) for name in graph.names}
    marked = GeneralGraph(list(nodes.values()))
    for one, other in graph.edges:
        marked.add_edge(Edges().directed_edge(nodes[one], nodes[other]))
    for one, other in graph.bidirected:
        marked.add_edge(Edges().bidirected_edge(nodes[one], nodes[other]))
    assert signature(from_general_graph(marked)) == signature(graph)
    assert signature(graph_of(marked)) == signature(graph)


def test_hidden_common_causes_alone_are_a_graph():
    """Without a tail, two heads were taken for an unknown direction."""
    assert from_general_graph(Marked([[0, 1], [1, 0]], ["a", "b"])).bidirected == (("a", "b"),)


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ([[0, 1]], "expected a square matrix of 2 variables"),
        ([[0, -1], [-1, 0]], "a and b: the direction of the edge is unknown"),
        ([[0, -1], [2, 0]], "also those with the circles of a PAG"),
        ([[0, -1], [0, 0]], "the direction of the edge is unknown"),
        ([[1, 0], [0, 0]], "a cannot be a cause of itself"),
    ],
)
def test_marks_without_a_direction_are_refused(marks, message):
    with pytest.raises(ValueError, match=message):
        from_general_graph(Marked(marks, ["a", "b"]))
