"""A first problem file of experiments: what is guessed, what is left to fill in, and that it is then read."""

import pandas as pd
import pytest
import yaml

from rehearsal_torch.data.problem_file.findings import ProblemError
from rehearsal_torch.data.reading import ReadTable, TableError
from rehearsal_torch.problems.written.trials_draft import trials_draft
from rehearsal_torch.problems.written.trials_file import trials_problem
from tests.problems.written.conftest import experiments


def drafted(frame):
    return trials_draft(ReadTable(frame, "experiments.csv"), "experiments.csv", "problem.yaml")


def test_a_draft_is_complete_but_for_the_graph(tmp_path):
    experiments().to_csv(tmp_path / "experiments.csv", index=False)
    text = drafted(experiments().assign(note="warm"))
    assert "# note: left out: no numbers, or empty cells" in text
    file = tmp_path / "problem.yaml"
    file.write_text(text)
    with pytest.raises(ProblemError) as caught:
        trials_problem(file)
    assert "graph: nothing is written there yet" in caught.value.faults[0]
    lines = [line.replace("  # - dose", "  - dose") for line in text.splitlines() if not line.startswith("#")]
    file.write_text("\n".join(lines).replace("graph: # <- fill in: the arrows; delete", "graph: #"))
    problem = trials_problem(file)
    assert problem.task.actions == ("dose",)
    assert problem.task.reward.names == ("yield",)
    assert yaml.safe_load(text)["variables"]["temperature"] == "other"


def test_two_columns_of_numbers_are_needed():
    with pytest.raises(TableError, match="expected at least two columns of numbers"):
        drafted(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))
