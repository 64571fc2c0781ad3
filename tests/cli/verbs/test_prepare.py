import subprocess
import sys
import time

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.verbs.prepare import main
from rehearsal_torch.problems.episodes.machines import Machines
from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
from tests.places import ROOT


def answered(capsys, *typed):
    code = main(list(typed))
    return code, capsys.readouterr()


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["machine"], "machine: there is no such verb. Did you mean machines?"),
        (["x"], "Choose from bermuda, machines"),
        (["machines"], "machines needs out= (the output folder). For example:"),
        (["machines", "sed=1"], "sed: machines has no such option. Did you mean seed?"),
        (["machines", "out"], "out: expected key=value. Write out=..."),
        (["machines", "data"], "data: expected key=value. The options of machines are out=..."),
        (["machines", "out="], "out=: has no value."),
        (["machines", "out=a", "out=b"], "out: was given twice."),
        (["bermuda", "out=b"], "bermuda needs source="),
    ],
)
def test_slips_are_answered(capsys, typed, message):
    code, said = answered(capsys, *typed)
    assert code == 2
    assert message in said.err
    assert said.out == ""
    assert len(said.err.splitlines()) == 1


def test_help_tells_verbs_and_options(capsys):
    code, said = answered(capsys, "--help")
    assert code == 0
    assert "machines " in said.out
    assert "bermuda " in said.out
    code, said = answered(capsys, "machines", "--help")
    assert code == 0
    assert "(default: 600)" in said.out
    code, said = answered(capsys)
    assert code == 2


def test_help_is_quick():
    began = time.monotonic()
    heavy = "sorted({'torch', 'pandas', 'sklearn'} & set(sys.modules))"
    code = (
        "import sys; from rehearsal_torch.cli.verbs.prepare import main; main(['machines', '--help']); "
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
        main(["machine"])


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


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("machines=0", "machines: expected a whole number of at least 1; got 0"),
        ("seed=-1", "seed: expected a whole number of at least 0; got -1"),
        ("seed=x", "seed: expected a whole number of at least 0; got x"),
    ],
)
def test_numbers_of_machines_are_checked(tmp_path, capsys, typed, message):
    code, said = answered(capsys, "machines", f"out={tmp_path}", typed)
    assert code == 2
    assert message in said.err
    assert not list(tmp_path.iterdir())
