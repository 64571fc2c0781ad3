"""The verb explore: its arguments, what it needs, and how it ends."""

import asyncio
import importlib.util
from pathlib import Path

import pytest

from rehearsal_torch.cli.verbs import explore as command
from rehearsal_torch.console_command import VERBS
from rehearsal_torch.console_command import run as main
from tests.toys.explored import run_folder


def test_folder_and_options_are_read(tmp_path):
    assert VERBS["explore"].read_with_paths(["RUN"]) == (
        [Path("RUN")],
        {"port": "0", "host": "127.0.0.1", "method": "excbo", "open": "false"},
    )
    folders, given = VERBS["explore"].read_with_paths(["run=a/b", "port=8000", "open=true"])
    assert (folders, given["open"], given["port"]) == ([Path("a/b")], "true", "8000")
    odd = tmp_path / "seed=1"
    odd.mkdir()
    assert VERBS["explore"].read_with_paths([str(odd)])[0] == [odd]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a", "port=65536"], "port=65536: expected a whole number from 0 to 65535"),
        (["a", "prot=1"], "Did you mean port"),
    ],
)
def test_slips_are_answered(arguments, words, capsys):
    assert main("explore", arguments) == 2
    assert words in capsys.readouterr().err


def test_the_help_names_the_extra(capsys):
    assert main("explore", ["--help"]) == 0
    told = capsys.readouterr().out
    assert "pip install 'rehearsal-torch[app]'" in told
    assert "port=..." in told
    assert main("explore", []) == 2


def test_a_missing_extra_is_one_paragraph(monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "uvicorn" else find(name))
    assert main("explore", ["RUN"]) == 2
    assert capsys.readouterr().err.strip() == (
        "the page needs uvicorn; not installed. Type pip install 'rehearsal-torch[app]'."
    )


def test_ctrl_c_ends_it_well_and_a_signal_does_not(tmp_path, monkeypatch, capsys):
    import uvicorn

    from rehearsal_torch.cli.errors import Stopped

    run = run_folder(tmp_path / "run")

    def interrupted(self, sockets):
        assert sockets[0].getsockname()[0] == "127.0.0.1"
        asyncio.run(self.startup())
        raise KeyboardInterrupt

    async def nothing(self, sockets=None):
        pass

    monkeypatch.setattr(uvicorn.Server, "startup", nothing)
    monkeypatch.setattr(uvicorn.Server, "run", interrupted)
    assert main("explore", [str(run)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("The page is at http://127.0.0.1:")
    assert told.endswith("Ended.\n")

    def stopped(self, sockets):
        raise Stopped(15)

    monkeypatch.setattr(uvicorn.Server, "run", stopped)
    assert main("explore", [str(run)]) == 143


def test_a_browser_is_opened_where_there_is_one(tmp_path, monkeypatch, capsys):
    import uvicorn

    asked = []

    async def nothing(self, sockets=None):
        pass

    monkeypatch.setattr(uvicorn.Server, "startup", nothing)
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: asyncio.run(self.startup()))
    monkeypatch.setattr("webbrowser.open", lambda address: asked.append(address) and False)
    assert main("explore", [str(run_folder(tmp_path / "run")), "open=true"]) == 0
    assert asked[0].startswith("http://127.0.0.1:")
    assert "No browser was found" in capsys.readouterr().out
