"""A first problem file of episodes: what is guessed, what is left to fill in, and that it is then read."""

import numpy as np
import pandas as pd
import pytest
import yaml

from rehearsal_torch.data.problem_file.findings import ProblemError
from rehearsal_torch.data.reading import ReadTable, TableError
from rehearsal_torch.problems.written.own_sequence import OwnSequence
from rehearsal_torch.problems.written.sequence_draft import sequence_draft, unit_and_time
from rehearsal_torch.problems.written.sequence_file import sequence_problem
from tests.problems.written.conftest import pumps


def drafted(frame):
    return sequence_draft(ReadTable(frame, "pumps.csv"), "pumps.csv", "problem.yaml")


def test_a_draft_is_complete_but_for_the_reward(tmp_path):
    pumps().to_csv(tmp_path / "pumps.csv", index=False)
    text = drafted(pumps().assign(note=[f"free text {each}" for each in range(240)]))
    file = tmp_path / "problem.yaml"
    file.write_text(text)
    with pytest.raises(ProblemError) as caught:
        sequence_problem(file)
    (told,) = caught.value.faults
    assert "reward: nothing is written there yet" in told
    file.write_text(text.replace("reward:  # <- fill in, such as\n#   weights", "reward:\n  weights"))
    plain = yaml.safe_load(file.read_text())
    assert (plain["unit"], plain["time"]) == ("pump", "hour")
    roles = {
        name: about if isinstance(about, str) else about["role"] for name, about in plain["variables"].items()
    }
    assert roles == {
        "wear": "state",
        "maker": "static",
        "shift": "action",
        "valve": "action",
        "oil": "state",
    }
    problem = OwnSequence(file)
    assert len(problem.all) == 40
    assert problem.roles.static[0].values == ("A", "B")


def test_the_unit_is_the_column_with_one_row_for_each_time():
    found = unit_and_time(pumps())
    assert (found.unit, found.time, found.units) == ("pump", "hour", 40)
    dated = pumps().assign(day=pd.Timestamp("2024-03-01").strftime("%Y-%m-%d")).drop(columns="hour")
    assert unit_and_time(dated) is None
    rows = pd.DataFrame({"age": np.arange(30.0), "week": 1, "y": 2.0})
    assert unit_and_time(rows) is None
    with pytest.raises(TableError, match="expected a column of time, such as week or date, and one of units"):
        drafted(rows)


def test_empty_cells_are_named_with_a_policy():
    frame = pumps()
    frame.loc[3, "wear"] = None
    text = drafted(frame)
    assert "# Empty cells, by column: wear: 1." in text
    assert yaml.safe_load(text)["missing"] == "drop"


def test_none_is_the_least_of_levels():
    frame = pumps()
    frame["valve"] = frame["valve"].replace({"shut": "none"})
    assert yaml.safe_load(drafted(frame))["variables"]["valve"]["levels"] == ["none", "half", "open"]
