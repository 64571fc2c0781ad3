"""The package as a command: python -m rehearsal_torch."""

import runpy
import sys

import pytest


def test_it_is_the_console_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rehearsal", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("rehearsal_torch", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("rehearsal ")
