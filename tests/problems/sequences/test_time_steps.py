"""Times as people write them, and the steps that they fall into."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.problems.sequences.rows_to_episodes import read_episodes
from rehearsal_torch.problems.sequences.time_steps import MONTH, numbered, times_of
from tests.toys.pumps import roles_of, task


def steps(times, step=None, known=0.0):
    """The numbers of the steps of one unit, and their length; none may be odd."""
    dated = isinstance(times[0], str)
    time = times_of(pd.Series(times)) if dated else np.array(times, dtype=float)
    found = numbered(time, np.arange(len(time)) == 0, step, dated, known)
    assert not found.odd.any()
    return found.steps.tolist(), found.length


def read(times, **changes):
    frame = pd.DataFrame({"pump": 1, "hour": times, "flow": np.arange(len(times)), "valve": 0})
    plain = {"varying": ["flow"], "static": [], "contextual": [], "actions": {"valve": {"levels": 3}}}
    return read_episodes(frame, roles_of(task(**plain, reward={"weights": {"flow": 1}}, **changes)), "it")


@pytest.mark.parametrize("step", [4, None])
def test_clocks_jitter_without_gaps_and_merges(step):
    times = 4 * np.arange(480) + np.random.default_rng(0).uniform(-0.1, 0.1, 480)
    found, length = steps(times, step)
    assert found == list(range(480))
    assert length == pytest.approx(4, abs=0.01)
    assert list(read(times, step=step).counts) == ([] if step else ["rows up to 10% of a step beside it"])
    gap = np.delete(times, [100, 101, 200])
    assert steps(gap, step)[0] == np.delete(np.arange(480), [100, 101, 200]).tolist()


def test_more_than_a_tenth_beside_is_a_fault():
    assert steps([0, 1, 2, 3.09, 4.09])[0] == [0, 1, 2, 3, 4]
    with pytest.raises(
        TableError, match=r"expected steps of 1, .* pump 1 has 1\.11 between lines 4 and 5, 1 such"
    ):
        read([0, 1, 2, 3.11, 4.11])


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from([1, 0.1, 1 / 24, 7]),
    st.integers(1, 6),
    st.lists(st.integers(1, 2), min_size=5, max_size=30).filter(lambda gaps: gaps.count(1) > len(gaps) / 2),
)
def test_rows_at_equal_distances_fill_their_steps(distance, many, gaps):
    places = np.r_[0, np.cumsum(gaps)]
    assert steps(5 + places * distance, many * distance)[0] == (places // many).tolist()
    found, length = steps(5 + places * distance)
    assert (found, length) == (places.tolist(), pytest.approx(distance))


def test_a_row_halfway_belongs_to_the_earlier_step():
    assert steps([0, 1, 1.5, 2, 3], 1)[0] == [0, 1, 1, 2, 3]
    assert steps([0, 6, 14, 20.5, 28], 7)[0] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("step", ["month", None])
def test_months_are_those_of_the_calendar(step):
    ends = ["2023-01-31", "2023-02-28", "2023-03-31", "2023-04-30", "2023-06-30"]
    assert steps(ends, step) == ([0, 1, 2, 3, 5], MONTH)
    assert read(ends[:4], step=step).step == "1 month"
    assert steps(["2023-05-01", "2023-06-01", "2023-07-01"], known=MONTH) == ([0, 1, 2], MONTH)


def test_other_steps_of_the_calendar():
    assert steps(["2024-12-29", "2024-12-30", "2025-01-05", "2025-01-06"], "week") == ([0, 1, 1, 2], 7)
    assert steps(["2024-01-15", "2024-01-28", "2024-02-01"], "month")[0] == [0, 0, 1]
    with pytest.raises(
        TableError, match="`step: month` counts those of the calendar, and this column has no dates"
    ):
        read([0, 1, 2], step="month")
    with pytest.raises(TableError, match="`step: month` in the task"):
        read(["2024-01-03", "2024-02-02", "2024-03-03", "2024-03-20", "2024-04-20"])
    with pytest.raises(ValueError, match="or month or week; got 'year'"):
        read([0, 1], step="year")


def test_german_dates_are_dates():
    written = ["31.12.2024", " 31.12.2024 13:30", "1.1.2025", "01.02.2025T08:00:05"]
    same = ["2024-12-31", "2024-12-31 13:30", "2025-01-01", "2025-02-01 08:00:05"]
    assert times_of(pd.Series(written)).tolist() == times_of(pd.Series(same)).tolist()
    assert times_of(pd.Series(["31.12.24", "12/31/2024"])).tolist() == [20088, 20088]
    assert np.isnan(times_of(pd.Series(["1/2/2024", "1.13.2024"]))).all()
