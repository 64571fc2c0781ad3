"""Experiments of one's own: read as they are, and whatever is wrong told before anything is fitted."""

import io

import pandas as pd
import pytest
import torch
import yaml

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.data.trials.typed_settings import outside_bounds
from rehearsal_torch.problems.trials.user_experiments import (
    ExperimentTable,
    as_text,
    experiments_of,
    open_points,
    start_points,
    states_of,
    with_proposals,
)

TASK = {
    "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
    "actions": {"a": [0, 1], "b": [0, 5]},
    "reward": {"weights": {"Y": 2.0}},
}


@pytest.fixture
def frame():
    values = torch.rand(7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).numpy()
    return pd.DataFrame(values, columns=["a", "b", "X", "Y"])


def written(folder, frame):
    frame.to_csv(folder / "experiments.csv", index=False)
    (folder / "task.yaml").write_text(yaml.safe_dump(TASK))
    return folder / "experiments.csv", folder / "task.yaml"


def test_rows_come_as_they_are_and_the_best_is_told(tmp_path, frame):
    problem = ExperimentTable(*written(tmp_path, frame))
    table = problem.observations()
    assert table.names == ("a", "b", "X", "Y")
    torch.testing.assert_close(table.values, torch.from_numpy(frame.to_numpy().copy()), rtol=0, atol=1e-15)
    assert table.altered.all(0).tolist() == [True, True, False, False]
    assert problem.card()["best reward so far"] == pytest.approx(2 * frame["Y"].max())
    pair = ExperimentTable(tmp_path / "experiments.csv", {**TASK, "reward": ["Y", "-X"]})
    assert "best reward so far" not in pair.card()
    assert problem.case(0).identity == "experiment 8"
    assert problem.count() == 1


def test_rows_that_do_not_say_an_action_have_its_stated_value(tmp_path, frame):
    path, _ = written(tmp_path, frame.drop(columns="b"))
    stated = {**TASK, "actions": {"a": [0, 1], "b": {"range": [0, 5], "before": 2}}}
    problem = ExperimentTable(path, stated)
    assert problem.observations().columns(("b",)).tolist() == [[2.0]] * 7
    assert "b is 2, as stated, in 7 of 7 rows, which do not say it" in problem.read_notes
    # Those that are written next say it, and one that waits is none of the others.
    rows = pd.read_csv(io.StringIO(problem.with_proposals([{"a": 0.5, "b": 4.0}])))
    assert rows["b"].isna().tolist() == [True] * 7 + [False]
    again = ExperimentTable(rows, stated)
    assert (len(again.done), again.waiting.tolist()) == (7, [[0.5, 4.0]])
    with pytest.raises(TableError, match="no column 'b'"):
        ExperimentTable(path, TASK)


def test_a_node_that_was_set_is_marked(tmp_path, frame):
    problem = ExperimentTable(*written(tmp_path, frame.assign(**{"set:X": [0, 0, 1, 0, 0, 0, 0]})))
    assert problem.observations().altered[:, 2].nonzero().flatten().tolist() == [2]


def test_rows_outside_the_bounds_are_history(tmp_path, frame):
    frame.loc[3, "b"] = 9.0
    problem = ExperimentTable(*written(tmp_path, frame))
    assert len(problem.observations()) == 7
    assert any(
        "line 5: b may be set within [0, 5]; got 9" in each
        for each in problem.card()["kept as history, though it may not be set any more"]
    )


@pytest.mark.parametrize("rows", [0, 1, 4, 5])
def test_few_rows_are_told_what_to_run_first(tmp_path, frame, rows):
    problem = ExperimentTable(*written(tmp_path, frame.head(rows)))
    assert problem.card()["rows"] == rows
    design = problem.to_begin(seed=2)
    if rows == 5:
        assert design is None
        return
    assert design.values.shape == (6 - rows, 2)
    assert outside_bounds(problem.task, dict(enumerate(design.values))) == ()
    assert torch.equal(design.values, problem.to_begin(seed=2).values)
    # What has been run of it, in any order and rounded, is not asked for again.
    whole = ExperimentTable(*written(tmp_path, frame.head(0))).to_begin(seed=2).values
    done = pd.DataFrame(whole[[3, 1]].numpy().round(2), columns=["a", "b"]).assign(X=0.0, Y=1.0)
    left = ExperimentTable(*written(tmp_path, done)).to_begin(seed=2).values
    assert torch.equal(left, whole[[0, 2, 4, 5]])


def test_levels_and_fixed_values_are_those_of_the_next_experiment(tmp_path, frame):
    path, _ = written(tmp_path, frame)
    task = {**TASK, "actions": {"a": {"values": [0, 0.5, 1]}, "b": [0, 5]}}
    problem = ExperimentTable(path, task, {"b": 2.5})
    assert problem.case(0).levels == {"a": (0.0, 0.5, 1.0), "b": (2.5,)}
    assert len(problem.card()["kept as history, though it may not be set any more"]) == 7
    frame.head(2).to_csv(path, index=False)
    design = ExperimentTable(path, task, {"b": 2.5}).to_begin().values
    assert set(design[:, 1].tolist()) == {2.5}
    assert set(design[:, 0].tolist()) == {0.0, 0.5, 1.0}
    with pytest.raises(ValueError, match=r"fixed: b may be set within \[0, 5\]; got 7"):
        ExperimentTable(path, task, {"b": 7})


def test_a_frame_is_read_as_a_file_is(tmp_path, frame):
    marked = frame.assign(**{"set:X": [0, 0, 1, 0, 0, 0, 0]})
    path, task = written(tmp_path, marked)
    one, other = ExperimentTable(path, task), ExperimentTable(marked, task)
    torch.testing.assert_close(one.past.values, other.past.values, rtol=0, atol=1e-15)
    assert torch.equal(one.past.altered, other.past.altered)
    assert other.source == "the data frame"
    assert "there are 0 in which X was" in ExperimentTable(frame.assign(X=float("nan")), task).lacking


def test_one_lost_cell_costs_no_more_than_what_it_says(tmp_path, frame):
    """It refused the table: drop or impute those rows."""
    frame.loc[2, "X"] = None
    frame.loc[5, "Y"] = None
    problem = ExperimentTable(*written(tmp_path, frame))
    done = torch.from_numpy(frame.drop(index=5).to_numpy().copy())
    torch.testing.assert_close(problem.past.values, done, rtol=0, atol=1e-15, equal_nan=True)
    assert problem.lacking == ""
    assert problem.facts().notes == (
        "experiments.csv: 1 row without a value of Y waits for its result (line 7): learnt from as far as it "
        "was measured, and not proposed again",
        "experiments.csv: 1 row without a value of X is incomplete (line 4): not learnt from for X, and "
        "with more doubt for what it acts on",
    )
    assert problem.card()["ranges"]["X"] == [frame["X"].drop(5).min(), frame["X"].drop(5).max()]
    assert problem.with_proposals([{"a": 0.5, "b": 2.5}]).splitlines()[3].split(",")[2] == ""
    with pytest.raises(TableError, match=r"X: expected numbers; got 'hot' in line 3"):
        ExperimentTable(frame.astype(object).assign(X=["1", "hot", None, "2", "3", "4", "5"]), TASK)
    with pytest.raises(TableError, match=r"b: 1 of 6 values are missing or infinite in line 2"):
        ExperimentTable(frame.assign(b=[None, *frame["b"][1:]]), TASK)


def test_rows_without_a_result_are_pending(tmp_path, frame):
    """They were faults."""
    whole = ExperimentTable(*written(tmp_path, frame))
    assert whole.facts().waiting is None
    frame.loc[[2, 6], ["X", "Y"]] = float("nan")
    problem = ExperimentTable(*written(tmp_path, frame))
    assert torch.equal(problem.observations().values, whole.past.values[[0, 1, 3, 4, 5]])
    assert problem.waiting.tolist() == whole.past.columns(["a", "b"])[[2, 6]].tolist()
    assert "2 rows without a value of Y wait for their result (lines 4, 8)" in problem.facts().notes[-1]
    assert problem.card()["rows that wait for their result"] == 2
    assert "rows that wait for their result" not in whole.card()
    assert problem.case(0).identity == "experiment 8"
    log = problem.facts().waiting
    assert torch.equal(log.table.values, problem.past.values)
    assert torch.equal(log.settings("pending"), problem.waiting)
    lines = problem.with_proposals([{"a": 0.5, "b": 2.5}]).splitlines()
    assert len(lines) == 1 + 7 + 1
    assert lines[-1] == "0.5,2.5,,"


def test_rows_say_what_became_of_them(tmp_path, frame):
    """What had failed, and was taken out of the table, was proposed again."""
    words = ["Completed", "failed ", None, "ABANDONED", " running", "pending", ""]
    problem = ExperimentTable(*written(tmp_path, frame.assign(State=words)))
    actions = torch.from_numpy(frame[["a", "b"]].to_numpy().copy())
    torch.testing.assert_close(problem.past.columns(["a", "b"]), actions[[0, 2, 6]], rtol=0, atol=1e-15)
    torch.testing.assert_close(problem.failed, actions[[1]], rtol=0, atol=1e-15)
    torch.testing.assert_close(problem.waiting, actions[[4, 5]], rtol=0, atol=1e-15)
    log = problem.facts().waiting
    assert sorted(each.state for each in log.trials).count("failed") == 1
    assert problem.card()["rows that failed"] == 1
    assert problem.case(0).identity == "experiment 7"
    # What is proposed has no state yet.
    assert problem.with_proposals([{"a": 0.5, "b": 2.5}]).splitlines()[-1] == "0.5,2.5,,,"


def test_an_unknown_state_is_told_with_its_lines_and_a_variable_wins(tmp_path, frame):
    with pytest.raises(
        TableError,
        match=r"t.csv: state: expected completed, .* an empty cell; got 'done' in line 3, 2 in line 4",
    ):
        states_of(frame.head(3).assign(state=["failed", "done", 2]), CausalTask.of(TASK), "t.csv")
    task = {**TASK, "graph": {"parents": {"state": ["a"], "Y": ["state", "b"]}}}
    problem = ExperimentTable(frame.rename(columns={"X": "state"}), task)
    assert problem.past.names == ("a", "b", "state", "Y")
    assert len(problem.past) == 7
    # Nor need what was abandoned say what was set.
    gone = frame.assign(state=["abandoned"] + [None] * 6)
    gone.loc[0, "a"] = None
    assert len(ExperimentTable(gone, TASK).past) == 6
    with pytest.raises(TableError, match=r"a: 1 of 1 values are missing or infinite in line 2"):
        ExperimentTable(gone.assign(state=["failed"] + [None] * 6), TASK)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Y": 0.0}, "Y was 0 in all 7 experiments"),
        ({"X": 3.0}, "X was 3 in all 7 experiments"),
        ({"a": 0.5, "b": 1.0}, "all 7 experiments were run at the same setting"),
        ({"state": "failed"}, "a model needs 5 completed experiments, and there are 0"),
    ],
)
def test_the_start_design_goes_on_while_no_model_can_be_fitted(tmp_path, frame, change, said):
    """The first was refused: take it out of the nodes."""
    problem = ExperimentTable(*written(tmp_path, frame.assign(**change)))
    assert problem.lacking == said
    assert [each.kind for each in problem.findings()][:1] == ["rows"]
    assert said in problem.findings()[0].text
    design = problem.to_begin(seed=2)
    assert len(design) == (6 if "state" in change else 1)
    assert outside_bounds(problem.task, dict(enumerate(design.values))) == ()


def test_few_settings_are_told(tmp_path, frame):
    task = {**TASK, "actions": {"a": {"values": [0, 1]}, "b": {"values": [0, 5]}}}
    problem = ExperimentTable(frame.head(0), task)
    assert "4 different settings are all that there are" in problem.facts().notes
    assert len(problem.to_begin().values.unique(dim=0)) == len(problem.to_begin()) == 4
    assert not ExperimentTable(frame, task).facts().notes


def test_the_start_design_goes_on_behind_what_is_under_way(tmp_path, frame):
    whole = ExperimentTable(*written(tmp_path, frame.head(0))).to_begin(seed=2)
    asked = whole.to_frame().assign(X=None, Y=None)[["a", "b", "X", "Y"]]
    few = ExperimentTable(*written(tmp_path, asked.head(2)))
    assert len(few.past) == 0
    assert torch.equal(few.to_begin(seed=2).values, whole.values[2:])
    assert len(ExperimentTable(*written(tmp_path, asked)).to_begin(seed=2)) == 0


def test_proposals_leave_the_cells_of_a_file_as_it_writes_them(tmp_path):
    """A column of whole numbers with an empty cell was written with decimals, and with a point."""
    text = "Nr;a;b;X;Y;when;note\n" + "".join(
        f"{row};0,{row}0;{row % 5};1,{row};2,{row};0{row}.02.2024;NA\n" for row in range(1, 8)
    )
    (tmp_path / "e.csv").write_text(text)
    problem = ExperimentTable(tmp_path / "e.csv", TASK)
    made = problem.with_proposals([{"a": 0.25, "b": 3.0}])
    assert made == text + ";0,25;3;;;;\n"
    (tmp_path / "e.csv").write_text(made)
    again = ExperimentTable(tmp_path / "e.csv", TASK)
    assert again.with_proposals([{"a": 0.5, "b": 1.0}]) == made + ";0,5;1;;;;\n"
    # The values are written where the file is no longer there.
    (tmp_path / "e.csv").unlink()
    assert problem.with_proposals([{"a": 0.25, "b": 3.0}]).splitlines()[1] == "1;0,1;1;1,1;2,1;01.02.2024;"


def start_point(task, number, initial, seed, held=None):
    return start_points(task, max(initial, number + 1), seed, held)[number]


NONE = torch.zeros(0, 2)
PLAIN = {"graph": {"parents": {"Y": ["a", "b"]}}, "actions": {"a": [10, 20], "b": [-1, 1]}, "reward": "Y"}
LIMITED = {**PLAIN, "limits": {"normals": [[1.0, 5.0]], "offsets": [12.0]}}


@pytest.mark.parametrize("plain", [PLAIN, LIMITED])
def test_points_go_on_beyond_what_was_planned(plain):
    task = CausalTask.of(plain)
    points = torch.stack([start_point(task, number, 6, 3) for number in range(20)])
    assert len(points.unique(dim=0)) == 20
    for point in points:
        task.check_action(point)
    assert torch.equal(points[:6], torch.stack([start_point(task, number, 20, 3) for number in range(6)]))


def test_points_that_were_run_are_left_out():
    task = CausalTask.of(PLAIN)
    whole = open_points(task, NONE, NONE, 6, 0)
    assert len(whole) == 6
    assert torch.equal(open_points(task, whole[[4, 0]] + 0.004, NONE, 4, 0), whole[[1, 2, 3, 5]])
    assert torch.equal(open_points(task, whole[[4]], whole[[0]], 4, 0), whole[[1, 2, 3, 5]])
    assert torch.equal(open_points(task, torch.cat([whole[:2]] * 4), NONE, 1, 0), whole[[2]])


def test_few_settings_are_all_listed_and_then_repeated():
    """Sobol points of six combinations of levels were given twice, and others never."""
    task = CausalTask.of({**PLAIN, "actions": {"a": {"values": [0, 1]}, "b": {"values": [0, 2, 5]}}})
    whole = open_points(task, NONE, NONE, 9, 0)
    assert len(whole.unique(dim=0)) == len(whole) == 6
    assert torch.equal(whole, start_points(task, 6, 0))
    done = torch.cat([whole, whole[:4]])
    assert torch.equal(open_points(task, done, NONE, 3, 0), whole[[4]])
    assert torch.equal(open_points(task, done, whole[[4]], 3, 0), whole[[5]])
    assert len(open_points(task, NONE, whole, 3, 0)) == 0
    # With a = 1 nothing is left of b and c.
    actions = {"a": {"values": [0, 0.9, 1]}, "b": [0, 1], "c": [0, 1]}
    limits = {"normals": [[1, 1, 1], [-1, -1, -1]], "offsets": [1, -1]}
    task = CausalTask.of({"graph": ["{a b c} -> Y"], "actions": actions, "reward": "Y", "limits": limits})
    found = open_points(task, torch.zeros(0, 3), torch.zeros(0, 3), 12, 0)
    assert len(found) == 12
    assert torch.pdist(found).min() > 1e-3


MIXED = {**PLAIN, "actions": {"a": {"values": [10, 12, 20]}, "b": [-1, 1]}}


def test_levels_come_equally_often():
    task = CausalTask.of(MIXED)
    points = torch.stack([start_point(task, number, 6, 3) for number in range(16)])
    counts = [int((points[:, 0] == value).sum()) for value in (10, 12, 20)]
    assert sorted(counts) == [5, 5, 6]
    assert len(points[:, 1].unique()) == 16
    for point in points:
        task.check_action(point)


def test_a_start_design_with_levels_keeps_the_limits():
    task = CausalTask.of({**MIXED, "limits": {"normals": [[1.0, 5.0]], "offsets": [12.0]}})
    for number in range(12):
        task.check_action(start_point(task, number, 6, 3))


def test_what_is_held_is_the_same_in_every_point():
    task = CausalTask.of(MIXED)
    points = torch.stack([start_point(task, number, 6, 3, task.held({"b": 0.7})) for number in range(3)])
    assert points[:, 1].tolist() == [0.7] * 3
    assert set(points[:, 0].tolist()) == {10.0, 12.0, 20.0}


def test_a_point_with_another_level_was_not_run():
    task = CausalTask.of({**PLAIN, "actions": {"a": {"values": [0, 1, 1000]}, "b": [-1, 1]}})
    whole = open_points(task, NONE, NONE, 8, 0)
    low = whole[:, 0] == 0
    # A run at a = 1 is within a hundredth of the range of a = 0, but at another level.
    done = whole[low][:1].clone()
    done[0, 0] = 1.0
    assert torch.equal(open_points(task, done, NONE, 7, 0), whole[:7])


WAITED = CausalTask.of(
    {
        "graph": {"parents": {"X": ["a"], "Y": ["X", "b"], "Z": ["X"]}},
        "actions": {"a": [0, 1], "b": [0, 5]},
        "reward": {"weights": {"Y": 1.0, "Z": -1.0}},
    }
)
ROWS = pd.DataFrame(
    {
        "run": [1, 2, 3, 4, 5],
        "a": [0.1, 0.2, 0.3, 0.4, None],
        "b": [1, 2, 3, 4, 5],
        "X": [1.0, 2.0, None, None, None],
        "Y": [1.0, None, None, 4.0, None],
        "Z": [1.0, None, None, None, None],
    }
)


def waiting(frame):
    return (states_of(frame, WAITED, "t.csv") == "pending").tolist()


def waiting_actions(frame):
    return [list(each.asked.values()) for each in experiments_of(frame, WAITED)[1]]


def test_a_row_waits_if_its_actions_are_there_and_an_outcome_is_not():
    # Line 3 has X and waits; line 5 is half measured, and line 6 does not say what to set.
    assert waiting(ROWS) == [False, True, True, True, False]
    assert waiting(ROWS.assign(state="completed")) == waiting(ROWS)
    assert waiting_actions(ROWS.head(3)) == [[0.2, 2.0], [0.3, 3.0]]
    assert not any(waiting(ROWS.drop(columns="Z")))
    bare = ROWS[["a", "b", "Y", "Z"]]
    assert waiting(bare) == [False, True, True, True, False], "no other column is needed"
    assert waiting_actions(ROWS.head(1)) == []
    with pytest.raises(TableError, match=r"the data frame: (?s:.*)a: expected numbers; got 'half' in line 3"):
        waiting_actions(ROWS.assign(a=["0.1", "half", "0.3", "0.4", "0.5"]).head(3))


def test_proposals_are_rows_of_the_table_with_empty_results():
    frame = ROWS.head(2).assign(note=["warm, dry", None], ok=[True, False])
    made = with_proposals(frame, WAITED, [{"b": 5.0, "a": 0.123456789012345}])
    text = made.to_csv(index=False)
    assert text.splitlines() == [
        "run,a,b,X,Y,Z,note,ok",
        '1,0.1,1,1,1,1,"warm, dry",True',
        "2,0.2,2,2,,,,False",
        ",0.123456789012345,5,,,,,",
    ]
    again = pd.read_csv(io.StringIO(text))
    assert waiting(again) == [False, True, True]
    assert waiting_actions(again)[-1] == [0.123456789012345, 5.0]


def test_without_a_table_the_columns_are_those_of_the_task():
    made = with_proposals(pd.DataFrame(), WAITED, [{"a": 0.5, "b": 2.0}, {"a": 1.0, "b": 0.25}])
    assert made.to_csv(index=False).splitlines() == ["a,b,X,Y,Z", "0.5,2,,,", "1,0.25,,,"]


def test_proposals_are_written_as_the_column_is():
    frame = pd.DataFrame({"a": [True, False], "b": [0.5, 2.0], "Y": [1.5, None], "set:X": [0, 1]})
    made = with_proposals(frame, WAITED, [{"a": 1.0, "b": 2.25}])
    assert made.iloc[-1].tolist()[:4] == [True, 2.25, None, 0]
    again = pd.read_csv(io.StringIO(as_text(made, ",", ".")))
    assert again["a"].tolist() == [True, False, True]
    assert again["set:X"].tolist() == [0, 1, 0]


@pytest.mark.parametrize(("separator", "decimal"), [(";", ","), (",", ","), ("\t", "."), ("|", ",")])
def test_the_text_has_the_signs_of_the_table(separator, decimal):
    made = with_proposals(ROWS.head(2).assign(note=["warm; dry, 1.5", None]), WAITED, [{"a": 0.25, "b": 2.0}])
    text = as_text(made, separator, decimal)
    again = pd.read_csv(io.StringIO(text), sep=separator, decimal=decimal)
    assert again["a"].tolist() == [0.1, 0.2, 0.25]
    assert again["note"].iloc[0] == "warm; dry, 1.5"
    assert text.splitlines()[0] == separator.join(made.columns)


def test_whole_numbers_stay_whole_beside_an_empty_cell():
    frame = ROWS.head(2)[["run", "a", "b", "X", "Y", "Z"]]
    text = as_text(with_proposals(frame, WAITED, [{"a": 0.5, "b": 2.0}]), ";", ",")
    assert text.splitlines()[1:] == ["1;0,1;1;1;1;1", "2;0,2;2;2;;", ";0,5;2;;;"]
