"""Faults and warnings have the line of their key, and are told once."""

import pytest

from rehearsal_torch.data.problem_file.findings import Findings, ProblemError, key


def test_each_is_told_once_with_its_line():
    found = Findings("p.yaml", {"variables": 2, "variables.a": 3})
    for _ in range(2):
        found.fault(key("variables", "a", "range"), "is wrong")
        found.warn("variables.b", "is odd")
    found.of_reader(["variables.a: worse", "without a path"])
    assert found.faults == [
        "line 3, variables.a.range: is wrong",
        "line 3, variables.a: worse",
        "without a path",
    ]
    assert found.warnings == ["line 2, variables.b: is odd"]
    with pytest.raises(ProblemError, match=r"p.yaml: 3 faults, nothing was fitted\n- line 3"):
        found.settle()
    Findings("p.yaml").settle()
    assert key("variables", "a.b") == "variables.'a.b'"
