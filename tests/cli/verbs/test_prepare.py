import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.verbs.prepare import main
from rehearsal_torch.problems.episodes.machines import Machines
from rehearsal_torch.problems.episodes.own_episodes import EpisodeTable
from rehearsal_torch.problems.nhanes.dataset import Nhanes
from rehearsal_torch.problems.nhanes.modules import CYCLES, columns_of
from rehearsal_torch.problems.world_size import SampleSize
from tests.places import ROOT
from tests.problems.nhanes.test_modules import small_modules
from tests.toys.transport import write


def answered(capsys, *typed):
    code = main(list(typed))
    return code, capsys.readouterr()


def test_help_tells_verbs_and_options(capsys):
    code, said = answered(capsys, "--help")
    assert code == 0
    assert "nhanes " in said.out
    assert "bermuda " in said.out
    code, said = answered(capsys, "nhanes", "--help")
    assert code == 0
    assert "download=true|false" in said.out
    assert "(default: false)" in said.out
    code, said = answered(capsys)
    assert code == 2


def test_help_is_quick():
    began = time.monotonic()
    heavy = "sorted({'torch', 'pandas', 'sklearn'} & set(sys.modules))"
    code = (
        "import sys; from rehearsal_torch.cli.verbs.prepare import main; main(['nhanes', '--help']); "
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
        main(["nhanse"])


def test_other_modules_than_the_published_are_refused(capsys, tmp_path):
    (tmp_path / "data").mkdir()
    code, said = answered(
        capsys, "nhanes", f"source={small_modules(tmp_path / 'data')}", f"out={tmp_path / 'out'}"
    )
    assert code == 2
    assert "40 modules differ" in said.err
    assert "checksums=false" in said.err
    code, said = answered(
        capsys, "nhanes", f"source={tmp_path / 'data'}", f"out={tmp_path / 'out'}", "checksums=false"
    )
    assert code == 2
    assert "at least 512 complete cases; got 16" in said.err
    (tmp_path / "file").write_text("")
    code, said = answered(capsys, "nhanes", f"source={tmp_path / 'data'}", f"out={tmp_path / 'file'}")
    assert code == 2
    assert "is a file" in said.err


def crowd(folder, each=150):
    """Modules of made-up people, all complete."""
    stream = np.random.default_rng(0)
    for number, cycle in enumerate(CYCLES):
        age = stream.integers(20, 81, each)
        special = {
            "RIDAGEYR": age,
            "RIAGENDR": stream.integers(1, 3, each),
            "RIDRETH3": stream.choice([1, 3, 6], each),
            "DMDEDUC2": stream.integers(1, 6, each),
        }
        special |= {
            "MCQ300C": stream.integers(1, 3, each),
            "INDFMPIR": stream.uniform(0, 5, each).round(2),
            "LBXGH": np.exp(1.6 + 0.003 * age),
        }
        special["LBXGH"] = special["LBXGH"] * np.exp(0.1 * stream.standard_normal(each))
        for module, columns in columns_of(cycle).items():
            values = {column: special.get(column, stream.lognormal(4, 0.3, each)) for column in columns}
            identities = np.arange(each) + 1000 * number
            write(
                folder / f"{module}_{cycle}.XPT",
                {"SEQN": identities.tolist()}
                | {column: np.asarray(each).tolist() for column, each in values.items()},
            )
    return folder


@pytest.mark.bench
def test_from_modules_to_a_world(capsys, tmp_path):
    (tmp_path / "data").mkdir()
    out = tmp_path / "out"
    code, said = answered(
        capsys, "nhanes", f"source={crowd(tmp_path / 'data')}", f"out={out}", "checksums=false"
    )
    assert (code, said.err) == (0, "")
    assert "HbA1c and FPG measured" in said.out
    assert "roots chain, noise independent: correlation MAE" in said.out
    assert "(paper 0.0483)" in said.out
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    figures = {f"{name}.{ending}" for name in ("marginals", "correlations") for ending in ("png", "svg")}
    assert (
        names
        == {"attrition.csv", "complete_cases.csv", "generator/card.yaml", "generator/weights.safetensors"}
        | figures
    )
    assert len(pd.read_csv(out / "complete_cases.csv")) == 600
    assert pd.read_csv(out / "attrition.csv")["left"].tolist() == [600] * 17
    world = Nhanes(size=SampleSize(rows=50, contexts=2), generator=out / "generator")
    assert world.generator.card["participants"] == 600
    assert "unlike" in world.generator.card["modules"]
    assert len(world.observations()) == 50


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
