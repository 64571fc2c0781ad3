"""One's own table: read as it is, and whatever is wrong with it told at once."""

import pandas as pd
import pytest
import torch

from rehearsal_torch.data.decision import Decision, Estimate
from rehearsal_torch.data.finding import texts_of
from rehearsal_torch.data.problem_file.diagnostics import TaskError
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.problems.cases import user_table
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.cases.user_table import RehearsalTable, one_sided, unit_faults, written_task
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.spaces.polytope import Polytope

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


def test_rows_to_learn_from_know_where_they_stood(file, frame):
    past = RehearsalTable(file, TASK, contexts=frame.iloc[:2]).past
    assert past.places.sort().values.tolist() == list(range(60)) != past.places.tolist()
    assert torch.equal(past.as_recorded().columns(("A2",))[:, 0], torch.tensor(frame["A2"].to_numpy()))


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
    assert problem.score(problem.case(1), Decision(None, 0.0, baseline=Estimate(0.5, "chance"))) == {}
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
    assert problem.score(case, Decision(None, 0.0)) == {}


def test_the_card_warns_of_what_no_row_shows(file):
    far = {**TASK, "box": {"A2": [5, 6]}, "region": {"Y1": [3.0, None]}}
    far["graph"] = {"parents": {"A2": ["X1", "X2", "U1"], "Y1": ["X2", "U1", "A2"]}}
    problem = RehearsalTable(file, far)
    card = problem.card()
    assert card["desired"] == 0
    (told,) = problem.facts().notes
    assert told.startswith("none of the 48 rows lies in the desired region: Y1 is at most ")
    assert told in texts_of(card)
    assert RehearsalTable(file, TASK).facts().notes == ()
    (beyond,) = [each for each in problem.findings() if each.text.startswith("A2: ")]
    assert beyond.kind == "range"
    assert "may be set from 5 to 6; the rows go from" in beyond.text


@pytest.mark.parametrize("kept", ["random", "last"])
def test_rows_of_a_unit_are_held_out_together(frame, kept):
    frame["shop"] = [f"shop {row % 10}" for row in range(60)]
    problem = RehearsalTable(frame, {**TASK, "unit": "shop"}, kept=kept, seed=3)
    units = problem.facts().units
    assert units is not None
    assert (len(units), len(problem.observations()), len(problem.held_out())) == (48, 48, 12)
    assert problem.aside_units is not None
    assert set(units).isdisjoint(problem.aside_units)
    assert "shop" not in problem.observations().names
    assert problem.card()["units"] == 8
    assert [problem.case(index).unit for index in range(12)] == list(problem.aside_units)
    assert problem.case(0).facts()["unit"] == problem.aside_units[0]
    assert problem.task.to_plain()["unit"] == "shop"
    assert RehearsalTable(frame, TASK).facts().units is None


def test_it_knows_whether_a_fit_has_seen_the_held_out_rows(file):
    whole = RehearsalTable(file, TASK, file).observations()
    problem = RehearsalTable(file, TASK)
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
    read, reader = [], user_table.read_table

    def noted(*given, **settings):
        found = reader(*given, **settings)
        read.append(list(found.frame.columns))
        return found

    monkeypatch.setattr(user_table, "read_table", noted)
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


ROWS = Table.observed(("x", "y", "z"), torch.tensor([[0.0, 1.0, 9.0], [0.0, 2.0, 7.0], [0.0, 3.0, 5.0]]))


def faces(normals, offsets):
    return Polytope(("y", "z"), torch.tensor(normals), torch.tensor(offsets))


@pytest.mark.parametrize(
    "region",
    [
        Polytope.of({"y": (3.0, None)}),
        Polytope.of({"y": (None, 1.0), "z": (9.0, None)}),
        faces([[1.0, 1.0]], [8.0]),
    ],
)
def test_a_region_with_rows_inside_and_outside_is_not_mentioned(region):
    assert one_sided(ROWS.records(), region) == ""


@pytest.mark.parametrize(
    ("region", "why"),
    [
        (
            Polytope.of({"y": (4.0, None), "z": (0.0, 4.5)}),
            "y is at most 3, and the region asks for at least 4; z is at least 5, and the region asks for at "
            "most 4.5",
        )
    ],
)
def test_a_region_without_rows_is_told_with_what_it_lacks(region, why):
    assert one_sided(ROWS.records(), region) == (
        f"none of the 3 rows lies in the desired region: {why}: the rows do not show what leads there; check "
        "its bounds and their units"
    )


def test_units_are_known_for_every_row_and_differ():
    frame = pd.DataFrame({"shop": ["n", None], "one": ["a", "a"], "two": ["a", "b"]})
    assert unit_faults(frame, None) == unit_faults(frame, "two") == []
    assert unit_faults(frame, "shop") == ["unit: 'shop' is missing in line 3: name the unit of every row"]
    assert unit_faults(frame, "one")[0].startswith("unit: 'one' is the same in all rows")
    assert unit_faults(frame, "shops")[0].startswith("unit: no column 'shops'; did you mean 'shop'?")


WRITTEN = {
    "graph": {"parents": {"rate": ["score", "stability"], "repaid": ["stability", "rate"]}},
    "context": ["score"],
    "box": {"rate": [0, 1]},
    "region": {"repaid": [0.6, None]},
}
COLUMNS = ("score", "stability", "rate", "repaid", "branch")


CODED = {
    **WRITTEN,
    "graph": {"parents": {"ward": ["score"], "rate": ["ward", "score"], "repaid": ["ward", "rate"]}},
    "context": ["score", "ward"],
    "codings": {"ward": "categorical"},
}


def wards(*names):
    return pd.DataFrame({name: [0.5] * len(names) for name in ("score", "rate", "repaid")} | {"ward": names})


def test_codings_without_levels_are_completed_by_the_rows_and_told():
    notes = ["before"]
    task = written_task(CODED, rows=wards("B", "A", "B", "C"), notes=notes)
    assert "ward=A" in task.graph.names
    assert "ward=C" in task.graph.names
    assert len(notes) == 2
    assert notes[1].startswith("ward is coded")
    assert "B" in notes[1]
    assert written_task(CODED, rows=wards("B", "A", "B", "C")).to_plain() == task.to_plain()
    # Whoever writes the levels is told nothing.
    written = {**CODED, "codings": {"ward": {"classes": ["A", "B"], "reference": "A"}}}
    quiet = []
    assert "ward=B" in written_task(written, rows=wards("A", "B", "A"), notes=quiet).graph.names
    assert quiet == []
