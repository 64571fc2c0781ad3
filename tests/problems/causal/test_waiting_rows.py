"""Rows that wait for their result: which they are, what is said of them, and proposals as such rows."""

import io

import pandas as pd
import pytest

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.reading import TableError
from rehearsal_torch.problems.causal.waiting_rows import (
    as_text,
    waiting,
    waiting_actions,
    with_proposals,
)

TASK = CausalTask.of(
    {
        "graph": {"parents": {"X": ["a"], "Y": ["X", "b"], "Z": ["X"]}},
        "actions": {"a": [0, 1], "b": [0, 5]},
        "reward": {"weights": {"Y": 1.0, "Z": -1.0}},
    }
)
ROWS = pd.DataFrame(
    {
        "run": [1, 2, 3, 4, 5],
        "a": [0.1, 0.2, 0.3, 0.4, None],
        "b": [1, 2, 3, 4, 5],
        "X": [1.0, 2.0, None, None, None],
        "Y": [1.0, None, None, 4.0, None],
        "Z": [1.0, None, None, None, None],
    }
)


def test_a_row_waits_if_its_actions_are_there_and_no_outcome_is():
    # Line 3 has X and waits; line 5 is half measured, and line 6 does not say what to set.
    assert waiting(ROWS, TASK).tolist() == [False, True, True, False, False]
    assert waiting_actions(ROWS, TASK, "t.csv").tolist() == [[0.2, 2.0], [0.3, 3.0]]
    assert not waiting(ROWS.drop(columns="Z"), TASK).any()
    bare = ROWS[["a", "b", "Y", "Z"]]
    assert waiting(bare, TASK).tolist() == [False, True, True, False, False], "no other column is needed"
    assert waiting_actions(ROWS.head(1), TASK, "t.csv").shape == (0, 2)
    with pytest.raises(TableError, match=r"t\.csv: (?s:.*)a: expected numbers; got 'half' in line 3"):
        waiting_actions(ROWS.assign(a=["0.1", "half", "0.3", "0.4", "0.5"]), TASK, "t.csv")


def test_proposals_are_rows_of_the_table_with_empty_results():
    frame = ROWS.head(2).assign(note=["warm, dry", None], ok=[True, False])
    made = with_proposals(frame, TASK, [{"b": 5.0, "a": 0.123456789012345}])
    text = made.to_csv(index=False)
    assert text.splitlines() == [
        "run,a,b,X,Y,Z,note,ok",
        '1,0.1,1,1.0,1.0,1.0,"warm, dry",True',
        "2,0.2,2,2.0,,,,False",
        ",0.123456789012345,5,,,,,",
    ]
    again = pd.read_csv(io.StringIO(text))
    assert waiting(again, TASK).tolist() == [False, True, True]
    assert waiting_actions(again, TASK, "t.csv")[-1].tolist() == [0.123456789012345, 5.0]


def test_without_a_table_the_columns_are_those_of_the_task():
    made = with_proposals(pd.DataFrame(), TASK, [{"a": 0.5, "b": 2.0}, {"a": 1.0, "b": 0.25}])
    assert made.to_csv(index=False).splitlines() == ["a,b,X,Y,Z", "0.5,2,,,", "1,0.25,,,"]


def test_proposals_are_written_as_the_column_is():
    frame = pd.DataFrame({"a": [True, False], "b": [0.5, 2.0], "Y": [1.5, None], "set:X": [0, 1]})
    made = with_proposals(frame, TASK, [{"a": 1.0, "b": 2.25}])
    assert made.iloc[-1].tolist()[:4] == [True, 2.25, None, 0]
    again = pd.read_csv(io.StringIO(as_text(made, ",", ".")))
    assert again["a"].tolist() == [True, False, True]
    assert again["set:X"].tolist() == [0, 1, 0]


@pytest.mark.parametrize(("separator", "decimal"), [(";", ","), (",", ","), ("\t", "."), ("|", ",")])
def test_the_text_has_the_signs_of_the_table(separator, decimal):
    made = with_proposals(ROWS.head(2).assign(note=["warm; dry, 1.5", None]), TASK, [{"a": 0.25, "b": 2.0}])
    text = as_text(made, separator, decimal)
    again = pd.read_csv(io.StringIO(text), sep=separator, decimal=decimal)
    assert again["a"].tolist() == [0.1, 0.2, 0.25]
    assert again["note"].iloc[0] == "warm; dry, 1.5"
    assert text.splitlines()[0] == separator.join(made.columns)


def test_whole_numbers_stay_whole_beside_an_empty_cell():
    frame = ROWS.head(2)[["run", "a", "b", "X", "Y", "Z"]]
    text = as_text(with_proposals(frame, TASK, [{"a": 0.5, "b": 2.0}]), ";", ",")
    assert text.splitlines()[1:] == ["1;0,1;1;1,0;1,0;1,0", "2;0,2;2;2,0;;", ";0,5;2;;;"]
