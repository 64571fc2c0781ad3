"""Episodes of a Parquet file that is read in parts: those of the same table in memory."""

import pickle
import tempfile
from pathlib import Path

import pytest
import torch

from rehearsal_torch.data.reading import TableError
from rehearsal_torch.data.tables import episode_spool
from rehearsal_torch.data.tables.blocks import fingerprint
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.problems.episodes import episode_file
from rehearsal_torch.problems.episodes.episode_file import EpisodeFile
from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.fit import fit
from tests.toys.pumps import TASK, table, task


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Sixty pumps in two files; one of them has rows in both."""
    made, frame = tmp_path_factory.mktemp("pumps"), table(60)
    frame.iloc[:100].to_parquet(made / "1.parquet", row_group_size=17)
    frame.iloc[100:].to_parquet(made / "2.parquet", row_group_size=50)
    return made


@pytest.fixture(scope="module")
def pumps() -> EpisodeTable:
    return EpisodeTable(table(60), TASK)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [7, 13, 64, 1000])
def test_parts_of_any_size_give_the_episodes_of_the_table(folder, pumps, rows):
    found = EpisodeFile(folder, TASK, rows=rows)
    assert fingerprint(found.training_rows()) == pumps.observations().fingerprint()
    assert fingerprint(found.held_out_rows()) == pumps.held_out().fingerprint()
    assert found.count() == pumps.count()
    for place in range(found.count()):
        one, other = found.case(place), pumps.case(place)
        assert one.episode.identity == other.episode.identity
        assert torch.equal(one.episode.values, other.episode.values)
        assert torch.equal(one.fixed, other.fixed)
    assert dict(found.counted) == {name: len(places) for name, places in pumps.splits.items()}
    assert found.length == pumps.length
    assert found.surrogate_settings() == pumps.surrogate_settings()
    assert found.reward_settings() == pumps.reward_settings()


def test_a_model_of_one_block_is_that_of_the_table_to_the_last_bit(folder, pumps):
    def fitted(problem, effects):
        torch.manual_seed(1)
        settings = dict(problem.surrogate_settings())
        made = TransitionModel(
            **settings, mechanism=lambda **sizes: LocationScale(hidden=6, **sizes), effects=effects
        )
        how = Descent(max_epochs=3, batch_size=50, progress=False)
        return fit(made, problem.training_rows(), how, problem.held_out_rows()), how.history

    for effects in ("dense", "sparse"):
        (one, seen), (other, expected) = fitted(EpisodeFile(folder, TASK), effects), fitted(pumps, effects)
        assert seen == expected
        for name, value in other.state_dict().items():
            assert torch.equal(one.state_dict()[name], value), name


def test_many_blocks_give_nearly_the_same_ranges_levels_and_effects(folder, pumps, monkeypatch):
    monkeypatch.setattr(episode_spool.EpisodeSpool.transitions, "__defaults__", (20,))
    problem = EpisodeFile(folder, TASK)
    assert problem.training_rows().count > 5

    def fitted(rows):
        torch.manual_seed(1)
        settings = dict(problem.surrogate_settings())
        made = TransitionModel(**settings, mechanism=lambda **sizes: LocationScale(hidden=6, **sizes))
        made.mechanism = made.mechanism.double()
        return fit(made, rows, Descent(max_epochs=2, batch_size=50, progress=False))

    one, other = fitted(problem.training_rows()), fitted(pumps.training_rows())
    for name, value in other.state_dict().items():
        torch.testing.assert_close(one.state_dict()[name], value, atol=1e-9, rtol=1e-9)


def test_few_cases_are_kept(folder, pumps):
    found = EpisodeFile(folder, TASK, cases=2, keep_last=0)
    assert [found.case(place).episode.identity for place in range(2)] == [
        pumps.case(place).episode.identity for place in range(2)
    ]
    assert found.count() == 2
    with pytest.raises(IndexError, match=r"expected a case in 0 ... 1; got 2"):
        found.case(2)


def test_the_numbers_on_disk_go_with_the_object(folder, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    temporary = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **how: made.append(temporary(**how)) or made[-1])
    found = EpisodeFile(folder, TASK)
    assert [file.closed for file in made] == [False, False]
    rows = found.training_rows()
    del found
    assert [file.closed for file in made] == [False, True], "observations can still be read"
    assert len(rows[0]) == len(rows)
    del rows
    assert all(file.closed for file in made)
    found = EpisodeFile(folder, TASK)
    found.close()
    assert all(file.closed for file in made)
    assert list(tmp_path.iterdir()) == []


def test_rows_of_a_unit_that_lie_apart_are_refused(tmp_path):
    frame = table(60)
    frame.iloc[[*range(10, 360), *range(10)]].to_parquet(tmp_path / "t.parquet", index=False)
    with pytest.raises(TableError, match=r"the rows of pump 2 lie apart: .* sort it by pump and hour"):
        EpisodeFile(tmp_path / "t.parquet", TASK, rows=50)


def test_times_may_be_in_any_order_within_a_unit(folder, tmp_path, pumps):
    frame = table(60).groupby("pump", group_keys=False)[list(table(1).columns)].apply(lambda rows: rows[::-1])
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    found = EpisodeFile(tmp_path / "t.parquet", TASK, rows=50)
    assert fingerprint(found.training_rows()) == pumps.observations().fingerprint()


def test_a_last_unit_with_one_row_or_a_gap_is_no_fault(tmp_path):
    """The length of a step is that of the rows before."""
    frame = table(60)
    gap = (frame["pump"] == 60) & frame["hour"].isin([1, 3, 5])
    alone = (frame["pump"] == 60) & (frame["hour"] > frame["hour"].min())
    for name, left in (("gap", gap), ("alone", alone)):
        frame[~left].to_parquet(tmp_path / f"{name}.parquet", index=False)
        found = EpisodeFile(tmp_path / f"{name}.parquet", task(missing="drop"), rows=30)
        assert found.length == 1
        assert sum(found.counts.values()) == 1, "the unit is left out and counted"
        assert sum(found.counted.values()) == 59


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda frame: frame.assign(oil=0.0), "oil: it is 0 in all rows of the pumps"),
        (lambda frame: frame.drop(columns="flow"), "no column 'flow'"),
        (lambda frame: frame.drop(columns="pump"), "no column 'pump'"),
        (lambda frame: frame.assign(heat=frame["heat"].where(frame.index != 250)), "in line 252"),
        (lambda frame: frame.iloc[:0], "the table has none"),
    ],
)
def test_faults_are_those_of_the_table(tmp_path, change, said):
    change(table(60)).to_parquet(tmp_path / "t.parquet", index=False)
    with pytest.raises(TableError, match=said):
        EpisodeFile(tmp_path / "t.parquet", TASK, rows=100)


def test_arguments_out_of_range_are_refused(folder, tmp_path):
    with pytest.raises(TableError, match=r"no table is given: set path=FILE\.parquet"):
        EpisodeFile(None, TASK)
    with pytest.raises(ValueError, match="expected split train"):
        EpisodeFile(folder, TASK, split="all")
    with pytest.raises(ValueError, match="got -1, 1000 and 65536"):
        EpisodeFile(folder, TASK, keep_last=-1)
    table(2).to_parquet(tmp_path / "t.parquet", index=False)
    with pytest.raises(ValueError, match=r"no pump fell into split .* of 2 pumps: use more pumps"):
        EpisodeFile(tmp_path / "t.parquet", TASK)


def test_observations_are_all_rows_if_they_are_few_and_else_a_sample(folder, pumps, monkeypatch):
    found = EpisodeFile(folder, TASK)
    assert found.observations().fingerprint() == pumps.observations().fingerprint()
    assert found.held_out().fingerprint() == pumps.held_out().fingerprint()
    assert found.notes() == ()
    assert {"actions", "splits", "caution", "missing"} <= set(found.card())
    for key in ("actions", "splits", "missing", "length of a step", "pumps", "caution: number of pumps"):
        assert found.card()[key] == pumps.card()[key], key
    monkeypatch.setattr(episode_file, "MOST", 50)
    few = EpisodeFile(folder, TASK)
    assert len(few.observations()) == 50
    count = len(pumps.observations())
    assert few.card()["transitions to learn from"] == len(few.training_rows()) == count
    (note,) = few.notes()
    assert note.startswith(f"the model is fitted to {count:,} transitions; the fingerprint")
    assert note.endswith("rest on 50 of them")


def test_a_copy_for_another_process_has_cases_and_no_rows_on_disk(folder):
    found = EpisodeFile(folder, TASK)
    copy = pickle.loads(pickle.dumps(found))
    assert copy.count() == found.count()
    assert torch.equal(copy.case(1).episode.values, found.case(1).episode.values)
    assert copy.observations().fingerprint() == found.observations().fingerprint()
    assert copy.episodes("train") is None
    assert [each.identity for each in copy.episodes("test")] == [each.identity for each in found.chosen]
