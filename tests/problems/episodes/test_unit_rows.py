import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.problems.episodes.task import episode_task
from rehearsal_torch.problems.episodes.unit_rows import LINE, TIME, UNIT, unit_rows
from tests.toys.pumps import table, task


def read(frame, **changes):
    faults = []
    return unit_rows(frame, episode_task(task(**changes)), faults), faults


def test_levels_and_values_become_numbers():
    frame = table(3, 2)
    frame["valve"] = ["shut", " half", "open", "shut", "half", "open"]
    rows, faults = read(frame)
    assert faults == []
    assert rows["valve"].tolist() == [0, 1, 2, 0, 1, 2]
    assert rows["maker=B"].tolist() == [0, 0, 1, 1, 0, 0]
    assert rows["maker=C"].tolist() == [0, 0, 0, 0, 1, 1]
    np.testing.assert_array_equal(rows["flow"], frame["flow"])
    assert rows[UNIT].tolist() == ["1", "1", "2", "2", "3", "3"]
    assert rows[LINE].tolist() == [2, 3, 4, 5, 6, 7]


def test_rows_are_sorted_by_unit_and_time_and_keep_their_lines():
    frame = table(12, 2)
    mixed = frame.iloc[::-1].reset_index(drop=True)
    rows, _ = read(mixed)
    # Numbers by size: 2 before 10.
    assert rows[UNIT].tolist() == [str(unit) for unit in range(1, 13) for _ in range(2)]
    assert rows[LINE].tolist() == list(range(25, 1, -1))
    assert read(frame)[0]["flow"].tolist() == rows["flow"].tolist()


def test_units_may_be_text_and_whole_numbers_with_a_point():
    frame = table(3, 2)
    assert read(frame.assign(pump=frame["pump"].astype(float)))[0][UNIT].iloc[0] == "1"
    assert set(read(frame.assign(pump="p" + frame["pump"].astype(str)))[0][UNIT]) == {"p1", "p2", "p3"}


def test_numbered_levels_are_read_from_numbers_and_texts():
    actions = {"valve": {"levels": [-1, 0, 1]}}
    frame = table(1, 3)
    for cells in ([-1, 0, 1], [-1.0, 0.0, 1.0], ["-1", "0", "1"]):
        rows, faults = read(frame.assign(valve=cells), actions=actions)
        assert (rows["valve"].tolist(), faults) == ([0, 1, 2], [])


def test_dates_count_in_days():
    frame = table(1, 3).assign(hour=["2024-02-28", "2024-02-29", "2024-03-01T12:00"])
    rows, faults = read(frame)
    assert faults == []
    assert np.diff(rows[TIME]).tolist() == [1.0, 1.5]


def test_every_fault_has_its_column_and_line():
    frame = table(3, 4)
    for name in ("flow", "valve", "maker"):
        frame[name] = frame[name].astype(object)
    frame.loc[1, "flow"] = "3,5"
    frame.loc[2, "flow"] = 101.0
    frame.loc[3, "heat"] = None
    frame.loc[4, "valve"] = "ajar"
    frame.loc[5, "maker"] = "D"
    frame.loc[6, "oil"] = -1.0
    frame.loc[8, "bore"] = np.inf
    assert read(frame)[1] == [
        "flow: expected numbers; got '3,5' in line 3 (pump 1), 1 such rows: write numbers with a decimal "
        "point, or name the values in the task",
        "flow: expected 0 to 100 l/s; got 101 in line 4 (pump 1), 1 such rows: correct them, leave the cells "
        "empty, or widen the range in the task",
        "bore: expected finite numbers up to 1e+150 in line 10 (pump 3)",
        "maker: expected A, B, C; got 'D' in line 7 (pump 2), 1 such rows",
        "valve: expected shut, half, open; got 'ajar' in line 6 (pump 2), 1 such rows",
        "oil: expected amounts of at least 0; got -1 in line 8 (pump 2), 1 such rows: settings that may be "
        "negative are given levels, {levels: [-1, 0, 1]}",
        "heat: 1 of 12 values are missing, the first in line 5 (pump 1): add them, or say what to do with "
        "`missing: drop` or `missing: {carry: 1}`",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="heat"), "no column 'heat'; there are pump, hour, flow,"),
        (lambda frame: frame.rename(columns={"pump": "pomp"}), "no column 'pump'; did you mean 'pomp'?"),
        (lambda frame: frame.iloc[:0], "expected rows; the table has none"),
        (
            lambda frame: pd.concat([frame, frame.iloc[[2]]], ignore_index=True),
            "hour: 1 rows repeat a time of the same pump, the first in line 14 (pump 1): keep one of each",
        ),
        (
            lambda frame: frame.assign(pump=frame["pump"].where(frame.index != 4)),
            "pump: 1 rows name no pump, the first in line 6: fill them in, or delete the rows",
        ),
        (
            lambda frame: frame.assign(hour=frame["hour"].astype(str).replace("3", "soon")),
            "hour: expected numbers, or dates such as 2024-03-01; got '0' in line 2 (pump 1), 12 such rows",
        ),
        (
            lambda frame: frame.assign(hour=frame["hour"].where(frame.index != 4)),
            "hour: expected numbers, or dates such as 2024-03-01; got an empty cell in line 6 (pump 2), 1 "
            "such rows",
        ),
    ],
)
def test_what_is_wrong_with_the_table_itself(change, message):
    faults = read(change(table(3, 4)))[1]
    assert any(each.startswith(message) for each in faults), faults


def test_numbers_beyond_all_floats_beside_a_text_are_told_by_line():
    frame = table(3, 4)
    frame["flow"] = pd.Series([10**400, "much", *frame["flow"][2:]], dtype=object)
    assert read(frame)[1] == [
        "flow: expected numbers; got 'much' in line 3 (pump 1), 1 such rows: write numbers with a decimal "
        "point, or name the values in the task",
        "flow: expected finite numbers up to 1e+150 in line 2 (pump 1)",
    ]
