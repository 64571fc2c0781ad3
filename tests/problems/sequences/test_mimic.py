"""The MIMIC loader: simulated tables on disk, and the public demo where it lies beside the project."""

from pathlib import Path

import pandas as pd
import pytest
import torch

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.finding import findings_of
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.problems.sequences.four_hour_table import DOSES, recognised
from rehearsal_torch.problems.sequences.mimic import Mimic, observed_outcomes
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated, simulate
from tests.places import DATA

DEMO = DATA / "mimic_demo"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "table.csv.gz"
    simulate(150, seed=1).frame().to_csv(file, index=False)
    return file


def test_a_table_on_disk_gives_what_the_simulation_gives(path: Path) -> None:
    real, simulated = Mimic(path, seed=1), SepsisSimulated(patients=150, seed=1)
    for first, second in zip(real.stays.episodes, simulated.stays.episodes, strict=True):
        torch.testing.assert_close(first.values, second.values, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(
        real.observations().values, simulated.observations().values, rtol=1e-12, atol=1e-12
    )
    assert real.count() == simulated.count()
    assert real.case(0).identity == simulated.case(0).identity
    assert real.card()["source"] == "table.csv.gz"


def test_the_card_says_how_often_the_score_is_its_formula(path: Path, tmp_path: Path) -> None:
    assert Mimic(path).card()["agreement of SOFA with its formula"] == "100.0% of the steps"
    frame = simulate(150, seed=1).frame()
    frame.loc[::4, "SOFA"] = (frame.loc[::4, "SOFA"] + 1) % 25
    frame.to_csv(tmp_path / "other.csv", index=False)
    assert Mimic(tmp_path / "other.csv").sofa_agreement() == pytest.approx(0.75, abs=0.02)


def test_observed_deaths_travel_with_the_case_and_nothing_else_changes(path: Path, tmp_path: Path) -> None:
    frame = simulate(150, seed=1).frame()
    frame.drop(columns="died_within_48h_of_out_time").to_csv(tmp_path / "alive.csv", index=False)
    known, unknown = Mimic(path), Mimic(tmp_path / "alive.csv")
    died = frame.groupby("icustayid")["died_within_48h_of_out_time"].first()
    for index in range(known.count()):
        case, other = known.case(index), unknown.case(index)
        outcome = float(died[int(case.identity)])
        assert case.facts() == {
            "identity": case.identity,
            "observed_outcomes": {"died_within_48h_of_out_time": outcome},
        }
        assert other.facts() == {"identity": case.identity}
        assert torch.equal(case.episode.values, other.episode.values)
    assert known.card()["fingerprint"] == unknown.card()["fingerprint"]
    assert known.card()["observed outcomes"] == {
        "died_within_48h_of_out_time": f"death within 48 hours of leaving the unit: {died.sum()} of 150 stays"
    }
    assert "observed outcomes" not in unknown.card()


def test_files_that_are_none_are_told(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no table is given: set path="):
        Mimic(None)
    with pytest.raises(TableError, match="there is no file"):
        Mimic(tmp_path / "none.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(TableError, match="cannot be read as a comma-separated table"):
        Mimic(tmp_path / "empty.csv")
    with pytest.raises(ValueError, match="expected split"):
        Mimic(tmp_path / "empty.csv", split="all")


@pytest.mark.skipif(
    not DEMO.is_dir(), reason="REHEARSAL_DATA names no folder with the public MIMIC-III demo, mimic_demo/"
)
def test_the_public_demo_is_read() -> None:
    problem = Mimic(DEMO / "mimic3demo_4h_imputed.csv.gz", age_unit="years")
    card = problem.card()
    assert (card["episodes"], card["horizons"]["min"], card["horizons"]["max"]) == (91, 10, 20)
    assert card["dropped"] == {"episodes shorter than 10 steps": 45, "rows of these": 278}
    levels = DoseLevels(DOSES)
    levels.solve(problem.observations().columns(DOSES))
    assert (levels.medians[:, 0] == 0).all()
    assert (levels.medians.diff(dim=1) > 0).all()
    with pytest.raises(TableError, match="11 faults") as caught:
        Mimic(DEMO / "mimic3demo_4h_raw.csv.gz", age_unit="years")
    assert "FiO2_1: 1086 missing" in str(caught.value)


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
        ("died_48h_of_out", "died_within_48h_of_out_time"),
        ("died_within_48h_of_out_time", "died_within_48h_of_out_time"),
    ],
)
def test_names_of_other_pipelines_are_recognised(other: str, own: str):
    found = observed_outcomes(table(**{other: [0, 0, 1, 1, 0]}))
    assert [found.of(stay) for stay in "123"] == [{own: 0.0}, {own: 1.0}, {own: 0.0}]


def test_columns_that_look_like_outcomes_are_not_dropped_without_a_word():
    found = observed_outcomes(table(died_in_30d=[0, 0, 1, 1, 0], died_in=[0] * 5))
    assert found.of("2") == {"died_in_hosp": 0.0}
    assert found.left_out["died_in_30d"].startswith(
        "no outcome has this name; rename it, if it is died_in_hosp"
    )


@pytest.mark.parametrize("marked", [True, False])
def test_states_that_were_filled_in_upstream_are_named_with_their_share(tmp_path: Path, marked: bool) -> None:
    frame = simulate(150, seed=1).frame()
    copied = frame["bloc"] % 4 != 1
    frame["Total_bili"] = frame["Total_bili"].mask(copied).groupby(frame["icustayid"]).ffill()
    if marked:
        frame["Total_bili_obs"] = 1 - copied.astype(int)
    frame.to_csv(tmp_path / "filled.csv", index=False)
    (told,) = [each for each in findings_of(Mimic(tmp_path / "filled.csv").card()) if "copies" in each.text]
    assert told.text.endswith(f"the model learns the copies: Total_bili {told.numbers['Total_bili']:.0%}")
    assert told.numbers == {"Total_bili": pytest.approx(0.75, abs=0.05)}
    assert not any("copies" in each.text for each in findings_of(SepsisSimulated(patients=150).card()))


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
    assert found.left_out["died_in_hosp"] == f"{why}: death in hospital is left out"


def test_states_that_were_filled_in_upstream_are_masked_where_the_table_marks_them(tmp_path: Path) -> None:
    frame, file = simulate(150, seed=1).frame(), tmp_path / "filled.csv"
    frame.to_csv(file, index=False)
    with pytest.raises(ValueError, match=r"columns such as GCS_obs, .* got none: add them, or learn all"):
        Mimic(file, masked=True)
    copied = frame["bloc"] % 4 != 1
    frame["Total_bili"] = frame["Total_bili"].mask(copied).groupby(frame["icustayid"]).ffill()
    frame = frame.assign(Total_bili_obs=1 - copied.astype(int))
    frame.sample(frac=1, random_state=0).to_csv(file, index=False)
    masked, learnt = Mimic(file, masked=True), Mimic(file)
    table, place = masked.observations(), masked.episodes()[0].names.index("Total_bili")
    assert not any("copies" in each.text for each in findings_of(masked.card()))
    assert not learnt.observations().altered.any()
    assert table.values.equal(learnt.observations().values)
    width = len(table.names) // 2
    blocs = torch.cat([torch.arange(2, each.horizon + 1) for each in masked.episodes()])
    assert table.altered[:, width + place].equal(blocs % 4 != 1)
    assert int(table.altered.sum()) == int((blocs % 4 != 1).sum())
    frame.assign(Total_bili_obs=0).to_csv(file, index=False)
    with pytest.raises(ValueError, match=r"got Total_bili in 0 of 0 units: take"):
        Mimic(file, masked=True)


def test_horizons_are_filtered_and_cut(path: Path) -> None:
    problem = Mimic(path, horizon=15)
    assert {problem.case(index).episode.horizon for index in range(problem.count())} == {15}
    with pytest.raises(ValueError, match="has 30 steps: lower `horizon`"):
        Mimic(path, horizon=30)
    with pytest.raises(ValueError, match="no episode of at least 25 steps"):
        Mimic(path, min_length=25, max_length=30)


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
