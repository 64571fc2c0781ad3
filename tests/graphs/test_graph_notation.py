import numpy as np
import pytest
import yaml
from causallearn.graph.Edges import Edges
from causallearn.graph.GeneralGraph import GeneralGraph
from causallearn.graph.GraphNode import GraphNode
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.equivalence import signature
from rehearsal_torch.graphs.graph_notation import GraphClass, from_general_graph, graph_class, graph_of
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from tests.toys.random_graphs import random_graph


def test_edges_in_dagittys_notation_are_a_graph():
    expected = graph_of({"parents": {"y": ["x", "a"], "a": ["x"], "z": []}, "bidirected": [["a", "b"]]})
    for plain in (
        ["x -> {y a}", "a -> y", "a <-> b", "z", "x -> y"],
        "x -> a -> y <- x\nz\na <-> b",
        "x -> a; a -> y; x -> y; z; b <-> a",
    ):
        assert set(graph_of({"graph": plain}).edges) == set(expected.edges)
        assert set(graph_of(plain).names) == set(expected.names)
        assert graph_of(plain).bidirected == expected.bidirected


@pytest.mark.parametrize("arrow", ["->", "-->", "\u2192", "\u27f6"])
def test_arrows_of_other_notations_are_edges(arrow):
    """`a <-- b` gave a variable called `-`, and a list of `a \u2192 b` was no list of edges."""
    backwards = {"->": "<-", "-->": "<--", "\u2192": "\u2190", "\u27f6": "\u27f5"}[arrow]
    both = {"->": "<->", "-->": "<-->", "\u2192": "\u2194", "\u27f6": "\u27f7"}[arrow]
    for blank in (" ", ""):
        texts = [blank.join(words) for words in (("x", arrow, "a"), ("y", backwards, "x"), ("a", both, "y"))]
        for plain in (texts, "; ".join(texts)):
            graph = graph_of({"graph": plain})
            assert (graph.edges, graph.bidirected) == ((("x", "a"), ("x", "y")), (("a", "y"),))


def test_all_faults_are_told_at_once():
    with pytest.raises(ValueError, match="itself") as told:
        graph_of({"parents": {"x": ["x"]}, "bidirected": [["x"]]})
    assert "two variables or more" in str(told.value)


def test_an_order_is_the_largest_graph_that_agrees_with_it():
    graph = graph_of({"order": ["x", ["a", "b"], "y"], "forbidden": ["x -> y"]})
    assert set(graph.edges) == {("x", "a"), ("x", "b"), ("a", "y"), ("b", "y")}
    assert graph.bidirected == (("a", "b"),)
    assert graph_of({"graph": {"order": ["x", "y"]}}).edges == (("x", "y"),)


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
    if graph.hidden:
        return
    nodes = {name: GraphNode(name) for name in graph.names}
    marked = GeneralGraph(list(nodes.values()))
    for one, other in graph.edges:
        marked.add_edge(Edges().directed_edge(nodes[one], nodes[other]))
    for one, other in graph.bidirected:
        marked.add_edge(Edges().bidirected_edge(nodes[one], nodes[other]))
    assert signature(from_general_graph(marked)) == signature(graph)
    assert signature(graph_of(marked)) == signature(graph)


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


PARENTS = {"y": ["a", "u"]}


def test_undirected_edges_are_directed_in_every_way_without_new_v_structures():
    found = graph_class({"parents": PARENTS, "undirected": [["u", "a"]]})
    assert [("u", "a") in graph.edges for graph in found.graphs].count(True) == 1
    assert found.weights == (0.5, 0.5)
    assert {found.described(index) for index in range(2)} == {"u -> a", "a -> u"}
    # x -> a <- u would be a new v-structure.
    (only,) = graph_class({"parents": {"a": ["x"]}, "undirected": [["a", "u"]]}).graphs
    assert ("a", "u") in only.edges
    assert graph_class({"graph": {"parents": PARENTS}}).described(0) == "only the edges that all graphs share"


def test_lists_and_files_of_learn_graph_have_probabilities(tmp_path):
    graphs = [{"parents": {"b": ["a"]}, "probability": 3.0}, {"parents": {"a": ["b"]}, "probability": 1.0}]
    listed = graph_class(graphs)
    assert listed.weights == (0.75, 0.25)
    plain = [
        {"probability": weight, "votes": 0.1, **graph.to_plain()}
        for graph, weight in zip(listed.graphs, listed.weights, strict=True)
    ]
    path = tmp_path / "graphs.yaml"
    path.write_text(yaml.safe_dump({"class": {"notes": []}, "posterior": {"graphs": plain}}))
    assert graph_class(path) == listed
    assert graph_class(listed) is listed
    path.write_text(yaml.safe_dump(graphs))
    assert graph_class(str(path)) == listed


def test_what_sets_a_member_apart_is_told_shortly():
    names = "abcdefg"
    full = RehearsalGraph.of({name: list(names[:place]) for place, name in enumerate(names)})
    empty = RehearsalGraph.of({name: [] for name in names})
    found = GraphClass((full, empty), (1.0, 1.0))
    assert found.described(0).endswith("and 17 more")
    assert found.described(1) == "only the edges that all graphs share"
