"""The episodes of a run folder: those of the run, or a refusal in words."""

import json
import shutil

import pytest
import yaml

from rehearsal_torch.explorer.open_run import located, opened_episodes, recorded
from rehearsal_torch.explorer.session_choice import session_for
from rehearsal_torch.user_error import UserError
from tests.toys.explored_episodes import episodes_run


@pytest.fixture
def run(tmp_path):
    return episodes_run(tmp_path / "run")


def test_the_episodes_are_those_that_the_run_decided_for(run):
    found = opened_episodes(recorded(run))
    assert [case.identity for case in found.cases] == ["3", "15", "17"]
    assert (found.run.seed, found.surrogate.members) == (0, 2)
    (run / "decisions.jsonl").unlink()
    found = opened_episodes(recorded(run))
    assert len(found.cases) == found.run.problem.count() > 3


def test_data_are_found_from_the_folders_that_hold_the_run(tmp_path, monkeypatch):
    run = tmp_path / "runs" / "own"
    run.mkdir(parents=True)
    (tmp_path / "rows.csv").touch()
    assert located("rows.csv", run) == str(tmp_path / "rows.csv")
    assert located("gone.csv", run) == "gone.csv"
    monkeypatch.chdir(tmp_path)
    assert located("rows.csv", run) == "rows.csv"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda run: shutil.rmtree(run / "checkpoint"), "holds no checkpoint"),
        (lambda run: edit(run, "config.yaml", dataset=None), "config.yaml has no dataset"),
        (lambda run: edit(run, "config.yaml", learn=True), "is an online run"),
        (lambda run: edit(run, "config.yaml", search={"_target_": "os.system"}), "nothing was built"),
        (
            lambda run: edit(run, "config.yaml", dataset={"_target_": "os.system"}),
            "cannot be read: .*nothing",
        ),
        (
            lambda run: edit(run, "config.yaml", dataset=dataset(run) | {"machines": 61}),
            "the episodes are no longer those of the run: its data",
        ),
        (lambda run: renamed(run, '"index": 1,', '"index": 4000,'), "the episodes are no longer those of"),
        (lambda run: renamed(run, '"identity": "15"', '"identity": "16"'), "the episodes are no longer"),
        (lambda run: renamed(run, '"status"', '"state"'), "run/decisions.jsonl, line 1: expected the keys"),
        (lambda run: (run / "checkpoint" / "weights.safetensors").write_bytes(b""), "weights.safetensors"),
    ],
)
def test_other_folders_are_refused_in_a_paragraph(run, damage, words):
    damage(run)
    with pytest.raises(UserError, match=words):
        session_for(run)


def test_a_table_that_is_gone_is_named(run):
    table = {
        "_target_": "rehearsal_torch.problems.sequences.user_episodes.EpisodeTable",
        "path": "gone.csv",
        "task": "gone.yaml",
    }
    edit(run, "config.yaml", dataset=table)
    with pytest.raises(UserError, match=r"the episodes of the run cannot be read: .*gone.*A run keeps no"):
        session_for(run)


def test_the_checkpoint_of_another_kind_is_refused(run):
    card = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(card | {"kind": "rehearse"}))
    with pytest.raises(UserError, match="expected the model of a rehearsal task; got a TransitionEnsemble"):
        session_for(run)


def renamed(run, before, after):
    path = run / "decisions.jsonl"
    path.write_text(path.read_text().replace(before, after))


def dataset(run):
    return yaml.safe_load((run / "config.yaml").read_text())["dataset"]


def edit(run, name, **changes):
    config = yaml.safe_load((run / name).read_text()) | changes
    kept = {key: value for key, value in config.items() if value is not None}
    (run / name).write_text(yaml.safe_dump(kept))


def test_answers_are_by_the_recorded_reward_and_rules_where_the_file_has_changed_since(run):
    before = opened_episodes(recorded(run))
    assert before.notes == ()
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["objective"] |= {"rules": config["objective"]["rules"] | {"most_levels": 1}}
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    after = opened_episodes(recorded(run))
    assert len(after.notes) == 1
    assert "has changed since the run (rules): answers are by what the run recorded" in after.notes[0]
    kept, was = after.run.objective.keywords, before.run.objective.keywords
    assert kept["rules"] == was["rules"]
    assert after.notes[0] in session_for(run).describe()["beside"]["answer"]
