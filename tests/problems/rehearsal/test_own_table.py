"""One's own table: read as it is, and whatever is wrong with it told at once."""

import pandas as pd
import pytest
import torch

from rehearsal_torch.data.decision import Decision, Estimate
from rehearsal_torch.data.reading import TableError
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.problems.rehearsal import own_table
from rehearsal_torch.problems.rehearsal.loan import Loan
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Alteration

TASK = {
    "graph": {"parents": {"A2": ["X1", "X2", "U1"], "Y1": ["X2", "U1", "A2"], "Y2": ["U1", "A2"]}},
    "context": ["X1", "X2"],
    "box": {"A2": [0, 1]},
    "region": {"Y1": [0.6, None], "Y2": [0.3, None]},
}


@pytest.fixture
def frame():
    table = Loan(size=SampleSize(rows=60)).observations()
    return pd.DataFrame(table.values.numpy(), columns=list(table.names))


@pytest.fixture
def file(tmp_path, frame):
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def written(folder, frame, name="broken.csv"):
    frame.to_csv(folder / name, index=False)
    return folder / name


def test_rows_are_split_and_come_as_they_are(file, frame):
    problem = RehearsalTable(file, TASK, seed=3)
    past, aside = problem.observations(), problem.held_out()
    assert (len(past), len(aside), problem.count()) == (48, 12, 12)
    both = torch.cat([past.values, aside.values])
    rows = torch.from_numpy(frame[list(past.names)].to_numpy().copy())
    torch.testing.assert_close(both[both[:, 0].argsort()], rows[rows[:, 0].argsort()], rtol=0, atol=1e-15)
    assert past.fingerprint() == RehearsalTable(file, TASK, seed=3).observations().fingerprint()
    assert past.fingerprint() != RehearsalTable(file, TASK, seed=4).observations().fingerprint()
    last = RehearsalTable(file, TASK, kept="last", validation=0.25)
    torch.testing.assert_close(last.held_out().values, rows[45:])


def test_held_out_rows_of_a_rare_yes_may_all_be_a_no(frame):
    frame["Y1"] = 0.0
    frame.loc[:3, "Y1"] = 1.0
    problem = RehearsalTable(frame, TASK, kept="last")
    assert problem.held_out().columns(("Y1",)).unique().tolist() == [0.0]
    frame["Y1"] = frame["Y1"].iloc[::-1].to_numpy()
    with pytest.raises(TableError, match=r"rows to learn from.*\n- Y1: all 48 values are 0"):
        RehearsalTable(frame, TASK, kept="last")


def test_a_case_is_a_row_that_was_kept_aside(file, frame):
    problem = RehearsalTable(file, TASK)
    case = problem.case(4)
    row = frame.iloc[int(case.identity) - 2]
    assert {name: float(value) for name, value in case.given.items()} == pytest.approx(
        {"X1": row["X1"], "X2": row["X2"]}
    )
    assert case.feasible == {"A2": (0.0, 1.0)}
    with pytest.raises(IndexError, match=r"0 \.\.\. 11"):
        problem.case(12)


def test_cases_may_come_from_a_second_file(tmp_path, file):
    cases = written(
        tmp_path, pd.DataFrame({"who": ["ann", "bob"], "X2": [0.2, 0.3], "X1": [0.1, 0.5]}), "cases.csv"
    )
    problem = RehearsalTable(file, TASK, cases, identity="who")
    assert (len(problem.observations()), problem.count()) == (60, 2)
    assert problem.case(1).facts() == {"identity": "bob", "given": {"X1": 0.5, "X2": 0.3}}
    assert (
        problem.score(
            problem.case(1), Decision(None, 0.0, status="no_action", baseline=Estimate(0.5, "chance"))
        )
        == {}
    )
    assert problem.card()["kept_aside"] == 0


def test_the_prediction_without_an_alteration_is_compared_with_the_record(file, frame):
    problem = RehearsalTable(file, TASK)
    case = problem.case(0)
    row = frame.iloc[int(case.identity) - 2]
    desired = float(row["Y1"] >= 0.6 and row["Y2"] >= 0.3)
    decision = Decision(Alteration(("A2",), torch.tensor([0.3])), 0.8, baseline=Estimate(0.25, "chance"))
    assert problem.score(case, decision) == {
        "desired_no_action": desired,
        "predicted_no_action": 0.25,
        "constant_no_action": problem.share,
        "brier_no_action": (0.25 - desired) ** 2,
    }
    assert problem.score(case, Decision(None, 0.0, status="no_action")) == {}


def test_the_card_warns_of_what_no_row_shows(file):
    far = {**TASK, "box": {"A2": [5, 6]}, "region": {"Y1": [3.0, None]}}
    far["graph"] = {"parents": {"A2": ["X1", "X2", "U1"], "Y1": ["X2", "U1", "A2"]}}
    problem = RehearsalTable(file, far)
    card = problem.card()
    assert card["desired"] == 0
    (told,) = problem.notes()
    assert told.startswith("none of the 48 rows lies in the desired region: Y1 is at most ")
    assert card["caution: outcomes"] == told
    assert RehearsalTable(file, TASK).notes() == ()
    assert "may be set to 5 ... 6, outside the observed range" in card["caution: A2"]


@pytest.mark.parametrize("kept", ["random", "last"])
def test_rows_of_a_unit_are_held_out_together(frame, kept):
    frame["shop"] = [f"shop {row % 10}" for row in range(60)]
    problem = RehearsalTable(frame, {**TASK, "unit": "shop"}, kept=kept, seed=3)
    units = problem.units()
    assert units is not None
    assert (len(units), len(problem.observations()), len(problem.held_out())) == (48, 48, 12)
    assert problem.aside_units is not None
    assert set(units).isdisjoint(problem.aside_units)
    assert "shop" not in problem.observations().names
    assert problem.card()["units"] == 8
    assert [problem.case(index).unit for index in range(12)] == list(problem.aside_units)
    assert problem.case(0).facts()["unit"] == problem.aside_units[0]
    assert problem.task.to_plain()["unit"] == "shop"
    assert RehearsalTable(frame, TASK).units() is None


def test_it_knows_whether_a_fit_has_seen_the_held_out_rows(file):
    whole = RehearsalTable(file, TASK, file).observations()
    problem = RehearsalTable(file, TASK)
    assert problem.every.fingerprint() == whole.fingerprint()
    assert problem.seen_by(whole.fingerprint()) is True
    assert problem.seen_by(problem.observations().fingerprint()) is False
    other = RehearsalTable(file, TASK, seed=4).observations()
    assert problem.seen_by(other.fingerprint()) is None
    assert problem.seen_by(None) is None
    # Cases of a second file have no outcomes to compare with.
    assert RehearsalTable(file, TASK, file).seen_by(whole.fingerprint()) is False


def test_marks_of_set_values_in_a_frame_are_not_overlooked(frame):
    marked = frame.assign(**{"set:A2": [1, 1, *[0] * (len(frame) - 2)]})
    with pytest.raises(TableError, match="set:A2: expected observations; 2 rows have a value of A2 that was"):
        RehearsalTable(marked, TASK)
    unmarked = RehearsalTable(marked.assign(**{"set:A2": 0}), TASK)
    assert torch.equal(unmarked.past.values, RehearsalTable(frame, TASK).past.values)


def test_of_a_parquet_file_only_what_the_task_needs_is_read(tmp_path, frame, monkeypatch):
    frame = frame.assign(shop=range(60), note="x", price=2.0, called=[f"n{place}" for place in range(60)])
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    frame.to_csv(tmp_path / "t.csv", index=False)
    read, reader = [], own_table.read_table

    def noted(*given, **settings):
        found = reader(*given, **settings)
        read.append(list(found.frame.columns))
        return found

    monkeypatch.setattr(own_table, "read_table", noted)
    task = {**TASK, "unit": "shop", "costs": {"A2": {"column": "price"}}}
    one, other = (
        RehearsalTable(tmp_path / f"t.{ending}", task, identity="called") for ending in ("parquet", "csv")
    )
    assert {*read[0]} == {*one.task.graph.names, "shop", "price", "called"}
    assert {*read[1]} == {*frame.columns}
    assert one.observations().fingerprint() == other.observations().fingerprint()
    assert one.identities == other.identities
    with pytest.raises(ValueError, match=r"identity: .* has no column .nam.; it has .*note"):
        RehearsalTable(tmp_path / "t.parquet", TASK, identity="nam")
    with pytest.raises(TaskError, match="Y3"):
        RehearsalTable(tmp_path / "t.parquet", {**TASK, "region": {"Y3": [0, None]}})
