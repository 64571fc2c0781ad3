"""From the CDC's modules to a generator, and the modules that are fetched."""

import numpy as np
import pandas as pd

from rehearsal_torch.problems.nhanes.nhanes_data import Nhanes
from rehearsal_torch.problems.world_size import SampleSize
from reproduction.nhanes.__main__ import main
from reproduction.nhanes.modules import CYCLES, columns_of, fetch, merged, module_names
from tests.reproduction.nhanes.test_modules import small_modules
from tests.toys.transport import write


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


def test_from_modules_to_a_world(capsys, tmp_path):
    (tmp_path / "data").mkdir()
    out = tmp_path / "out"
    typed = [f"source={crowd(tmp_path / 'data')}", f"out={out}"]
    assert main(typed) == 2
    assert "40 modules differ" in capsys.readouterr().err
    assert main([*typed, "checksums=false"]) == 0
    said = capsys.readouterr()
    assert "HbA1c and FPG measured" in said.out
    assert "roots chain, noise independent: correlation MAE" in said.out
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


def test_modules_that_are_missing_are_fetched(tmp_path, capsys):
    (tmp_path / "flat").mkdir()
    small_modules(tmp_path / "flat")
    for name in module_names():
        file = tmp_path / "site" / CYCLES[name[-1]][:4] / "DataFiles" / f"{name}.xpt"
        file.parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "flat" / f"{name}.XPT").rename(file)
    site = (tmp_path / "site").as_uri()
    assert fetch(tmp_path / "got", site) == module_names()
    assert len(merged(tmp_path / "got").cases) == 16
    (tmp_path / "got" / "HDL_G.XPT").unlink()
    assert fetch(tmp_path / "got", site) == ["HDL_G"]
    typed = [f"source={tmp_path / 'none'}", f"out={tmp_path / 'out'}", "download=true"]
    assert main([*typed, f"site={(tmp_path / 'no').as_uri()}"]) == 2
    assert "cannot be reached" in capsys.readouterr().err
