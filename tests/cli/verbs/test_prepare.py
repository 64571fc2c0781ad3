import subprocess
import sys
import time

import pytest

from rehearsal_torch.console_command import run
from rehearsal_torch.problems.sequences.machine_maintenance import Machines
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable
from rehearsal_torch.user_error import UserError
from tests.places import ROOT


def answered(capsys, *typed):
    code = run("prepare", list(typed))
    return code, capsys.readouterr()


def test_help_tells_verbs_and_options(capsys):
    code, said = answered(capsys, "--help")
    assert code == 0
    assert "machines " in said.out
    code, said = answered(capsys, "machines", "--help")
    assert code == 0
    assert "(default: 600)" in said.out
    code, said = answered(capsys)
    assert code == 2


def test_help_is_quick():
    began = time.monotonic()
    heavy = "sorted({'torch', 'pandas', 'sklearn'} & set(sys.modules))"
    code = (
        "import sys; from rehearsal_torch.console_command import run\n"
        "run('prepare', ['machines', '--help']); "
        f"print({heavy})"
    )
    message = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert message.splitlines()[-1] == "[]"
    assert time.monotonic() - began < 5


def test_full_errors_are_shown_on_demand(monkeypatch):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(UserError):
        run("prepare", ["machine"])


def test_machines_are_written_with_their_task(tmp_path, capsys):
    out = tmp_path / "example"
    code, said = answered(capsys, "machines", f"out={out}", "machines=40", "seed=3")
    assert code == 0
    assert said.out.splitlines()[-2:] == [
        f"  python scripts/check.py problem={out / 'problem.yaml'}",
        f"  python scripts/decide.py path={out / 'problem.yaml'}",
    ]
    read = EpisodeTable(out / "machines.csv", out / "machines.yaml", seed=3)
    world = Machines(machines=40, seed=3)
    assert read.observations().fingerprint() == world.observations().fingerprint()
    # Again into the same folder, but not over a file of somebody else.
    assert answered(capsys, "machines", f"out={out}", "machines=40", "seed=3")[0] == 0
    (out / "machines.yaml").write_text("mine: 1", encoding="utf-8")
    code, said = answered(capsys, "machines", f"out={out}")
    assert code == 2
    assert "was not written by this command" in said.err
