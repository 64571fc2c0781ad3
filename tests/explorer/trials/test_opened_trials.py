"""A file of trials is found by its name or in its folder, or refused in words."""

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.explorer.sessions import session_for
from rehearsal_torch.explorer.trials.opened_trials import file_of
from rehearsal_torch.explorer.trials.trial_session import TrialSession
from tests.toys.explored import run_folder
from tests.toys.explored_trials import file_of_trials


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
