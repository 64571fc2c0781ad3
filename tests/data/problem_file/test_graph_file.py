"""The graph of a problem file, written there or in a file of its own."""

import pytest

from rehearsal_torch.data.problem_file.findings import Findings
from rehearsal_torch.data.problem_file.graph_file import built_graph, graph_part


def test_a_written_graph_is_kept_and_a_file_is_read(tmp_path):
    found = Findings("problem.yaml")
    assert graph_part(["a -> b"], tmp_path, found) == ["a -> b"]
    assert graph_part("a -> b", tmp_path, found) == "a -> b"
    (tmp_path / "graph.dot").write_text("digraph { a -> b; }")
    assert graph_part("graph.dot", tmp_path, found)["edges"] == [["a", "b"]]
    assert found.faults == []


@pytest.mark.parametrize("name", ["graph.bif", "my graph.RData", "graphs/model.json", "graph.DOT"])
def test_a_file_of_another_kind_is_a_fault_that_lists_those_that_are_read(tmp_path, name):
    """It was answered with the forms of a graph that is written in the file."""
    found = Findings("problem.yaml", {"graph": 3})
    assert graph_part(name, tmp_path, found) is None
    (told,) = found.faults
    assert told.startswith(f"line 3, graph: {name}: expected a file with one of the endings .yaml, .yml, ")
    assert ".dagitty" in told


def test_texts_that_name_no_file_are_kept(tmp_path):
    found = Findings("problem.yaml")
    for text in ("a -> b.c", "a.b -> c.d", "learn", "a => b.c", "a 1.5"):
        assert graph_part(text, tmp_path, found) == text
    assert found.faults == []


def test_a_graph_is_built_if_it_is_one():
    assert built_graph(["a -> b"]).edges == (("a", "b"),)
    assert built_graph(["a -> b", "b -> a"]) is None
    assert built_graph(None) is None
