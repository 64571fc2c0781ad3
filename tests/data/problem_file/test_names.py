"""Names that one part of a problem file has and another has not."""

from types import SimpleNamespace

import pandas as pd

from rehearsal_torch.data.problem_file.findings import Findings
from rehearsal_torch.data.problem_file.names import column_faults, graph_faults, role_faults
from rehearsal_torch.data.reading import ReadTable
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

VARIABLES = {"dose": "action", "yield": "outcome", "note": "other"}
ABOUT = {name: SimpleNamespace(role=role) for name, role in VARIABLES.items()}


def test_roles_that_nobody_has_are_faults_unless_there_are_no_variables_at_all():
    found = Findings("problem.yaml", {"variables": 3})
    role_faults(ABOUT, ("action", "state"), found)
    role_faults({}, ("action",), found)
    assert found.faults == ["line 3, variables: expected at least one of the role state; there is none"]


def test_the_graph_and_the_variables_have_the_same_names_but_for_others():
    found = Findings("problem.yaml", {"graph": 5, "variables.yield": 4})
    graph_faults(ABOUT, RehearsalGraph.of({"yeild": ["dose"]}), found)
    assert found.faults == [
        "line 5, graph: 'yeild' is not under variables; did you mean 'yield'?",
        "line 4, variables.yield: is in no edge of the graph; did you mean 'yeild'?",
    ]
    assert found.warnings == ["variables.note: is in no edge of the graph, and so is not used"]


def test_a_variable_beside_the_graph_is_compared_with_all_of_it_where_every_name_is_taken():
    found = Findings("problem.yaml", {"variables.yeild": 4})
    about = {**ABOUT, "yeild": SimpleNamespace(role="outcome")}
    graph_faults(about, RehearsalGraph.of({"yield": ["dose"]}), found)
    assert found.faults == ["line 4, variables.yeild: is in no edge of the graph; did you mean 'yield'?"]


def test_columns_are_those_of_the_table():
    found = Findings("problem.yaml", {"unit": 2})
    rows = ReadTable(pd.DataFrame({"pump": [1]}), "pumps.csv")
    column_faults([("unit", "pmp"), ("time", "pump")], rows, found)
    assert found.faults == ["line 2, unit: no column 'pmp' in pumps.csv; did you mean 'pump'?"]
