"""Files that a command would not read, and tables in the place of a problem file."""

import pytest

from rehearsal_torch.cli.choice.unread_file import refuse_unread
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.methods.conf import CONF
from rehearsal_torch.user_error import UserError


def read(*typed, multirun=False):
    config, jobs = composed(CONF, list(typed), multirun)
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
    config, jobs = composed(CONF, ["path=loans.csv"], False)
    with pytest.raises(UserError) as caught:
        refuse_unread(config, "collect", jobs, ["path=loans.csv"])
    assert str(caught.value).endswith(", then python scripts/decide.py path=problem.yaml.")
