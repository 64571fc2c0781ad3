"""Classes of graphs, as they are written."""

import yaml

from rehearsal_torch.graphs.graph_class import GraphClass, graph_class
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

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
