"""Stays: a table becomes episodes, or says everything that is wrong with it."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.finding import texts_of
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.problems.sequences.four_hour_table import (
    COLUMNS,
    data_card,
    read_stays,
    recognised,
    settled,
)
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated, simulate


@pytest.fixture
def frame() -> pd.DataFrame:
    return simulate(6, seed=2).frame()


def test_a_table_becomes_episodes_in_time_order_however_its_rows_lie(frame: pd.DataFrame) -> None:
    stays = read_stays(frame, source="table")
    mixed = read_stays(frame.sample(frac=1, random_state=0), source="table")
    assert (
        [episode.identity for episode in stays.episodes]
        == ["0", "1", "2", "3", "4", "5"]
        == list(stays.patients)
    )
    assert not stays.drops
    for first, second in zip(stays.episodes, mixed.episodes, strict=True):
        assert torch.equal(first.values, second.values)
    first = frame[frame.icustayid == 0]
    np.testing.assert_array_equal(stays.episodes[0].values.numpy(), first[list(COLUMNS)].to_numpy())


def test_episodes_do_not_share_the_tables_memory(frame: pd.DataFrame) -> None:
    for episode in read_stays(frame, source="table").episodes:
        assert episode.values.untyped_storage().nbytes() == 8 * episode.values.numel()


def test_a_gap_in_bloc_cuts_a_stay(frame: pd.DataFrame) -> None:
    gone = frame[~((frame.icustayid == 0) & (frame.bloc == 5))]
    stays = read_stays(gone, source="table", min_length=3)
    rows = int((frame.icustayid == 0).sum())
    assert [(episode.identity, episode.horizon) for episode in stays.episodes[:2]] == [
        ("0", 4),
        ("0+1", rows - 5),
    ]
    assert stays.patients[:2] == ("0", "0")
    assert stays.drops["stays cut at a gap in bloc"] == 1
    twice = read_stays(gone[~((gone.icustayid == 0) & (gone.bloc == 8))], source="table", min_length=2)
    assert [episode.identity for episode in twice.episodes[:3]] == ["0", "0+1", "0+2"]
    assert twice.drops["stays cut at a gap in bloc"] == 1


def test_short_episodes_are_dropped_and_counted(frame: pd.DataFrame) -> None:
    lengths = frame.groupby("icustayid").size()
    stays = read_stays(frame, source="table", min_length=15)
    assert len(stays.episodes) == int((lengths >= 15).sum())
    assert stays.drops["episodes shorter than 15 steps"] == int((lengths < 15).sum())
    assert stays.drops["rows of these"] == int(lengths[lengths < 15].sum())


def test_long_episodes_are_cut_and_counted(frame: pd.DataFrame) -> None:
    lengths = frame.groupby("icustayid").size()
    stays = read_stays(frame, source="table", max_length=12)
    assert max(episode.horizon for episode in stays.episodes) == 12
    assert stays.drops["rows behind the longest horizon"] == int((lengths - 12).clip(lower=0).sum())


def test_years_are_converted_where_said(frame: pd.DataFrame) -> None:
    years = frame.assign(age=frame.age / 365.25)
    with pytest.raises(TableError, match=r"looks like years: set dataset\.age_unit=years"):
        read_stays(years, source="table")
    with pytest.raises(
        TableError, match=r"age: expected 0 to 200 \(years; a table in days takes dataset\.age_unit=days\)"
    ):
        read_stays(frame, source="table", age_unit="years")
    converted, plain = read_stays(years, source="table", age_unit="years"), read_stays(frame, source="table")
    torch.testing.assert_close(converted.episodes[0].values, plain.episodes[0].values)


def test_a_patient_has_one_name_whatever_the_columns_type(frame: pd.DataFrame) -> None:
    numbers = frame.icustayid + 70
    whole = read_stays(frame.assign(subject_id=numbers), source="table").patients
    assert whole == tuple(str(number) for number in range(70, 76))
    assert read_stays(frame.assign(subject_id=numbers.astype(float)), source="table").patients == whole
    assert read_stays(frame.assign(subject_id=numbers.astype(str)), source="table").patients == whole


def spoil(frame: pd.DataFrame, column: str, value: object) -> pd.DataFrame:
    spoilt = frame.astype({column: object if isinstance(value, str) else float})
    spoilt.loc[3, column] = value
    return spoilt


@pytest.mark.parametrize(
    ("column", "value", "faults"),
    [
        ("Creatinine", "high", "Creatinine: expected numbers; got 'high'"),
        ("icustayid", 0.5, r"icustayid: expected whole numbers; got 0\.5 \(first at row 4\)"),
    ],
)
def test_each_fault_is_named_with_its_row_and_what_to_do(
    frame: pd.DataFrame, column: str, value: object, faults: str
) -> None:
    with pytest.raises(TableError, match=faults):
        read_stays(spoil(frame, column, value), source="table")


@pytest.fixture(scope="module")
def problem() -> SepsisSimulated:
    return SepsisSimulated(patients=120, seed=3)


def test_a_card_is_plain_and_counts_what_is_there(problem: SepsisSimulated) -> None:
    card = problem.card()
    assert yaml.safe_load(yaml.safe_dump(dict(card))) == card
    json.dumps(card)
    assert card["patients"] == card["episodes"] == 120 == sum(card["horizons"]["episodes by steps"].values())
    assert card["transitions"] == sum(episode.horizon - 1 for episode in problem.stays.episodes)
    assert sum(sizes["patients"] for sizes in card["splits"].values()) == 120
    assert card["dose levels"]["max_dose_vaso"] == problem.levels.medians[0].tolist()
    assert card["features"]["SOFA"]["max"] <= 24
    assert "never for evidence" in card["caution"]


@pytest.fixture
def stay_frame() -> pd.DataFrame:
    return simulate(20, seed=1).frame()


def test_names_of_other_pipelines_and_sexes_as_text_are_read(stay_frame):
    other = stay_frame.rename(
        columns={"icustayid": "stay_id", "input_4hourly": "input_step", "output_4hourly": "output_step"}
    )
    other["gender"] = np.where(stay_frame["gender"] == 1, " F", "m")
    pd.testing.assert_frame_equal(recognised(other), stay_frame, check_dtype=False)
    read, plain = (read_stays(each, source="here") for each in (other, stay_frame))
    assert [each.values.tolist() for each in read.episodes] == [
        each.values.tolist() for each in plain.episodes
    ]


def broken(stay_frame):
    """Two impossible cells in two rows of one stay."""
    made = stay_frame.copy()
    made.loc[3, "paO2"], made.loc[5, "output_4hourly"] = 0.0, 24_000.0
    return made


def test_impossible_cells_are_refused_dropped_or_clipped_and_counted(stay_frame):
    with pytest.raises(TableError, match="2 faults") as refused:
        read_stays(broken(stay_frame), source="here")
    assert "dataset.impossible=drop" in str(refused.value)
    dropped = read_stays(broken(stay_frame), source="here", impossible="drop", min_length=2)
    assert dropped.drops["rows with an impossible cell"] == 2
    assert dropped.drops["stays cut at a gap in bloc"] == 1
    assert sum(each.horizon for each in dropped.episodes) >= len(stay_frame) - 4
    clipped = read_stays(broken(stay_frame), source="here", impossible="clip")
    assert clipped.drops["cells of paO2 moved into [10, 900]"] == 1
    assert clipped.drops["cells of output_4hourly moved into [-1000, 20000]"] == 1
    whole = read_stays(stay_frame, source="here")
    assert len(clipped.episodes) == len(whole.episodes)
    assert clipped.episodes[0].columns(("paO2",))[3].item() == 10


def test_a_wrong_unit_is_not_clipped_away(stay_frame):
    percent = stay_frame.assign(FiO2_1=stay_frame["FiO2_1"] * 100)
    for policy in ("drop", "clip"):
        with pytest.raises(TableError, match="a fraction; divide a percentage by 100"):
            read_stays(percent, source="here", impossible=policy)
    assert settled(percent, "clip")[1] == {}
    with pytest.raises(ValueError, match="impossible: expected refuse, drop, clip; got 'ignore'"):
        settled(stay_frame, "ignore")


def test_the_own_name_counts_where_both_are_there(stay_frame):
    both = stay_frame.assign(input_step=-1.0, stay_id=7)
    assert recognised(both)["input_4hourly"].tolist() == stay_frame["input_4hourly"].tolist()
    assert recognised(both)["icustayid"].tolist() == stay_frame["icustayid"].tolist()


def test_a_card_says_what_repeated_doses_did_to_the_levels(problem: SepsisSimulated) -> None:
    levels = DoseLevels(("tablets", "drops"))
    levels.solve(torch.tensor([[0.0, 1.0], [1.0, 2.0], [2.0, 3.5], [2.0, 4.0], [1.0, 0.0]]))
    card = data_card(problem.stays, problem.splits, source="here", caution="none", levels=levels)
    _, words = texts_of(card)
    assert words.startswith(
        "levels of tablets: 2 different non-zero doses, each a level of its own; 2 of 4 levels are empty"
    )
    assert card["dose levels"] == {"tablets": [0.0, 1.0, 2.0], "drops": [0.0, 1.0, 2.0, 3.5, 4.0]}
