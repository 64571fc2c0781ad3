"""Commands do not write over files of others."""

import errno

import pytest

from rehearsal_torch.cli.errors import begins, check_output
from rehearsal_torch.console_command import run
from rehearsal_torch.user_error import UserError, user_error_from


def test_a_file_of_the_same_name_is_left_alone(tmp_path):
    check_output(tmp_path / "new", ["graph.yaml"], "graphs.yaml", "options:")
    (tmp_path / "table.csv").touch()
    check_output(tmp_path, ["graph.yaml"], "graphs.yaml", "options:")
    (tmp_path / "graph.yaml").write_text("mine")
    with pytest.raises(UserError, match=r"graph\.yaml exists there already"):
        check_output(tmp_path, ["graph.yaml"], "graphs.yaml", "options:")
    (tmp_path / "graphs.yaml").write_text("options:\n  data: x\n")
    check_output(tmp_path, ["graph.yaml"], "graphs.yaml", "options:")
    assert not begins(tmp_path / "graphs.yaml", "option:")


@pytest.mark.parametrize(
    ("verb", "typed", "name"), [("learn_graph", ["data=table.csv", "out=."], "graph.yaml")]
)
def test_every_command_asks_before_it_writes(tmp_path, monkeypatch, capsys, verb, typed, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    (tmp_path / name).write_text("{}")
    assert run(verb, typed) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "table.csv": "a,b\n1,2\n",
        name: "{}",
    }


def test_of_a_copy_the_place_that_is_written_to_is_named():
    copied = OSError(errno.ENOSPC, "No space left on device", "/tmp/one", None, "run/last.ckpt")
    written = OSError(errno.ENOSPC, "No space left on device", "run/weights")
    unnamed = OSError(errno.ENOSPC, "No space left on device")
    found = [user_error_from(error).where for error in (copied, written, unnamed)]
    assert found == ["run/last.ckpt", "run/weights", ""]
