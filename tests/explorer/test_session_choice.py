"""Which session answers: by the kind of the folder."""

import json

import pytest

from rehearsal_torch.explorer.episode_session import EpisodeSession
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.explorer.session_choice import file_of, session_for
from rehearsal_torch.explorer.trial_session import TrialSession
from rehearsal_torch.user_error import UserError
from tests.toys.explored import run_folder, small_model
from tests.toys.explored_episodes import episodes_run
from tests.toys.explored_trials import file_of_trials


def test_the_kind_of_the_folder_decides(tmp_path):
    for session, kind, page in (
        (session_for(run_folder(tmp_path / "run")), RehearsalSession, "explorer.html"),
        (session_for(small_model().save(tmp_path / "saved")), RehearsalSession, "explorer.html"),
        (session_for(episodes_run(tmp_path / "episodes")), EpisodeSession, "episodes.html"),
    ):
        assert (type(session), session.page) == (kind, page)


def test_errors_are_user_errors_that_name_the_folder_once(tmp_path):
    with pytest.raises(UserError, match="there is no such folder"):
        session_for(tmp_path / "gone")
    run = run_folder(tmp_path / "run")
    (run / "checkpoint" / "weights.safetensors").write_bytes(b"no weights")
    with pytest.raises(UserError, match=r"weights\.safetensors") as caught:
        session_for(run)
    assert str(caught.value).count(str(run)) == 1
    (run / "run.json").write_text(json.dumps({"kind": "dance"}))
    with pytest.raises(UserError, match="kind: expected"):
        session_for(run)


@pytest.fixture
def file(tmp_path):
    return file_of_trials(tmp_path / "trials.json", completed=1, pending=1)


def test_a_file_or_its_folder_is_opened(file):
    (file.parent / "notes.json").write_text("{}")
    for place in (file, file.parent):
        session = session_for(place, "ucb")
        assert isinstance(session, TrialSession)
        assert (session.file, session.method) == (file, "ucb")
        assert [row["id"] for row in session.trials()["pending"]] == [2]


def test_a_run_is_none(tmp_path):
    run = run_folder(tmp_path / "run")
    assert file_of(run) is None
    assert file_of(tmp_path / "gone") is None
    with pytest.raises(UserError, match="method=ucb: is for files of trials"):
        session_for(run, "ucb")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda file: file.unlink(), "trials.json"),
        (lambda file: file.write_text("{"), "trials.json"),
        (lambda file: file.write_text("{}"), "expected a file of trials"),
        (lambda file: file.write_text(file.read_text().replace("trials/1", "trials/9")), "another version"),
        (
            lambda file: file.write_text(file.read_text().replace('"reward": {', '"reward": null, "x": {')),
            "reward",
        ),
    ],
)
def test_other_files_are_refused_in_a_paragraph(file, damage, words):
    damage(file)
    with pytest.raises(UserError, match=words):
        session_for(file)


def test_several_files_have_to_be_told_apart(file):
    file_of_trials(file.with_name("others.json"), completed=1)
    with pytest.raises(UserError, match=r"holds 2 files of trials \(others.json, trials.json\)"):
        session_for(file.parent)


def test_a_method_that_is_none_for_trials_is_refused(file):
    with pytest.raises(UserError, match="method='branch_and_bound' decides for episodes"):
        session_for(file, "branch_and_bound")
    with pytest.raises(UserError, match="there is no method 'exbco'"):
        session_for(file, "exbco")
