"""Steps and missing values of a draft of episodes: what is written, and how many units it keeps."""

import numpy as np
import pandas as pd
import pytest
import yaml

from rehearsal_torch.problems.written.draft_steps import step_lines


def said(frame):
    lines = step_lines(frame, "pump", "hour", ["wear"], ["size"])
    return yaml.safe_load("\n".join(lines)) or {}, "\n".join(lines)


def pumps(units=10, steps=6):
    hour = np.tile(np.arange(steps), units)
    return pd.DataFrame(
        {"pump": np.repeat(np.arange(units), steps), "hour": hour, "wear": 1.0 + hour, "size": 2.0}
    )


def test_nothing_is_written_where_nothing_is_missing():
    assert said(pumps()) == ({}, "")
    assert said(pumps(steps=1)) == ({}, "")
    assert said(pumps().sample(frac=1, random_state=0)) == ({}, "")


@pytest.mark.parametrize("lacking", [4, 6])
def test_units_are_dropped_while_half_of_them_stay(lacking):
    frame = pumps()
    frame = frame[~((frame["pump"] < lacking) & (frame["hour"] == 2))]
    parts, text = said(frame)
    assert "# Some units lack steps. They are faults (refuse), take their unit out (drop)," in text
    if lacking == 4:
        assert parts == {"missing": "drop"}
        assert "6 of 10 units are left" in text
    else:
        assert parts == {"missing": {"carry": 1}}
        assert "10 of 10 units are left" in text


def test_values_are_carried_over_the_usual_gap_and_never_into_the_first_step():
    frame = pumps()
    frame.loc[(frame["pump"] < 7) & frame["hour"].isin([2, 3]), "wear"] = None
    frame.loc[(frame["pump"] == 8) & (frame["hour"] == 0), "wear"] = None
    frame.loc[(frame["pump"] == 9) & (frame["hour"] > 0), "size"] = None
    parts, text = said(frame)
    assert parts == {"missing": {"carry": 2}}
    assert "# Empty cells, by column: wear: 15, size: 5. They" in text
    assert "9 of 10 units are left" in text


def test_uneven_distances_are_merged_into_steps():
    frame = pumps()
    frame["hour"] = frame["hour"] + np.where(frame["hour"] == 3, 0.4, 0)
    parts, _ = said(frame)
    assert parts == {"step": 1}
    dated = frame.assign(
        hour=[f"2024-03-{1 + 7 * int(each):02d}" for each in np.tile([0, 1, 2, 3, 4, 4.2], 10)]
    )
    assert said(dated)[0]["step"] == 7
