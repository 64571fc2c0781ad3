"""What the configuration's own keys allow."""

import pytest

from rehearsal_torch.cli.configuration_keys import check, refuse_unread
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.user_error import UserError


def checked(*typed, script="train", multirun=False):
    config, jobs = composed(list(typed), multirun)
    check(config, script, jobs, list(typed))


def refused(*typed, **more):
    with pytest.raises(UserError) as as_user_error:
        checked(*typed, **more)
    return str(as_user_error.value)


@pytest.mark.slow
def test_a_checkpoint_is_for_deciding_and_brings_its_own_surrogate(tmp_path):
    (tmp_path / "run/checkpoint").mkdir(parents=True)
    given = ["+experiment=sepsis", f"checkpoint={tmp_path / 'run'}"]
    assert "this folder holds no checkpoint" in refused(*given, script="decide")
    near = refused("+experiment=sepsis", f"checkpoint={tmp_path / 'runn'}", script="decide")
    assert "there is no such folder" in near
    assert str(tmp_path / "run") not in near.replace(str(tmp_path / "runn"), ""), "it holds none either"
    assert "Use python scripts/decide.py, or leave checkpoint= out" in refused(*given)
    assert "Train first, then give checkpoint=FOLDER" in refused(
        "+experiment=sepsis", "shards=2", script="decide"
    )
    for name in ("config.yaml", "weights.safetensors", "card.yaml"):
        (tmp_path / "run/checkpoint" / name).write_text("name: run")
    near = refused("+experiment=sepsis", f"checkpoint={tmp_path / 'runn'}", script="decide")
    assert near.endswith(f"Did you mean {tmp_path / 'run'}?")
    checked(*given, script="decide")
    said = refused(*given, "surrogate.count=3", script="decide")
    assert "a checkpoint brings its own surrogate, so surrogate.count=3 would change nothing" in said


@pytest.mark.slow
def test_cross_fitted_claims_need_fits_of_their_own(tmp_path):
    decide = {"script": "decide"}
    words = refused("+experiment=auf", "claims=cross_fited", **decide)
    assert "claims: expected in_sample or cross_fitted; got cross_fited" in words
    assert "Did you mean cross_fitted" in words
    words = refused("+experiment=auf", "claims=cross_fitted", "learn=true", **decide)
    assert "claims=cross_fitted: an online run fits again after each round" in words
    (tmp_path / "config.yaml").write_text("_target_: x\n")
    (tmp_path / "weights.safetensors").write_text("")
    words = refused("+experiment=auf", "claims=cross_fitted", f"checkpoint={tmp_path}", **decide)
    assert "a checkpoint holds one fit" in words
    checked("+experiment=auf", "claims=cross_fitted", **decide)


def test_a_password_in_an_address_is_refused_before_a_folder_keeps_it():
    typed = ("+experiment=sepsis", "logger=mlflow", "logger.mlflow.tracking_uri=http://a:pw@10.0.0.5:1")
    said = refused(*typed)
    assert said.startswith("logger.mlflow.tracking_uri: expected an address without a user's name")
    assert "10.0.0.5" not in said


def read(*typed, multirun=False):
    config, jobs = composed(list(typed), multirun)
    refuse_unread(config, "decide", jobs, list(typed))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["path=folder"], "a run is continued by resume=FOLDER"),
        (["path=loans.json"], "Name a problem file (.yaml), which is made of a table by"),
    ],
)
def test_a_file_that_the_data_set_does_not_read_is_refused_by_name(tmp_path, monkeypatch, typed, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("loans.csv", "loans.json"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(UserError) as caught:
        read(*typed)
    message = str(caught.value)
    file = typed[0].removeprefix("path=")
    assert message.startswith(f"{file}: ")
    assert said in message
    assert "so that it would be ignored" in message
    if file == "loans.csv":
        assert "data=loans.csv, then" in message


@pytest.mark.slow
def test_a_file_that_one_job_of_a_sweep_reads_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stays.csv").write_text("a,b\n1,2\n")
    read("path=stays.csv", "dataset=sepsis_simulated,mimic", multirun=True)
    read("path=stays.csv", "dataset=mimic")


def test_the_command_that_reads_problem_files_follows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loans.csv").write_text("a,b\n1,2\n")
    config, jobs = composed(["path=loans.csv"], False)
    with pytest.raises(UserError) as caught:
        refuse_unread(config, "collect", jobs, ["path=loans.csv"])
    assert str(caught.value).endswith(", then python scripts/decide.py path=problem.yaml.")
