"""Graphs written and read again: YAML, GraphML, GML, dagitty and networkx."""

import networkx as nx
import pytest
import yaml
from causallearn.graph.Edges import Edges
from causallearn.graph.GeneralGraph import GeneralGraph
from causallearn.graph.GraphNode import GraphNode
from causallearn.utils.GraphUtils import GraphUtils
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.dagitty import model_of, to_dagitty
from rehearsal_torch.graphs.equivalence import signature
from rehearsal_torch.graphs.graph_files import ENDINGS, edges_in_dot, from_networkx, read_plain, to_networkx
from rehearsal_torch.graphs.graph_notation import graph_class, graph_of
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from tests.toys.graph_files import read_graph, to_dot, write_graph
from tests.toys.random_graphs import random_graph

NAMES = ["number of users", "1st", "Größe", "a-b", "x.y", "dag"]
ODD = RehearsalGraph.mixed(
    NAMES, [(NAMES[0], NAMES[1]), (NAMES[0], NAMES[2]), (NAMES[2], NAMES[3])], [(NAMES[1], NAMES[2])]
)


@settings(max_examples=8, derandomize=True, deadline=None)
@given(st.integers(0, 10**6))
def test_every_notation_gives_the_graph_back(tmp_path_factory, seed):
    graph, folder = random_graph(seed), tmp_path_factory.mktemp("graphs")
    for ending in ENDINGS:
        file = write_graph(graph, folder / f"graph{ending}")
        assert signature(read_graph(file)) == signature(graph), ending
    assert signature(from_networkx(to_networkx(graph))) == signature(graph)
    assert signature(model_of(to_dagitty(graph)).graph()) == signature(graph)


@pytest.mark.parametrize("ending", ENDINGS)
def test_names_may_be_of_any_kind(tmp_path, ending):
    assert signature(read_graph(write_graph(ODD, tmp_path / "new/folder" / f"graph{ending}"))) == signature(
        ODD
    )


def test_a_networkx_graph_with_another_kind_of_edge_is_refused():
    words = "edge a -> b: expected kind 'directed' or 'bidirected'; got 'wavy'"
    with pytest.raises(ValueError, match=words):
        from_networkx(nx.DiGraph([("a", "b", {"kind": "wavy"})]))


def test_yaml_takes_both_ways_of_writing_a_graph(tmp_path):
    graph = RehearsalGraph.of({"b": ("a",)}, [("b", "c")])
    plain = {"parents": {"b": ["a"], "c": None}, "bidirected": [["b", "c"]]}
    assert graph_of(plain) == graph_of({"graph": plain}) == graph_of(graph.to_plain()) == graph
    (tmp_path / "task.yml").write_text(yaml.safe_dump({"graph": plain, "context": ["a"]}))
    assert read_graph(tmp_path / "task.yml") == graph


def test_edges_without_a_direction_are_in_the_plain_data_and_in_no_graph(tmp_path):
    plain = {"parents": {"x": [], "a": [], "y": ["x", "a"]}, "undirected": [["x", "a"]]}
    (tmp_path / "graph.pdag").write_text("pdag { x; a; x -- a; {x a} -> y }")
    (tmp_path / "graph.yaml").write_text(yaml.safe_dump({"graph": plain}))
    for name in ("graph.pdag", "graph.yaml"):
        assert read_plain(tmp_path / name) == plain
        with pytest.raises(ValueError, match="direction"):
            read_graph(tmp_path / name)
        assert len(graph_class(read_plain(tmp_path / name)).graphs) == 2
    graph = RehearsalGraph.of({"b": ("a",)})
    assert read_plain(write_graph(graph, tmp_path / "whole.pdag")) == graph.to_plain()


BOW = RehearsalGraph.of({"b": ("a",), "c": ("b",)}, [("b", "c")])


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_arrow_beside_a_hidden_common_cause_is_written_and_read(tmp_path, ending):
    assert read_graph(write_graph(BOW, tmp_path / f"graph{ending}")) == BOW
    assert BOW.hidden == (("b", "c"),)


def test_graph_files_are_bounded(tmp_path):
    (tmp_path / "graph.gml").write_text("graph [" + "a [" * 5000)
    with pytest.raises(ValueError, match=r"graph\.gml: "):
        read_graph(tmp_path / "graph.gml")
    (tmp_path / "graph.txt").write_text("dag { a -> b }" + " " * 2**22)
    with pytest.raises(ValueError, match="expected at most 4 MiB"):
        read_graph(tmp_path / "graph.txt")


PYDOT = """
strict digraph "G" {
fontsize=12;
graph [rankdir=LR]; node [shape=box, label="every"];
0 [label=age];
1 [label="body mass; index", pos="0,1!"];
2 [label="progression"];  // the outcome
3;
/* edges */
0 -> 1 [dir=both, arrowtail=none];
1 -> 2  [weight=2];
0 -> 2; # a comment is not one here
}
"""


def test_labels_are_names_and_attributes_of_other_kinds_are_ignored():
    text = PYDOT.replace("; # a comment is not one here", ";").replace("[dir=both, arrowtail=none]", "")
    graph = edges_in_dot(text).graph()
    assert set(graph.names) == {"age", "body mass; index", "progression", "3"}
    assert set(graph.edges) == {
        ("age", "body mass; index"),
        ("body mass; index", "progression"),
        ("age", "progression"),
    }


@settings(max_examples=20, derandomize=True, deadline=None)
@given(st.lists(st.text("ab0 []{}=<>;,#/-\\n", min_size=1, max_size=9), min_size=3, max_size=3, unique=True))
def test_names_of_any_kind_are_read_back(names):
    """Of a name `a[0]`, `[0]` was taken for attributes."""
    first, second, third = names
    graph = RehearsalGraph.of({second: (first,), third: (first,)}, [(second, third)])
    assert signature(edges_in_dot(to_dot(graph)).graph()) == signature(graph)


def test_the_ends_that_are_drawn_are_the_arrow():
    """Every edge of causal-learn's DOT, dir=both with `arrowtail=none`, was a hidden common cause, and an
    edge of `dir=none` was directed."""
    text = """digraph { edge [dir = forward]; a -> b [dir=both, arrowtail=none, arrowhead=normal]
    a -> c [dir=both, arrowtail=normal, arrowhead=none]; c -> d [dir="none"]; d -> e [arrowhead=none]
    e -> f [dir=both, arrowhead=vee]
    f -> g [arrowtail=none, color=red]; }"""
    found = edges_in_dot(text)
    assert found.directed == (("a", "b"), ("c", "a"), ("f", "g"))
    assert found.bidirected == (("e", "f"),)
    assert found.undirected == (("c", "d"), ("d", "e"))


def test_what_causal_learn_draws_is_read():
    nodes = [GraphNode(name) for name in ("a", "b", "c", "d")]
    graph = GeneralGraph(nodes)
    graph.add_edge(Edges().directed_edge(nodes[0], nodes[1]))
    graph.add_edge(Edges().directed_edge(nodes[2], nodes[1]))
    graph.add_edge(Edges().bidirected_edge(nodes[0], nodes[2]))
    graph.add_edge(Edges().undirected_edge(nodes[2], nodes[3]))
    found = edges_in_dot(GraphUtils.to_pydot(graph).to_string())
    assert found.names == ("a", "b", "c", "d")
    assert set(found.directed) == {("a", "b"), ("c", "b")}
    assert [set(each) for each in (*found.bidirected, *found.undirected)] == [{"a", "c"}, {"c", "d"}]


@pytest.mark.parametrize(
    "mark",
    [
        "[latent]",
        "[hidden=true]",
        '[observed="no"]',
        "[unobserved=1, shape=circle]",
        '[label="Unobserved Confounders"]',
        '[label="Unobserved"]',
    ],
)
def test_hidden_nodes_of_dot_are_projected_out(mark):
    graph = edges_in_dot(
        f"digraph {{ x -> a; a -> y; U {mark}; V {mark}; U -> {{a y}}; V -> {{a b}} }}"
    ).graph()
    assert set(graph.names) == {"x", "a", "y", "b"}
    assert set(map(frozenset, graph.bidirected)) == {frozenset("ay"), frozenset("ab")}
    assert set(graph.edges) == {("x", "a"), ("a", "y")}


def test_nodes_that_are_seen_are_variables():
    text = (
        'digraph {U [observed="yes", label="latent heat"]; hidden_layer [hidden=no]; {U hidden_layer} -> y}'
    )
    assert set(edges_in_dot(text).graph().names) == {"latent heat", "hidden_layer", "y"}


@pytest.mark.parametrize(
    "mark", ['label "U" observed "no"', 'label "U" latent 1', 'label "Unobserved confounder 1"']
)
def test_hidden_nodes_of_gml_are_projected_out(tmp_path, mark):
    (tmp_path / "graph.gml").write_text(
        'graph [ directed 1 node [ id 0 label "a" ] node [ id 1 label "y" ] node [ id 2 ' + mark + " ] "
        "edge [ source 0 target 1 ] edge [ source 2 target 0 ] edge [ source 2 target 1 ] ]"
    )
    assert read_graph(tmp_path / "graph.gml") == RehearsalGraph.mixed("ay", [("a", "y")], [("a", "y")])
