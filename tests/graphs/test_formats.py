"""Graphs written and read again: YAML, GraphML, GML, dagitty and networkx."""

import networkx as nx
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.graphs.bidirection import signature
from rehearsal_torch.graphs.dagitty import model_of, to_dagitty
from rehearsal_torch.graphs.formats import (
    ENDINGS,
    from_networkx,
    read_plain,
    to_networkx,
    write_graph,
)
from rehearsal_torch.graphs.graph_class import graph_class
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.written_graph import graph_of
from tests.toys.graph_files import read_graph
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


def test_networkx_sees_kinds_and_plain_graphs_are_read():
    made = to_networkx(RehearsalGraph.of({"b": ("a",)}, [("b", "c")]))
    assert dict(made.edges) == {
        ("a", "b"): {"kind": "directed"},
        ("a", "c"): {"kind": "directed"},
        ("b", "c"): {"kind": "bidirected"},
    }
    assert from_networkx(nx.DiGraph([("a", "b"), ("a", "c")])).edges == (("a", "b"), ("a", "c"))
    several = nx.MultiDiGraph([("a", "b"), ("a", "b")])
    assert from_networkx(several).edges == (("a", "b"),)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.Graph([("a", "b")]), "expected a directed networkx graph"),
        (
            nx.DiGraph([("a", "b", {"kind": "wavy"})]),
            "edge a -> b: expected kind 'directed' or 'bidirected'; got 'wavy'",
        ),
        (nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]), "form a cycle"),
        (
            nx.DiGraph([("a", "b"), ("b", "c"), ("c", "b")]),
            "b -> c and c -> b without `kind` may be an undirected edge",
        ),
        (
            nx.DiGraph([("a", "b", {"kind": "directed"}), ("b", "a", {"kind": "directed"})]),
            "a -> b and b -> a join the same two variables",
        ),
        (nx.DiGraph([("a", "a")]), "an edge between two different variables"),
        (nx.path_graph(1002, create_using=nx.DiGraph), "expected at most 1000 variables; got 1002"),
        (nx.DiGraph([("1", "a"), (1, "a")]), "several nodes have the same name"),
    ],
)
def test_other_networkx_graphs_are_refused(graph, message):
    with pytest.raises(ValueError, match=message):
        from_networkx(graph)


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


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_graph(tmp_path / "none.yaml")


BOW = RehearsalGraph.of({"b": ("a",), "c": ("b",)}, [("b", "c")])


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_arrow_beside_a_hidden_common_cause_is_written_and_read(tmp_path, ending):
    assert read_graph(write_graph(BOW, tmp_path / f"graph{ending}")) == BOW
    assert BOW.bows == (("b", "c"),)


def test_undirected_edges_of_other_programs_are_no_bidirected_ones(tmp_path):
    node = '<node id="a"/><node id="b"/>'
    for kind, edges in (
        ("undirected", '<edge source="a" target="b"/>'),
        ("directed", '<edge source="a" target="b"/><edge source="b" target="a"/>'),
    ):
        (tmp_path / "graph.graphml").write_text(
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph '
            f'edgedefault="{kind}">{node}{edges}</graph></graphml>'
        )
        with pytest.raises(ValueError, match=r"expected a directed networkx graph|may be an undirected edge"):
            read_graph(tmp_path / "graph.graphml")


def test_graph_files_are_bounded(tmp_path):
    (tmp_path / "graph.gml").write_text("graph [" + "a [" * 5000)
    with pytest.raises(ValueError, match=r"graph\.gml: "):
        read_graph(tmp_path / "graph.gml")
    (tmp_path / "graph.txt").write_text("dag { a -> b }" + " " * 2**22)
    with pytest.raises(ValueError, match="expected at most 4 MiB"):
        read_graph(tmp_path / "graph.txt")
