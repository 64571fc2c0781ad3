"""Rows of a Parquet file that is read in parts: those of the same table in memory."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import torch

from rehearsal_torch.data.reading import TableError
from rehearsal_torch.data.tables.blocks import fingerprint
from rehearsal_torch.data.tables.row_spool import RowSpool
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.problems.rehearsal import table_file
from rehearsal_torch.problems.rehearsal.own_table import RehearsalTable
from rehearsal_torch.problems.rehearsal.table_file import TableFile

TASK = {
    "graph": {"parents": {"a": ["x"], "y": ["a", "x"]}},
    "context": ["x"],
    "box": {"a": [-1, 1]},
    "region": {"y": [0.5, None]},
}
CASES = pd.DataFrame({"x": [0.0, 1.0]})


def made(rows: int = 200) -> pd.DataFrame:
    draws = np.random.default_rng(0)
    x, a = draws.standard_normal(rows), draws.uniform(-1, 1, rows)
    return pd.DataFrame({"other": "text", "y": x + a, "x": x, "a": a})


@pytest.fixture
def file(tmp_path):
    made().to_parquet(tmp_path / "t.parquet", row_group_size=30, index=False)
    return tmp_path / "t.parquet"


def values_of(problem: TableFile) -> torch.Tensor:
    return torch.cat([block.values for block in problem.training_rows()])


@pytest.mark.parametrize("rows", [7, 1000])
def test_with_cases_of_their_own_all_rows_are_learnt_from(file, rows):
    found, table = TableFile(file, TASK, CASES, rows=rows), RehearsalTable(made(), TASK, CASES)
    assert fingerprint(found.training_rows()) == table.observations().fingerprint()
    assert found.observations().fingerprint() == table.observations().fingerprint()
    assert [found.case(place).given for place in range(2)] == [table.case(place).given for place in range(2)]
    assert found.notes() == table.notes() == ()
    assert {**found.card(), "source": ""} == {**table.card(), "source": ""}
    assert found.share == table.share
    assert found.held_out().fingerprint() == table.held_out().fingerprint()


def test_a_folder_is_one_table(tmp_path):
    frame = made()
    frame.iloc[:90].to_parquet(tmp_path / "1.parquet", index=False)
    frame.iloc[90:].to_parquet(tmp_path / "2.parquet", index=False)
    found = TableFile(tmp_path, TASK, cases=20, rows=33)
    past, aside = values_of(found), found.held_out().values
    assert (len(past), len(aside)) == (180, 20)
    whole = torch.tensor(frame[list(found.past.names)].to_numpy())
    both = torch.cat([past, aside])
    assert torch.equal(both[both[:, 0].argsort()], whole[whole[:, 0].argsort()]), "each row once"
    lines = [int(found.case(place).identity) for place in range(20)]
    assert torch.equal(aside, whole[[line - 2 for line in lines]]), "a case is named by its line"
    assert torch.equal(past, whole[[row for row in range(200) if row + 2 not in lines]]), "in order"


def test_held_out_rows_are_drawn_by_the_seed_and_scored(file):
    one, same, other = (TableFile(file, TASK, seed=seed, cases=30) for seed in (0, 0, 1))
    assert one.count() == 30
    assert torch.equal(one.held_out().values, same.held_out().values)
    assert not torch.equal(one.held_out().values, other.held_out().values)
    assert one.recorded
    assert TableFile(file, TASK).count() == 40, "a fifth of the rows"


def test_a_sample_is_in_memory_and_the_run_says_so(file, monkeypatch):
    monkeypatch.setattr(table_file, "MOST", 25)
    found, frame = TableFile(file, TASK, CASES, rows=60), made()
    assert len(found.training_rows()) == found.card()["rows"] == 200
    count = len(found.observations())
    assert 25 <= count <= 25 + 6, "and the rows with extreme values"
    ranges = {name: [float(frame[name].min()), float(frame[name].max())] for name in ("x", "a", "y")}
    assert found.card()["ranges"] == ranges
    assert found.card()["desired"] == pytest.approx(float((frame["y"] >= 0.5).mean()))
    (note,) = found.notes()
    assert note.startswith("the model is fitted to 200 rows; the fingerprint, the checks of graph and levels")
    assert f"rest on {count} of them, drawn by the seed" in note
    assert found.card()["caution: sample"] == note
    few = TableFile(file, TASK, CASES, seed=1).observations()
    assert not torch.equal(few.values[: len(found.past)], found.past.values)


def test_a_rare_value_outside_the_sample_is_no_constant_and_no_empty_region(tmp_path, monkeypatch):
    monkeypatch.setattr(table_file, "MOST", 20)
    frame = made(400)
    frame["x"] = 0.0
    frame.loc[123, "x"] = 1.0
    frame["y"] = frame["a"] * 0.1
    frame.loc[[7, 8], "y"] = [0.6, 0.7]
    frame.to_parquet(tmp_path / "t.parquet")
    found = TableFile(tmp_path / "t.parquet", TASK, CASES)
    assert found.share == 2 / 400
    assert not any("desired region" in note for note in found.notes())
    frame["y"] = -1 - frame["a"].abs()
    frame.to_parquet(tmp_path / "t.parquet")
    found = TableFile(tmp_path / "t.parquet", TASK, CASES)
    assert any("lies in the desired region: y is at most -1" in note for note in found.notes())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"x": [None]}, "x: 1 of 60 values are missing or infinite in line 152: drop or impute those rows"),
        ({"a": [np.inf]}, "a: 1 of 60 values are missing or infinite in line 152"),
        ({"y": [1e200]}, "y: 1e+200 in line 152 is too large to compute with"),
        (
            {"set:a": [1.0]},
            "set:a: expected observations; 1 rows have a value of a that was set by a decision",
        ),
    ],
)
def test_faults_of_a_part_are_those_of_a_table(tmp_path, change, told):
    frame = made()
    for name, (value,) in change.items():
        frame.loc[:, name] = frame.get(name, 0.0)
        frame.loc[150, name] = value
    frame.to_parquet(tmp_path / "t.parquet", index=False, row_group_size=60)
    with pytest.raises(TableError, match=re.escape(told)):
        TableFile(tmp_path / "t.parquet", TASK, CASES, rows=60)


def test_texts_missing_columns_and_constants_are_told(tmp_path):
    frame, file = made(), tmp_path / "t.parquet"
    frame.assign(x=frame["x"].astype(str) + " m").to_parquet(file)
    with pytest.raises(TableError, match=r"x: expected numbers; got '.* m' in line 2"):
        TableFile(file, TASK, CASES)
    frame.assign(a=1.0).to_parquet(file)
    with pytest.raises(TableError, match=r"a: all 200 values are 1: a constant carries no information"):
        TableFile(file, TASK, CASES)
    frame.drop(columns="a").to_parquet(file)
    with pytest.raises(TaskError, match="no column 'a'; there are other, y, x"):
        TableFile(file, TASK, CASES)
    folder = tmp_path / "folder"
    folder.mkdir()
    frame.to_parquet(folder / "1.parquet")
    frame.rename(columns={"a": "aa"}).to_parquet(folder / "2.parquet")
    with pytest.raises(TableError, match=r"(?s)2.parquet: .*no column 'a'; did you mean 'aa'"):
        TableFile(folder, TASK, CASES)


def test_damaged_missing_and_other_files_are_told(tmp_path, file):
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(TableError, match=r"cut.parquet is not a Parquet file, or is damaged"):
        TableFile(cut, TASK, CASES)
    # The pages of the first columns, not the footer.
    whole = bytearray(file.read_bytes())
    whole[4:3000] = b"\xff" * 2996
    cut.write_bytes(whole)
    with pytest.raises(TableError, match=r"cut.parquet is not a Parquet file, or is damaged"):
        TableFile(cut, TASK, CASES)
    with pytest.raises(TableError, match="there is no file"):
        TableFile(tmp_path / "none.parquet", TASK)
    with pytest.raises(TableError, match="no table is given"):
        TableFile(None, TASK)
    made().to_csv(tmp_path / "t.csv")
    with pytest.raises(TableError, match="only Parquet files are read in parts"):
        TableFile(tmp_path / "t.csv", TASK)


def test_what_needs_a_table_in_memory_is_refused_by_name(file):
    with pytest.raises(TaskError, match=r"unit: rows that are read in parts are not grouped \('other'\)"):
        TableFile(file, {**TASK, "unit": "other"}, CASES)
    coded = {**TASK, "codings": {"other": "categorical"}}
    with pytest.raises(TaskError, match=r"codings"):
        TableFile(file, coded, CASES)


def test_numbers_out_of_range_and_too_few_rows_are_refused(tmp_path, file):
    with pytest.raises(ValueError, match="expected cases and rows of at least 1; got 0 and"):
        TableFile(file, TASK, cases=0)
    made(30).to_parquet(tmp_path / "few.parquet")
    with pytest.raises(ValueError, match="expected at least 10 of each"):
        TableFile(tmp_path / "few.parquet", TASK)
    made(5).to_parquet(tmp_path / "few.parquet")
    with pytest.raises(TableError, match="expected at least 10 rows; got 5"):
        TableFile(tmp_path / "few.parquet", TASK, CASES)
    made(0).to_parquet(tmp_path / "few.parquet")
    with pytest.raises(TableError, match="expected at least 10 rows; got 0"):
        TableFile(tmp_path / "few.parquet", TASK, CASES)


def test_numbers_are_written_to_disk_for_a_fit_alone(file, monkeypatch):
    written = []

    def counted(spool, values):
        written.append(len(values))
        append(spool, values)

    append = RowSpool.append
    monkeypatch.setattr(RowSpool, "append", counted)
    found = TableFile(file, TASK, CASES)
    sent = pickle.loads(pickle.dumps(found))
    assert sent.case(0).given == found.case(0).given
    assert written == [], "a job with a checkpoint, such as a shard, reads the table once and writes nothing"
    first = found.training_rows()
    assert sum(written) == found.count_of_rows
    assert torch.equal(found.training_rows()[0].values, first[0].values)
    assert sum(written) == found.count_of_rows, "they are written once"
    pickle.dumps(found)
    found.close()
    assert len(found.training_rows()) == found.count_of_rows, "and again after they were closed"


@pytest.mark.parametrize("change", [lambda rows: rows[:-3], lambda rows: rows.assign(y=-rows["y"])])
def test_a_table_that_changes_between_check_and_fit_is_named(file, change):
    found = TableFile(file, TASK, CASES)
    change(pd.read_parquet(file)).to_parquet(file)
    with pytest.raises(TableError, match=r"was written to since it was checked, .* leave it unchanged"):
        found.training_rows()
