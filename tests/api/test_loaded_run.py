"""The model of a run folder decides as the run did, says what it leaves out, and builds nothing foreign."""

import json

import pytest
import yaml

import rehearsal_torch as rt
from rehearsal_torch.api.rehearsal_model import RehearsalModel
from rehearsal_torch.checkpoint import CheckpointError
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.surrogates.tipping_strength import UNRECORDED
from rehearsal_torch.user_error import RequestWarning
from tests.toys.explored import CASES, run_folder, small_model

LEFT = "that cases of this run have of their own, so that this one may set a from -4 to 4: to decide"


@pytest.fixture
def run(tmp_path):
    return run_folder(tmp_path / "run")


def edited(run, name, **changes):
    path = run / name
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))


def without_bounds(run):
    path = run / "decisions.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**line, "bounds": {}}) + "\n" for line in lines))


def test_it_decides_as_the_run_did(run):
    without_bounds(run)
    found = rt.load(run)
    assert isinstance(found, RehearsalModel)
    assert (found.name, found.seed, found.units) == ("care", 0, {})
    again = found.decide([{"x": value} for value in CASES.values()])
    assert again == small_model().decide([{"x": value} for value in CASES.values()])
    assert found.card["data"]["rows"] == 120
    assert found.card["intended_use"].startswith("Decision support")


def test_bounds_of_single_cases_are_said_to_be_left_behind_also_once_it_is_saved(run, tmp_path):
    found = rt.load(run)
    for model in (found, rt.load(found.save(tmp_path / "saved"))):
        with pytest.warns(RequestWarning, match=LEFT):
            model.decide({"x": 0.1})


def test_units_of_the_run_stand_in_its_sentences(run, tmp_path):
    without_bounds(run)
    record = json.loads((run / "run.json").read_text()) | {"words": {"units_of": {"m": "mg", "a": ""}}}
    (run / "run.json").write_text(json.dumps(record))
    found = rt.load(run)
    assert found.units == {"m": "mg"}
    loaded = rt.load(found.save(tmp_path / "saved"))
    for model in (found, loaded):
        assert " mg. The estimated chance" in model.decide({"x": 0.1}).sentences()[0]
        assert model.what_if({"x": 0.1}, {"m": 1.0}).sentence().startswith("With m at 1 mg, the estimated")


def test_strengths_are_known_where_the_run_has_decided_and_there_alone(run, tmp_path):
    without_bounds(run)
    loaded = rt.load(rt.load(run).save(tmp_path / "saved"))
    lines = (run / "decisions.jsonl").read_text().splitlines()
    assert {tuple(json.loads(line)["alteration"]) for line in lines} == {("m",)} == set(loaded.strengths)
    strongest = max(small_model().strengths["m",].items(), key=lambda pair: pair[1])
    assert loaded.strengths["m",] == pytest.approx(dict([strongest]), rel=1e-5)
    assert loaded.overturning.why_none(("a",)) == UNRECORDED


def test_what_decisions_rest_on_besides_is_warned_of(tmp_path):
    run = run_folder(tmp_path / "run", claims="cross_fitted")
    with pytest.warns(RequestWarning, match="claims=cross_fitted") as told:
        rt.load(run)
    assert told[0].filename == __file__


def test_online_runs_and_bare_checkpoints_give_their_surrogate(run):
    assert isinstance(rt.load(run / "checkpoint"), Surrogate)
    edited(run, "config.yaml", learn=True)
    assert isinstance(rt.load(run), Surrogate)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"objective": {"_target_": "os.system"}}, "nothing was built"),
        ({"search": {"_target_": "pathlib.Path"}}, "nothing was built"),
        ({"trusted": ["os"], "objective": {"_target_": "os.system"}}, "nothing was built"),
        ({"objective": {}}, "no objective or no search"),
        ({"seed": "later"}, "seed: expected a whole number of at least 0; got 'later'"),
        ({"seed": 10**400}, "seed: expected a whole number of at most 8796093022207; got one of 1329 bits"),
    ],
)
def test_a_damaged_or_hostile_configuration_is_refused_with_a_way_out(run, changes, words):
    edited(run, "config.yaml", **changes)
    with pytest.raises(CheckpointError, match=words) as told:
        rt.load(run)
    assert f"the surrogate alone: load {run / 'checkpoint'}" in str(told.value)
