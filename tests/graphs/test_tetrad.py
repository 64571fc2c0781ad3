"""The text of Tetrad and causal-learn: written, read, and what leaves the graph open."""

import re

import pytest
from causallearn.graph.Edges import Edges
from causallearn.graph.GeneralGraph import GeneralGraph
from causallearn.graph.GraphNode import GraphNode
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.bidirection import signature
from rehearsal_torch.graphs.dagitty import from_dagitty
from rehearsal_torch.graphs.formats import read_graph, read_plain
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.tetrad import from_tetrad, is_tetrad, to_tetrad
from tests.toys.random_graphs import random_graph

TEXT = """
Graph Nodes:
age;bmi;blood pressure;y;z

Graph Edges:
1. age --> bmi dd nl
2. bmi <-- blood pressure [blood pressure --> bmi]:0.9;[no edge]:0.1;
3. age --> y
4. bmi --> y
5. bmi <-> y

Graph Attributes:
BIC: -12.3

Ambiguous triples (i.e. list of triples for which there is ambiguous data about
whether they are colliders or not):
<age, bmi, y>
"""
PARTLY = "Graph Nodes:\nX1;X2;X3;X4\n\nGraph Edges:\n1. X1 --> X2\n2. X3 --> X2\n3. X1 --- X4\n"


@pytest.mark.parametrize("ending", [".txt", ".pdag", ".tetrad", ".dagitty"])
def test_nodes_and_edges_are_read(tmp_path, ending):
    (tmp_path / f"graph{ending}").write_bytes(TEXT.replace("\n", "\r\n").encode())
    graph = read_graph(tmp_path / f"graph{ending}")
    assert set(graph.names) == {"age", "bmi", "blood pressure", "y", "z"}
    assert set(graph.edges) == {("age", "bmi"), ("blood pressure", "bmi"), ("age", "y"), ("bmi", "y")}
    assert graph.bows == (("bmi", "y"),)


def test_nodes_may_be_left_out_or_separated_as_in_old_versions():
    assert from_tetrad("Graph Edges:\n1. a --> b\n2. b -> c").graph().edges == (("a", "b"), ("b", "c"))
    for nodes in ("a b c ", "a,b,c", "a, b, c", "========\na;b;c"):
        assert from_tetrad(f"Graph Nodes:\n{nodes}\n\nGraph Edges: \n1. a --> b").names == ("a", "b", "c")
    assert from_tetrad("Graph Nodes:\nblood pressure\n\nGraph Edges:\n").names == ("blood pressure",)


def test_edges_without_a_direction_make_a_class_of_graphs(tmp_path):
    (tmp_path / "graph.txt").write_text(PARTLY)
    plain = read_plain(tmp_path / "graph.txt")
    assert plain["undirected"] == [["X1", "X4"]]
    assert plain["parents"]["X2"] == ["X1", "X3"]
    with pytest.raises(ValueError, match=r"graph\.txt: X1 -- X4: the direction is unknown"):
        read_graph(tmp_path / "graph.txt")


def test_latent_variables_are_projected_out():
    found = from_tetrad("Graph Nodes:\na;y;(U)\n\nGraph Edges:\n1. U --> a\n2. (U) --> y\n3. a --> y\n")
    assert found.graph() == from_dagitty("dag { a; y; U [latent] U -> {a y} a -> y }").graph


def test_what_causal_learn_prints_is_read():
    nodes = [GraphNode(name) for name in ("a", "b", "c", "d")]
    graph = GeneralGraph(nodes)
    graph.add_edge(Edges().directed_edge(nodes[0], nodes[1]))
    graph.add_edge(Edges().directed_edge(nodes[2], nodes[1]))
    graph.add_edge(Edges().bidirected_edge(nodes[2], nodes[0]))
    graph.add_edge(Edges().undirected_edge(nodes[2], nodes[3]))
    found = from_tetrad(str(graph))
    assert found.names == ("a", "b", "c", "d")
    assert set(found.directed) == {("a", "b"), ("c", "b")}
    assert [set(each) for each in (*found.bidirected, *found.undirected)] == [{"a", "c"}, {"c", "d"}]


NAMES = st.one_of(st.text(min_size=1, max_size=8), st.text("ab o-<>;,[](.dn1\n", min_size=1, max_size=8))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.lists(NAMES, min_size=6, max_size=6, unique=True))
def test_what_is_written_is_read_back_or_refused(seed, names):
    graph = random_graph(seed)
    called = dict(zip(graph.names, names, strict=False))
    graph = RehearsalGraph(
        tuple(tuple(called[name] for name in clique) for clique in graph.cliques),
        tuple((called[one], called[other]) for one, other in graph.edges),
    )
    try:
        text = to_tetrad(graph)
    except ValueError:
        assert not all(name.isalnum() for name in graph.names)
        return
    assert signature(from_tetrad(text).graph()) == signature(graph)


@pytest.mark.parametrize("name", ["a;b", "a --> b", "(a)", "[a]", " a", "a\nb", "a\u2028b"])
def test_names_that_look_like_marks_are_not_written(name):
    with pytest.raises(ValueError, match="cannot be told from the marks of Tetrad's text: rename"):
        to_tetrad(RehearsalGraph.of({"y": (name,)}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Graph Edges:\n1. a o-o b\n2. b o-> c\n3. a --> c",
            "a o-o b, b o-> c: a circle marks an end that may be a cause or an effect; write -->",
        ),
        ("Graph Edges:\n" + "".join(f"1. a{i} o-o b\n" for i in range(7)), "a4 o-o b and 2 more: a circle"),
        (
            "Graph Edges:\n1. a --> b pd nl\n2. c --> b dd pl",
            "a --> b nl pd, c --> b dd pl: pd says that the",
        ),
        ("Graph Edges:\n1. a b", "cannot read '1. a b': expected an edge such as 1. age --> bmi"),
        ("Graph Edges:\n1. a ==> b", "cannot read '1. a ==> b': expected an edge"),
        ("Graph Nodes:\na;b\n\nGraph Edges:\n1. a --> bb", "'1. a --> bb': 'bb' is not among the nodes a, b"),
        ("Graph Nodes:\na;[s]\n\nGraph Edges:\n1. a --> s", "[s] selects the rows"),
        ("Graph Nodes:\na;b;(u)\n\nGraph Edges:\n1. a --- b", "u is latent beside edges without a direction"),
        ("dag { a -> b }", "expected `Graph Nodes:` and `Graph Edges:`"),
    ],
)
def test_what_leaves_the_graph_open_is_refused(text, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        from_tetrad(text)


def test_other_texts_are_none():
    assert not is_tetrad("dag { a -> b }")
    with pytest.raises(ValueError, match="join the same two variables"):
        from_tetrad("Graph Edges:\n1. a --> b\n2. b --> a").graph()
