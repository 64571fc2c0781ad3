"""A finished run, made once, of which each test damages a copy."""

import shutil

import pytest

from rehearsal_torch.cli.main import decide, main
from tests.toys.resuming import Finished

SMALL = ["+experiment=auf", "decision=none", "dataset.size.rows=30", "limit=2", "workers=1", "truth=false"]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A finished run, and the configuration that Hydra handed to its job."""
    return Finished.of(tmp_path_factory.mktemp("finished"), SMALL)


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    """A copy of the finished run, in the folder where one is."""
    monkeypatch.chdir(tmp_path)
    # Pictures take half of the time, and say nothing here.
    monkeypatch.setattr("rehearsal_torch.reporting.run_report.figures", lambda run, words: {})
    return shutil.copytree(made.run, tmp_path / "run")


@pytest.fixture
def resume(made, run, monkeypatch, capsys):
    """Resumes the copy, or does what is typed with out=run: the exit code, and what was said.

    Composing the same configuration again, which takes a second, is left out.
    """
    made.handing_over(monkeypatch, run)

    def go_on(*typed):
        code = main(decide, list(typed) or ["resume=run"])
        return code, capsys.readouterr().err.strip()

    return go_on
