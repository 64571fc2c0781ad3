import csv

import pytest
import torch
import yaml

from rehearsal_torch.graphs.bootstrap import GraphPosterior
from rehearsal_torch.graphs.learning import learn
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.reporting.figures.learnt_graphs import write_learnt
from tests.toys.graph_files import read_graph


@pytest.fixture
def written(tmp_path):
    values = torch.randn(400, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values[:, 1] += 2 * values[:, 0]
    one, other = (RehearsalGraph.mixed(["a", "b"], [edge], []) for edge in (("a", "b"), ("b", "a")))
    posterior = GraphPosterior((one, other), (0.75, 0.25), (3.0, 1.0), 5, {"a column is constant": 1})
    parts = {"context": (), "alterable": ("a",), "outcomes": ("b",)}
    names = write_learnt(tmp_path / "out", {"test": "fisherz"}, learn(values, ["a", "b"]), posterior, parts)
    return tmp_path / "out", names, one


def test_every_file_that_is_named_is_there(written):
    out, names, _ = written
    assert sorted(names) == sorted(
        path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()
    )
    assert {"figures/graph.png", "figures/graph.svg"} <= set(names)


def test_the_class_and_the_probabilities_are_written(written):
    out, _, _ = written
    content = yaml.safe_load((out / "graphs.yaml").read_text())
    assert content["options"] == {"test": "fisherz"}
    assert (content["class"]["directed"], content["class"]["undirected"]) == ([], [["a", "b"]])
    assert [each["probability"] for each in content["posterior"]["graphs"]] == [0.75, 0.25]
    assert (content["posterior"]["resamples"], content["posterior"]["failures"]) == (
        5,
        {"a column is constant": 1},
    )
    with (out / "edges.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["from", "edge", "to", "probability"],
            ["a", "->", "b", "0.750000"],
            ["b", "->", "a", "0.250000"],
        ]


def test_the_most_probable_graph_can_be_read_back(written):
    out, _, best = written
    assert yaml.safe_load((out / "graph.yaml").read_text())["graph"] == best.to_plain()
    assert read_graph(out / "graph.graphml").edges == best.edges
    assert "a -> b" in (out / "graph.dagitty").read_text()
