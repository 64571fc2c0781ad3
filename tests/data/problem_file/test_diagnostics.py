"""Faults and warnings have the line of their key, and are told once."""

from types import SimpleNamespace
from unicodedata import normalize

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.problem_file.cases_builder import written_problem
from rehearsal_torch.data.problem_file.diagnostics import Findings, ProblemError, graph_faults, key
from rehearsal_torch.files.schema import Fault
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph


def test_each_is_told_once_with_its_line():
    found = Findings("p.yaml", {"variables": 2, "variables.a": 3})
    for _ in range(2):
        found.fault(key("variables", "a", "range"), "is wrong")
        found.of_variable("b", "values", "is odd")
    found.add_faults([Fault("variables.a", "worse"), Fault("", "without a path")])
    assert found.faults == [
        "line 3, variables.a.range: is wrong",
        "line 3, variables.a: worse",
        "without a path",
    ]
    assert found.warnings == ["line 2, variables.b: is odd"]
    assert found.findings == (Finding("values", "b: is odd"),)
    with pytest.raises(ProblemError, match=r"p.yaml: 3 faults, nothing was fitted\n- line 3"):
        found.settle()
    Findings("p.yaml").settle()
    assert key("variables", "a.b") == "variables.'a.b'"


VARIABLES = {"dose": "action", "yield": "outcome", "note": "other"}
ABOUT = {name: SimpleNamespace(role=role) for name, role in VARIABLES.items()}


def test_the_graph_and_the_variables_have_the_same_names_but_for_others():
    found = Findings("problem.yaml", {"graph": 5, "variables.yield": 4})
    graph_faults(ABOUT, RehearsalGraph.of({"yeild": ["dose"]}), found)
    assert found.faults == [
        "line 5, graph: 'yeild' is not under variables; did you mean 'yield'?",
        "line 4, variables.yield: is in no edge of the graph; did you mean 'yeild'?",
    ]
    assert found.warnings == ["variables.note: is in no edge of the graph, and so is not used"]
    found = Findings("problem.yaml")
    graph_faults({"a b": ABOUT["dose"]}, RehearsalGraph.of({"a": ["b"]}), found)
    assert found.faults[0].endswith("'b' is not under variables; put the name in double quotes, \"a b\"")


def test_names_are_compared_however_their_letters_are_composed(tmp_path):
    table = pd.DataFrame({"größe": np.arange(20.0) % 7, "y": np.arange(20.0) % 3})
    table.to_csv(tmp_path / normalize("NFD", "größe.csv"), index=False)
    text = "{data: größe.csv, variables: {größe: {role: action, range: [0, 6]}, y: outcome}, "
    for form in ("NFC", "NFD"):
        file = tmp_path / "problem.yaml"
        file.write_text(normalize(form, f"{text}graph: größe -> y, desired: y <= 1}}"), encoding="utf-8")
        assert written_problem(file).task.graph.names == ("größe", "y")
