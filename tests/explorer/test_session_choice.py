"""Which session answers: by the kind of the folder."""

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
        (session_for(run_folder(tmp_path / "run")), RehearsalSession, "cases.html"),
        (session_for(small_model().save(tmp_path / "saved")), RehearsalSession, "cases.html"),
        (session_for(episodes_run(tmp_path / "episodes")), EpisodeSession, "episodes.html"),
    ):
        assert (type(session), session.page) == (kind, page)


def test_errors_are_user_errors_that_name_the_folder_once(tmp_path):
    run = run_folder(tmp_path / "run")
    (run / "checkpoint" / "weights.safetensors").write_bytes(b"no weights")
    with pytest.raises(UserError, match=r"weights\.safetensors") as caught:
        session_for(run)
    assert str(caught.value).count(str(run)) == 1


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
