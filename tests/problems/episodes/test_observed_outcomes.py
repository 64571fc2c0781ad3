"""Outcomes of small made-up tables."""

import pandas as pd
import pytest

from rehearsal_torch.problems.episodes.observed_outcomes import observed_outcomes
from rehearsal_torch.problems.episodes.stay_columns import recognised

STAYS = [1, 1, 2, 2, 3]


def table(**columns: list) -> pd.DataFrame:
    return recognised(pd.DataFrame({"icustayid": STAYS, **columns}))


def test_an_outcome_is_that_of_the_stay_and_of_its_pieces():
    found = observed_outcomes(table(mortality_90d=[1, 1, 0, 0, 1], died_in_hosp=[0, 0, 0, 0, 1]))
    assert found.of("1") == found.of("1+2") == {"died_in_hosp": 0.0, "mortality_90d": 1.0}
    assert found.of("3") == {"died_in_hosp": 1.0, "mortality_90d": 1.0}
    assert found.of("9") == {}
    assert found.facts() == {
        "observed outcomes": {
            "died_in_hosp": "death in hospital: 1 of 3 stays",
            "mortality_90d": "death within 90 days: 2 of 3 stays",
        }
    }


@pytest.mark.parametrize(
    ("other", "own"),
    [
        ("morta_90", "mortality_90d"),
        ("morta_hosp", "died_in_hosp"),
        ("hospital_expire_flag", "died_in_hosp"),
        ("died_in", "died_in_hosp"),
        ("died_within_48h_of_out_time", "died_within_48h_of_out_time"),
    ],
)
def test_names_of_other_pipelines_are_recognised(other: str, own: str):
    found = observed_outcomes(table(**{other: [0, 0, 1, 1, 0]}))
    assert [found.of(stay) for stay in "123"] == [{own: 0.0}, {own: 1.0}, {own: 0.0}]


def test_the_name_of_the_table_wins_over_other_names():
    found = observed_outcomes(table(morta_90=[1] * 5, mortality_90d=[0] * 5))
    assert found.of("1") == {"mortality_90d": 0.0}
    assert not found.left_out


def test_truth_values_and_empty_cells_are_read():
    died = ["True", None, "False", "False", None]
    found = observed_outcomes(
        table(died_within_48h_of_out_time=died, morta_90=[True, True, False, False, True])
    )
    assert found.of("1") == {"died_within_48h_of_out_time": 1.0, "mortality_90d": 1.0}
    assert found.of("3") == {"mortality_90d": 1.0}
    assert not found.left_out


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([0, 0, 2, 2, 1], "expected 0 or 1 in every row; got 2"),
        (["yes", "yes", "no", "no", "no"], "expected 0 or 1 in every row; got yes"),
        ([0, 1, 0, 0, 1], "1 stays have several values, the first of them stay 1"),
    ],
)
def test_other_values_leave_the_outcome_out_and_say_so(values: list, why: str):
    found = observed_outcomes(table(died_in_hosp=values, mortality_90d=[0] * 5))
    assert found.of("1") == {"mortality_90d": 0.0}
    (caution,) = (str(text) for key, text in found.facts().items() if key == "caution: outcome died_in_hosp")
    assert caution == f"{why}: death in hospital is left out"


def test_two_columns_of_one_name_are_left_out():
    frame = table(died_in_hosp=[0] * 5)
    found = observed_outcomes(pd.concat([frame, frame[["died_in_hosp"]]], axis=1))
    assert found.by_stay == {}
    assert found.left_out["died_in_hosp"].startswith("2 columns have this name")


def test_tables_without_outcomes_or_stays_have_none():
    assert observed_outcomes(table(SOFA=[1] * 5)).facts() == {}
    assert observed_outcomes(pd.DataFrame({"died_in_hosp": [1]})).by_stay == {}
