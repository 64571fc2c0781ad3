"""scripts/learn_graph.py, as somebody types it."""

import csv

import pandas as pd
import pytest
import yaml

from rehearsal_torch.console_command import run
from rehearsal_torch.graphs.equivalence import signature
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from tests.toys.graph_files import read_graph
from tests.toys.random_graphs import drawn

GRAPH = RehearsalGraph.mixed("xpqy", [("x", "p"), ("x", "q"), ("p", "y"), ("q", "y")], [("p", "q")])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "table.csv"
    pd.DataFrame(drawn(GRAPH, 0, 2000).numpy(), columns=list(GRAPH.names)).assign(note="text").to_csv(
        file, index=False
    )
    return file


def answered(capsys, *typed):
    code = run("learn_graph", [str(text) for text in typed])
    return code, capsys.readouterr()


def test_graphs_are_learnt_written_and_drawn(capsys, table, tmp_path):
    code, said = answered(
        capsys,
        f"data={table}",
        "columns=x,p,q,y",
        "context=x",
        "outcomes=y",
        "alterable=p",
        "resamples=8",
        "weights=frequency",
        f"out={tmp_path / 'out'}",
    )
    assert code == 0, said.err
    assert "2000 rows, 4 variables" in said.out
    assert "2 directed graphs are Markov equivalent; they represent 3 rehearsal graphs" in said.out
    assert "8 of 8 resamples gave" in said.out
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {
        "graphs.yaml",
        "edges.csv",
        "graph.yaml",
        "graph.dagitty",
        "graph.graphml",
        "figures",
    }
    assert {path.name for path in (out / "figures").iterdir()} == {"graph.png", "graph.svg"}
    content = yaml.safe_load((out / "graphs.yaml").read_text())
    assert content["options"]["weights"] == "frequency"
    assert signature(GRAPH) in {
        signature(RehearsalGraph(tuple(map(tuple, one["cliques"])), tuple(map(tuple, one["edges"]))))
        for one in content["class"]["graphs"]
    }
    assert sum(one["probability"] for one in content["posterior"]["graphs"]) == pytest.approx(1)
    same = [signature(read_graph(out / name)) for name in ("graph.yaml", "graph.dagitty", "graph.graphml")]
    assert same[0] == same[1] == same[2]
    assert "p [exposure]" in (out / "graph.dagitty").read_text()
    with (out / "edges.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {row["edge"] for row in rows} == {"->", "<->"}
    assert [float(row["probability"]) for row in rows] == sorted(
        (float(row["probability"]) for row in rows), reverse=True
    )


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["data=TABLE", "columns=x,p", "context=y"], "context: no column 'y'. There are x, p"),
        (
            ["data=TABLE", "columns=x,p,q,y", "max_graphs=1"],
            "more than 1 directed graphs are Markov equivalent",
        ),
        (["data=TABLE", "columns=x,p", "background=TABLE"], "expected a value of at most 10000 characters"),
    ],
)
def test_slips_are_answered(capsys, table, typed, message):
    code, said = answered(capsys, *(text.replace("TABLE", str(table)) for text in typed))
    assert code == 2
    assert message in said.err


def test_constant_columns_and_doubled_ones_are_told(capsys, table, tmp_path):
    frame = pd.read_csv(table).drop(columns="note")
    frame.assign(c=1.0).to_csv(tmp_path / "constant.csv", index=False)
    frame.assign(d=2 * frame["p"]).to_csv(tmp_path / "doubled.csv", index=False)
    assert "c: all 2000 values are 1" in answered(capsys, f"data={tmp_path / 'constant.csv'}")[1].err
    assert "d is a linear function of ['p']" in answered(capsys, f"data={tmp_path / 'doubled.csv'}")[1].err
