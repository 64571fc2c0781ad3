"""Names that one part of a problem file has and another has not."""

from types import SimpleNamespace

from rehearsal_torch.data.problem_file.findings import Findings
from rehearsal_torch.data.problem_file.names import graph_faults
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

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
