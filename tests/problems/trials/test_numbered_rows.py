"""Rows that name a trial by its number: empty cells, corrections, and numbers that do not exist."""

import pandas as pd
import pytest

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.data.trials.trial import TrialWarning

TASK = {
    "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
    "actions": {"a": [0, 1], "b": [0, 2]},
    "reward": "Y",
}


def asked(task=TASK):
    optimiser = CausalOptimiser(task, initial=6)
    return optimiser, optimiser.ask(3)


def test_empty_cells_are_as_proposed_or_recorded():
    optimiser, (first, *_) = asked()
    rows = pd.DataFrame(
        {"trial": [1, 2, 3], "a": [None, 0.5, None], "X": [None, 0.2, None], "Y": [1.0, 2.0, None]}
    )
    changed = optimiser.read(rows)
    assert [trial.id for trial in changed] == [1, 2]
    assert changed[0].settings == first
    assert dict(changed[0].nodes) == {"Y": 1.0}
    assert changed[1].settings["a"] == 0.5
    assert [suggestion.trial for suggestion in optimiser.pending] == [3]
    (corrected,) = optimiser.read(pd.DataFrame({"trial": [2], "X": [0.3]}))
    assert dict(corrected.nodes) == {"X": 0.3, "Y": 2.0}
    assert corrected.ran == changed[1].ran
    with pytest.warns(TrialWarning, match="2 of 2 rows equal"):
        assert optimiser.read(rows[:2].assign(X=[None, 0.3])) == ()


def test_rows_with_and_without_a_number_are_read_together():
    optimiser, _ = asked()
    rows = pd.DataFrame(
        {"trial": [2, None], "a": [None, 0.25], "b": [None, 1.0], "X": [0.1, 0.2], "Y": [1.0, 2.0]}
    )
    rows["state"], rows["reason"] = ["failed", None], ["no steam", None]
    changed = optimiser.read(rows)
    assert [(trial.id, trial.state, trial.reason) for trial in changed] == [
        (2, "failed", "no steam"),
        (4, "completed", ""),
    ]


@pytest.mark.parametrize("numbers", [[1, 9], [1, 1], [1, "two"], [1, 2.5]])
def test_numbers_that_no_trial_has_are_refused_with_their_line(numbers):
    optimiser, _ = asked()
    before = optimiser.trials
    with pytest.raises(TableError, match=r"trial: expected numbers of trials.* in line 3"):
        optimiser.read(pd.DataFrame({"trial": numbers, "Y": [1.0, 2.0]}))
    assert optimiser.trials == before


def test_a_variable_called_trial_is_that_variable():
    optimiser, (first, *_) = asked({**TASK, "graph": {"parents": {"trial": ["a"], "Y": ["trial", "b"]}}})
    (changed,) = optimiser.read(pd.DataFrame([{**first, "trial": 7.0, "Y": 1.0}]))
    assert dict(changed.nodes) == {"trial": 7.0, "Y": 1.0}


def test_a_table_keeps_its_other_columns_its_order_and_its_digits(tmp_path):
    task = {**TASK, "actions": {"a": [0, 100], "b": [0, 2]}}
    rows = {"Y": [0.1, None, 0.3], "who": ["Ünal", "Bo", "Cy"], "a": [30, 20, 10], "b": [0.1 + 0.2, 0.7, 0.5]}
    pd.DataFrame({**rows, "X": [1.5, None, 2], "day": [3, None, 1]}).to_csv(tmp_path / "own.csv", index=False)
    optimiser = CausalOptimiser(task)
    optimiser.read(tmp_path / "own.csv")
    # What waits is a trial after those that were measured.
    assert optimiser.lines == {1: 2, 2: 4, 3: 3}
    optimiser.tell(3, {"X": 1.25, "Y": 0.7})
    optimiser.tell(None, {"X": 1.0, "Y": 0.5}, ran={"a": 12.25, "b": 1.0})
    optimiser.write(tmp_path / "all.csv")
    # A spreadsheet knows UTF-8 by its first bytes.
    assert (tmp_path / "all.csv").read_text(encoding="utf-8").splitlines() == [
        "\ufeffY,who,a,b,X,day",
        "0.1,Ünal,30,0.30000000000000004,1.5,3",
        "0.7,Bo,20,0.7,1.25,",
        "0.3,Cy,10,0.5,2,1",
        "0.5,,12.25,1,1,",
    ]
    again = CausalOptimiser(task)
    again.read(tmp_path / "all.csv")
    assert sorted(again.table.values.tolist()) == sorted(optimiser.table.values.tolist())
