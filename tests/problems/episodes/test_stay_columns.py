import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.data.reading import TableError
from rehearsal_torch.problems.episodes.simulator import simulate
from rehearsal_torch.problems.episodes.stay_columns import recognised, settled
from rehearsal_torch.problems.episodes.stays import read_stays


@pytest.fixture
def frame() -> pd.DataFrame:
    return simulate(20, seed=1).frame()


def test_names_of_other_pipelines_and_sexes_as_text_are_read(frame):
    other = frame.rename(
        columns={"icustayid": "stay_id", "input_4hourly": "input_step", "output_4hourly": "output_step"}
    )
    other["gender"] = np.where(frame["gender"] == 1, " F", "m")
    pd.testing.assert_frame_equal(recognised(other), frame, check_dtype=False)
    read, plain = (read_stays(each, source="here") for each in (other, frame))
    assert [each.values.tolist() for each in read.episodes] == [
        each.values.tolist() for each in plain.episodes
    ]


def test_the_own_name_counts_where_both_are_there(frame):
    both = frame.assign(input_step=-1.0, stay_id=7)
    assert recognised(both)["input_4hourly"].tolist() == frame["input_4hourly"].tolist()
    assert recognised(both)["icustayid"].tolist() == frame["icustayid"].tolist()


def test_a_sex_that_is_neither_is_named(frame):
    odd = frame.assign(gender=["M"] * (len(frame) - 1) + ["?"])
    with pytest.raises(
        TableError, match=r"gender: expected 0 \(male\) and 1 \(female\), or M and F; got '\?'"
    ):
        read_stays(odd, source="here")


def broken(frame):
    """Two impossible cells in two rows of one stay."""
    made = frame.copy()
    made.loc[3, "paO2"], made.loc[5, "output_4hourly"] = 0.0, 24_000.0
    return made


def test_impossible_cells_are_refused_dropped_or_clipped_and_counted(frame):
    with pytest.raises(TableError, match="2 faults") as refused:
        read_stays(broken(frame), source="here")
    assert "dataset.impossible=drop" in str(refused.value)
    dropped = read_stays(broken(frame), source="here", impossible="drop", min_length=2)
    assert dropped.drops["rows with an impossible cell"] == 2
    assert dropped.drops["stays cut at a gap in bloc"] == 1
    assert sum(each.horizon for each in dropped.episodes) >= len(frame) - 4
    clipped = read_stays(broken(frame), source="here", impossible="clip")
    assert clipped.drops["cells of paO2 moved into [10, 900]"] == 1
    assert clipped.drops["cells of output_4hourly moved into [-1000, 20000]"] == 1
    whole = read_stays(frame, source="here")
    assert len(clipped.episodes) == len(whole.episodes)
    assert clipped.episodes[0].columns(("paO2",))[3].item() == 10


def test_a_wrong_unit_is_not_clipped_away(frame):
    percent = frame.assign(FiO2_1=frame["FiO2_1"] * 100)
    for policy in ("drop", "clip"):
        with pytest.raises(TableError, match="a fraction; divide a percentage by 100"):
            read_stays(percent, source="here", impossible=policy)
    assert settled(percent, "clip")[1] == {}
    with pytest.raises(ValueError, match="impossible: expected refuse, drop, clip; got 'ignore'"):
        settled(frame, "ignore")
