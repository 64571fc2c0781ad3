"""Models of episodes that were saved: units of tables that come after the fit, read and answered alike."""

from dataclasses import replace

import polars as pl
import pytest
import torch
import yaml

import rehearsal_torch as rt
from rehearsal_torch.cli.verbs.train import fit
from rehearsal_torch.data.tables.reader import TableError
from rehearsal_torch.methods.run_parts import build
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import RequestError
from tests.methods.test_run_parts import configured
from tests.toys.pumps import SMALL, fitted, table, task, told


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(scope="module")
def loaded(model, tmp_path_factory):
    return rt.load(model.save(tmp_path_factory.mktemp("saved") / "pumps"))


@pytest.mark.slow
def test_a_loaded_model_answers_as_the_one_that_was_saved(model, loaded):
    assert isinstance(loaded, rt.EpisodeModel)
    assert loaded.cases == []
    case = model.cases[0]
    found = loaded.look_back(case, 2, records=model.problem.observations())
    assert told(found) == told(model.look_back(case, 2))
    assert found.words == replace(model.words, first=0)
    assert found.summary().startswith(f"Pump {case.identity}: ")


@pytest.mark.slow
def test_units_of_a_later_table_are_read_as_those_of_the_fit(model, loaded):
    later = table(units=3, seed=9)
    units = loaded.read(later)
    assert [each.identity for each in units] == ["1", "2", "3"]
    assert units[0].fixed.tolist() == [*[False] * 5, True]
    assert units[0].episode.names == model.cases[0].episode.names
    of_polars = loaded.read(pl.DataFrame(later))
    assert told(loaded.look_back(units[0], 2)) == told(loaded.look_back(of_polars[0], 2))


def test_one_unit_with_one_distance_of_steps_has_the_length_of_the_fit(loaded):
    few = table(units=1, steps=8)
    with pytest.raises(TableError, match="gaps"):
        loaded.read(few[few["hour"] % 2 == 0])


def test_what_leaves_the_data_of_the_fit_is_warned_of(loaded):
    later = table(units=1, seed=9)
    later.loc[2, "heat"] = 400.0
    found = loaded.look_back(loaded.read(later)[0], 1)
    assert any(each.startswith("heat") for each in found.warnings)


def test_it_says_why_no_hidden_cause_is_known(tmp_path):
    model = rt.learn_episodes(table(effect=25.0), task(), seed=3, **SMALL)
    found = rt.load(model.save(tmp_path / "pumps")).look_back(model.cases[0], 2)
    assert found.hidden_cause is None
    assert found.alteration is not None
    assert "not computed: the transitions to which the model was fitted" in str(found.trace["hidden_cause"])


def test_names_need_a_table(loaded):
    with pytest.raises(RequestError, match=r"there is no pump '3': a loaded model has no rows. Read a table"):
        loaded.look_back(3)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (table(units=2, steps=1), TableError, "no pump with at least 2 steps is left"),
        (7, RequestError, "table: expected a data frame or a .csv file; got a int"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(loaded, given, error, said):
    with pytest.raises(error, match=said):
        loaded.read(given)


@pytest.mark.slow
def test_a_model_is_saved_with_its_method_and_settings(tmp_path):
    asked = {"search.budget_s": 5, **SMALL}
    model = rt.learn_episodes(table(effect=25.0), task(), "greedy", 3, **asked)
    again = rt.load(model.save(tmp_path / "greedy"))
    assert (again.method, again.seed, again.changes, dict(again.settings)) == (
        "greedy",
        3,
        3,
        {"search.budget_s": 5},
    )
    twice = rt.load(again.save(tmp_path / "again"))
    assert rt.card(tmp_path / "again") == rt.card(tmp_path / "greedy")
    mine, other = model.surrogate.state_dict(), twice.surrogate.state_dict()
    assert all(torch.equal(mine[name], other[name]) for name in mine)


@pytest.mark.slow
def test_changes_are_a_frame_of_any_library(model):
    found = next(each for each in (model.look_back(one, 3) for one in model.cases) if each.alteration)
    frame = found.to_frame("polars")
    assert isinstance(frame, pl.DataFrame)
    assert frame.to_dict(as_series=False) == found.to_frame().to_dict("list")
    with pytest.raises(ValueError, match="library: expected pandas, polars, pyarrow"):
        found.to_frame("csv")


@pytest.mark.slow
def test_steps_are_named_by_the_times_of_the_units_own_table(tmp_path):
    weeks = task(words={"unit": "pump", "units": "pumps", "step": "week"})
    rows = table(effect=25.0).assign(hour=lambda rows: rows["hour"] + 3)
    model = rt.learn_episodes(rows, weeks, seed=3, **SMALL)
    later = table(seed=9, effect=25.0).assign(hour=lambda rows: rows["hour"] + 13)
    for each in (model, rt.load(model.save(tmp_path / "pumps"))):
        units = each.read(later)
        found = next(found for found in (each.look_back(one, 3) for one in units) if found.alteration)
        steps = found.to_frame()["step"].tolist()
        assert all(f"<td>{step + 12}</td>" in found._repr_html_() for step in steps)
        assert each.look_back(units[0].episode, 2).words.first is None
        uneven = later[(later["pump"] != 1) | (later["hour"] > 13)]
        assert {one.first for one in each.read(uneven)} == {None}
    assert model.look_back(model.cases[0], 2).words.first == 3
    assert model.look_back(model.problem.episodes("train")[0].identity, 2).words.first == 3


@pytest.mark.slow
def test_amounts_beyond_those_of_the_fit_are_warned_of(loaded):
    later = table(units=1, seed=9)
    later.loc[2, "oil"] = 50.0
    (said,) = (each for each in loaded.look_back(loaded.read(later)[0], 1).warnings if "oil" in each)
    assert said.startswith("oil is up to 50; the observations lie between 0 and ")
    assert said.endswith(", and it is taken as the highest of their levels")
    assert said in rt.look_back(loaded, loaded.read(later)[0], 1).warnings


@pytest.mark.slow
def test_look_back_with_a_model_of_a_task_has_its_words_and_settings(tmp_path):
    weeks = task(words={"unit": "pump", "units": "pumps", "step": "week"})
    asked = {"search.node_limit": 1, **SMALL}
    model = rt.learn_episodes(table(), weeks, seed=3, **asked)
    case = model.cases[0]
    found = rt.look_back(model.save(tmp_path / "pumps"), case, 2, seed=3)
    assert found.summary() == model.look_back(case, 2).summary()
    assert found.words == model.look_back(case, 2).words
    other = rt.look_back(model, case, 2, reward={"flow": 1.0}, seed=3)
    assert other.summary().startswith("Episode ")


@pytest.mark.slow
def test_it_is_the_model_that_the_command_line_fits(model, tmp_path):
    table(effect=25.0).to_csv(tmp_path / "pumps.csv", index=False)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task(), sort_keys=False))
    typed = ["+experiment=own_episodes", f"path={tmp_path}/pumps.csv", f"dataset.task={tmp_path}/task.yaml"]
    run = build(configured(*typed, "seed=3", *(f"{key}={value}" for key, value in SMALL.items())))
    typed_in = fit(run, RunFolder(tmp_path / "run")).state_dict()
    mine = model.surrogate.state_dict()
    assert mine.keys() == typed_in.keys()
    assert all(torch.equal(mine[name], typed_in[name]) for name in mine)


def test_cases_are_the_units_that_nothing_was_learnt_from(model):
    learnt = {each.identity for each in model.problem.episodes("train")}
    assert len(model.cases) == model.problem.count() == len(model.problem.splits["test"])
    assert not learnt & {each.identity for each in model.cases}


@pytest.mark.slow
def test_it_looks_back_as_the_verb_does_in_the_words_of_the_task(model):
    case = model.cases[0]
    found = model.look_back(case, 2)
    plain = rt.look_back(
        model.surrogate, case, 2, reward=model.reward, seed=3, records=model.problem.observations()
    )
    assert told(found) == told(plain)
    assert found.words.subject == "pump"
    assert found.summary().startswith(f"Pump {case.identity}: ")
    assert str(found).splitlines()[0] == found.summary()
    by_name = model.look_back(case.identity, 2)
    assert told(by_name) == told(found)


@pytest.mark.slow
def test_levels_have_their_names_in_the_frame(model):
    found = next(each for each in (model.look_back(one, 3) for one in model.cases) if each.alteration)
    frame = found.to_frame()
    assert set(frame["from/valve"]) | set(frame["to/valve"]) <= {"shut", "half", "open"}
    assert all(isinstance(each, float) for each in frame["to/oil"])
    assert any(each in found._repr_html_() for each in ("shut", "half", "open"))


@pytest.mark.slow
def test_units_that_were_learnt_from_can_be_asked_for_by_name(model):
    name = model.problem.episodes("train")[0].identity
    assert model.look_back(name, 1).case.identity == model.look_back(int(name), 1).case.identity == name
    with pytest.raises(RequestError, match=r"unit: expected the name of a pump, .* got float"):
        model.look_back(3.0)
    with pytest.raises(RequestError, match=r"there is no pump 'p7': Did you mean 7\?"):
        model.look_back("p7")
    with pytest.raises(RequestError, match="there is no pump 'other': the table has 30, such as '1'"):
        model.look_back("other")


def test_frames_of_other_libraries_are_the_same(model):
    again = rt.learn_episodes(pl.DataFrame(table(effect=25.0)), task(), seed=3, **SMALL)
    mine, other = model.surrogate.state_dict(), again.surrogate.state_dict()
    assert all(torch.equal(mine[name], other[name]) for name in mine)


@pytest.mark.slow
def test_a_saved_model_looks_back_alike(model, tmp_path):
    folder = model.save(tmp_path / "pumps")
    again = rt.load(folder)
    one, other = (
        rt.look_back(each, model.cases[0], 2, reward=model.reward, seed=3)
        for each in (model.surrogate, again)
    )
    assert told(one) == told(other)
    assert rt.card(folder)["data_fingerprint"] == model.problem.observations().fingerprint()


def test_what_cannot_be_used_is_said_before_anything_is_fitted():
    with pytest.raises(RequestError, match=r"'dataset\._target_' says what is built"):
        rt.learn_episodes(table(), task(), **{"dataset._target_": "os.system"})
