"""Which session answers: by the kind of the folder."""

import json

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.explorer.episode_session import EpisodeSession
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.explorer.sessions import session_for
from tests.toys.explored import run_folder, small_model
from tests.toys.explored_episodes import episodes_run


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
