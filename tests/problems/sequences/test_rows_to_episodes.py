import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.problems.sequences.rows_to_episodes import (
    LINE,
    TIME,
    UNIT,
    read_episodes,
    time_text,
    unit_rows,
)
from tests.toys.pumps import roles_of, table, task

PLAIN = {
    "varying": ["level"],
    "static": ["size"],
    "contextual": [],
    "actions": {"valve": {"levels": 3}, "oil": {"unit": "ml"}},
    "reward": {"weights": {"level": 1}},
}


def rows(*hours, unit=1, level=None, valve=None, oil=None, size=2.0):
    count = len(hours)
    return pd.DataFrame(
        {
            "pump": [unit] * count,
            "hour": hours,
            "level": np.arange(count) + 10.0 if level is None else level,
            "size": size,
            "valve": [0] * count if valve is None else valve,
            "oil": [0.0] * count if oil is None else oil,
        }
    )


def read(frame, min_length=2, max_length=None, **changes):
    return read_episodes(frame, roles_of(task(**PLAIN, **changes)), "pumps.csv", min_length, max_length)


def values(found, name="level", unit=0):
    return found.episodes[unit].columns([name])[:, 0].tolist()


def test_rows_are_steps_and_units_are_episodes():
    found = read(pd.concat([rows(0, 1, 2), rows(5, 6, unit=7)], ignore_index=True))
    assert [each.identity for each in found.episodes] == ["1", "7"]
    assert found.episodes[0].names == ("level", "size", "valve", "oil")
    assert found.episodes[0].values.tolist() == [[10, 2, 0, 0], [11, 2, 0, 0], [12, 2, 0, 0]]
    assert (found.length, found.counts) == (1.0, {})


def test_steps_of_dates_are_told_with_their_unit():
    dates = [f"2024-03-01 {hour:02d}:{minute:02d}" for hour, minute in ((0, 0), (1, 0), (2, 0), (3, 30))]
    even = read(rows(*dates[:3]))
    assert (even.length, even.step) == (pytest.approx(1 / 24), "1 hour")
    assert read(rows(0, 1)).step == "1 in hour"
    with pytest.raises(TableError) as wrong:
        read(rows(*dates))
    assert "expected steps of 1 hour, the most frequent one; pump 1 has 90 minutes" in str(wrong.value)
    step = float(str(wrong.value).partition("`step: ")[2].partition("` in the task (in days)")[0])
    assert read(rows(*dates), step=step, missing="drop").step == "1 hour"


def test_gaps_are_faults_unless_the_task_says_otherwise():
    frame = pd.concat([rows(0, 1, 4, 5), rows(0, 1, unit=7)], ignore_index=True)
    with pytest.raises(
        TableError, match=r"1 gaps; pump 1 lacks 2 steps between lines 3 and 4: add them, or say"
    ):
        read(frame)
    dropped = read(frame, missing="drop")
    assert [each.identity for each in dropped.episodes] == ["7"]
    assert dropped.counts == {"pumps left out for missing values or steps": 1}


def test_values_are_carried_forward_within_the_limit():
    frame = rows(0, 1, 4, 5, level=[1.0, 2.0, 5.0, 6.0], valve=[0, 1, 2, 0], oil=[0.0, 3.0, 0.0, 4.0])
    found = read(frame, missing={"carry": 2})
    assert values(found) == [1, 2, 2, 2, 5, 6]
    assert values(found, "valve") == [0, 1, 1, 1, 2, 0]
    assert values(found, "oil") == [0, 3, 3, 3, 0, 4]
    assert found.counts == {"missing steps filled by carrying forward": 2}
    both = pd.concat([frame, rows(0, 1, unit=7)], ignore_index=True)
    short = read(both, missing={"carry": 1})
    assert [each.identity for each in short.episodes] == ["7"]
    assert short.counts == {"pumps left out for missing values or steps": 1}


def test_empty_cells_are_carried_like_missing_steps():
    frame = rows(0, 1, 2, 3, level=[1.0, None, None, 4.0], size=[2.0, None, 2.0, None])
    found = read(frame, missing={"carry": 2})
    assert values(found) == [1, 1, 1, 4]
    assert found.counts == {"values of level carried forward": 2, "values of size carried forward": 2}
    # An empty cell behind a gap counts with the gap.
    gap = pd.concat([rows(0, 3, 4, level=[1.0, None, 4.0]), rows(0, 1, unit=7)], ignore_index=True)
    assert read(gap, missing={"carry": 3}).counts["values of level carried forward"] == 1
    assert [each.identity for each in read(gap, missing={"carry": 2}).episodes] == ["7"]


def test_nothing_is_carried_from_one_unit_to_the_next_or_backwards():
    frame = pd.concat(
        [rows(0, 1, 2), rows(0, 1, 2, unit=7, level=[None, 1.0, 2.0]), rows(0, 1, unit=8, size=None)],
        ignore_index=True,
    )
    found = read(frame, missing={"carry": 5})
    assert [each.identity for each in found.episodes] == ["1"]
    assert found.counts == {"pumps left out for missing values or steps": 2}


def test_rows_are_merged_into_steps_of_a_given_length():
    frame = rows(
        0,
        0.4,
        0.9,
        1.0,
        2.5,
        level=[1.0, 2.0, 3.0, 4.0, 5.0],
        valve=[0, 2, 1, 1, 0],
        oil=[1.0, 2.0, 4.0, 0.0, 8.0],
    )
    found = read(frame, step=1)
    # The first state of a step, the largest level, the sum of doses; 0.9 is a row of the step at 1.
    assert values(found) == [1, 3, 5]
    assert values(found, "valve") == [2, 1, 0]
    assert values(found, "oil") == [3, 4, 8]
    assert (found.length, found.counts) == (1.0, {"rows merged into steps": 2})


@pytest.mark.parametrize("missing", ["refuse", "drop", {"carry": 1}])
@pytest.mark.parametrize("step", [None, 1])
def test_the_last_state_has_no_action_and_nothing_is_missing(missing, step):
    frame = rows(0, 1, 2, 3, valve=[0, 1, 2, None], oil=[1.0, 0.0, 2.0, None])
    found = read(frame, missing=missing, step=step)
    assert (values(found), found.counts) == ([10, 11, 12, 13], {})
    assert (values(found, "valve"), values(found, "oil")) == ([0, 1, 2, 0], [1, 0, 2, 0])
    episode = found.episodes[0]
    assert (episode.acts_last, episode.first(3).acts_last) == (False, True)
    assert read(frame, missing=missing, max_length=3, step=step).episodes[0].acts_last
    assert read(rows(0, 1)).episodes[0].acts_last


@pytest.mark.parametrize(
    "cells", [{"oil": [1.0, 0.0, 2.0]}, {"valve": [0, None, 1]}, {"level": [1, 2, None]}]
)
def test_other_empty_cells_are_missing(cells):
    frame = rows(0, 1, 2, valve=[0, 1, None], oil=[1.0, 0.0, None]).assign(**cells)
    with pytest.raises(TableError, match="1 of 3 values are missing"):
        read(frame)


@pytest.mark.parametrize(
    ("unit", "oil", "above"),
    [("ml", [5, 4], (1, 4, 5))]
    + [
        (rate, [2.5, 4], (0, 4, 4))
        for rate in ("ml/day", "ml/Woche", "ml pro Tag", "ml je 12 Stunden", "ml täglich")
    ],
)
def test_amounts_are_added_up_and_rates_are_averaged(unit, oil, above):
    actions = {"valve": {"levels": 3}, "oil": {"unit": unit}}
    plain = task(**{**PLAIN, "actions": actions}, step=1)
    found = read_episodes(rows(0, 0.5, 1, oil=[1.0, 4.0, 4.0]), roles_of(plain), "pumps.csv")
    assert values(found, "oil") == oil
    assert found.above["oil"] == above


@settings(max_examples=15, deadline=None)
@given(
    some.lists(some.booleans(), min_size=2, max_size=12).filter(lambda kept: sum(kept) >= 2),
    some.integers(1, 4),
)
def test_carrying_gives_the_last_known_value_or_leaves_the_unit_out(kept, limit):
    """Compared with a loop over hours."""
    hours = [hour for hour, here in enumerate(kept) if here]
    other = rows(0, 1, unit=9)
    frame = pd.concat([rows(*hours, level=[float(hour) for hour in hours]), other], ignore_index=True)
    found = read(frame, missing={"carry": limit}, step=1)
    expected, since = [], 0
    for hour in range(hours[0], hours[-1] + 1):
        since = 0 if kept[hour] else since + 1
        expected.append(float(hour - since) if since <= limit else None)
    if None in expected:
        assert [each.identity for each in found.episodes] == ["9"]
    else:
        assert torch.equal(found.episodes[0].columns(["level"])[:, 0], torch.tensor(expected).double())


def test_the_time_of_the_first_step_is_known_where_all_units_share_it():
    both = [rows(1, 2, 3), rows(1, 2, unit=7)]
    assert read(pd.concat(both, ignore_index=True)).first == 1
    assert read(pd.concat([rows(0, 1, 2), rows(5, 6, unit=7)], ignore_index=True)).first is None
    assert read(rows(0, 2, 4)).first is None, "steps are 2 long"
    assert read(rows(20240101, 20240102)).first is None, "a date"


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (1.0, "1 day"),
        (7.0, "7 days"),
        (1 / 24, "1 hour"),
        (0.041666666627, "1 hour"),
        (4 / 24, "4 hours"),
        (1.5 / 24, "90 minutes"),
        (1 / 86400, "1 second"),
        (0.25 / 86400, "0.25 seconds"),
        (1.5, "36 hours"),
        (0.0, "0 seconds"),
    ],
)
def test_dates_have_a_unit(days: float, text: str) -> None:
    assert time_text(days, dated=True) == text


def rows_read(frame, **changes):
    faults = []
    return unit_rows(frame, roles_of(task(**changes)), faults), faults


def test_levels_and_values_become_numbers():
    frame = table(3, 2)
    frame["valve"] = ["shut", " half", "open", "shut", "half", "open"]
    rows, faults = rows_read(frame)
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
    rows, _ = rows_read(mixed)
    # Numbers by size: 2 before 10.
    assert rows[UNIT].tolist() == [str(unit) for unit in range(1, 13) for _ in range(2)]
    assert rows[LINE].tolist() == list(range(25, 1, -1))
    assert rows_read(frame)[0]["flow"].tolist() == rows["flow"].tolist()


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
    assert rows_read(frame)[1] == [
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
            "hour: expected numbers, or dates such as 2024-03-01 or 31.12.2024; got '0' in line 2 (pump 1), "
            "12 such rows",
        ),
        (
            lambda frame: frame.assign(hour=frame["hour"].where(frame.index != 4)),
            "hour: expected numbers, or dates such as 2024-03-01 or 31.12.2024; got an empty cell in line 6 "
            "(pump 2), 1 such rows",
        ),
    ],
)
def test_what_is_wrong_with_the_table_itself(change, message):
    faults = rows_read(change(table(3, 4)))[1]
    assert any(each.startswith(message) for each in faults), faults


def test_numbers_beyond_all_floats_beside_a_text_are_told_by_line():
    frame = table(3, 4)
    frame["flow"] = pd.Series([10**400, "much", *frame["flow"][2:]], dtype=object)
    assert rows_read(frame)[1] == [
        "flow: expected numbers; got 'much' in line 3 (pump 1), 1 such rows: write numbers with a decimal "
        "point, or name the values in the task",
        "flow: expected finite numbers up to 1e+150 in line 2 (pump 1)",
    ]


def test_what_was_carried_is_marked_if_it_is_to_be_masked():
    frame = rows(0, 1, 3, 4, level=[10.0, np.nan, 12.0, 13.0], valve=[0, 1, np.nan, 1])
    plain = task(**PLAIN, missing={"carry": 2})
    found = read_episodes(frame, roles_of(plain), "pumps.csv", mask=True)
    assert found.episodes[0].names == ("level", "size", "valve", "oil")
    wanted = [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert found.episodes[0].filled.int().tolist() == wanted
    assert read(frame, missing={"carry": 2}).episodes[0].filled is None


@pytest.mark.parametrize("missing", ["drop", {"carry": 1}])
def test_what_most_units_learn_at_the_end_is_no_static(missing):
    def ended(unit, late):
        return rows(0, 1, 2, unit=unit, size=[np.nan, np.nan, 2.0] if late else 2.0)

    frame = pd.concat([ended(unit, unit < 3) for unit in range(5)], ignore_index=True)
    with pytest.raises(TableError, match="size: 3 of 5 pumps with a value lack it in their first row"):
        read(frame, missing=missing)
    frame = pd.concat([ended(unit, unit < 2) for unit in range(5)], ignore_index=True)
    counts = read(frame, missing=missing).counts
    late = {"pumps for whom size was first known after steps that use it": 2}
    assert (late.items() <= counts.items()) == (missing != "drop")


def test_merged_doses_may_be_averaged():
    actions = {"valve": {"levels": 3}, "oil": {"unit": "ml", "combine": "mean"}}
    frame = rows(0, 0.5, 1, oil=[1.0, 4.0, 0.0])
    found = read_episodes(frame, roles_of(task(**{**PLAIN, "actions": actions}, step=1)), "pumps.csv")
    assert values(found, "oil") == [2.5, 0]


def test_a_step_that_ends_without_an_action_keeps_the_doses_before():
    frame = rows(0, 0.5, 1.0, 1.5, valve=[0, 1, 2, None], oil=[1.0, 0.0, 2.0, None])
    found = read(frame, step=1)
    assert (values(found, "oil"), found.episodes[0].acts_last) == ([1, 2], True)


def test_steps_keep_the_times_of_their_rows():
    frame = rows("31.12.2023", "1.1.2024 09:30", "03.01.2024")
    found = read(frame, missing={"carry": 1}, step=1)
    case = found.case(found.episodes[0], 1)
    assert case.times == ("2023-12-31", "2024-01-01T09:30:00", "", "2024-01-03")
    assert case.facts() == {"identity": "1", "times": list(case.times)}
    assert found.case(found.episodes[0].first(2), 1).times == case.times[:2]
    assert read(rows(2, 2.5, 3)).case(read(rows(2, 2.5, 3)).episodes[0], 0).times == ("2", "2.5", "3")


def test_short_episodes_are_left_out_and_long_ones_cut():
    frame = pd.concat([rows(0, 1), rows(*range(9), unit=2), rows(*range(4), unit=3)], ignore_index=True)
    found = read(frame, min_length=3, max_length=5)
    assert [(each.identity, each.horizon) for each in found.episodes] == [("2", 5), ("3", 4)]
    assert found.counts == {"pumps with fewer than 3 steps": 1, "steps behind the longest horizon": 4}
    with pytest.raises(ValueError, match="expected 2 <= min_length <= max_length; got 1 and None"):
        read(frame, min_length=1)


def test_dates_count_in_days():
    frame = table(1, 3).assign(hour=["2024-02-28", "2024-02-29", "2024-03-01T12:00"])
    rows, faults = rows_read(frame)
    assert faults == []
    assert np.diff(rows[TIME]).tolist() == [1.0, 1.5]


def test_a_step_without_rows_is_a_gap():
    frame = rows(0, 1, 3)
    with pytest.raises(TableError, match="1 gaps; pump 1 lacks 1 steps between lines 3 and 4"):
        read(frame, step=1)
    assert values(read(frame, step=1, missing={"carry": 1})) == [10, 11, 11, 12]
