"""Curves of merged shards: the files of one run, or a sentence with what is missing."""

import shutil

import numpy as np
import pandas as pd
import pytest
import yaml

from rehearsal_torch.cli.verbs.merged_curves import with_curves, without_curves
from rehearsal_torch.run_folder import RunFolder
from tests.scripts.typing_in import called

TASK = {
    "graph": {"parents": {"a": ["x"], "y": ["a", "x"]}},
    "context": ["x"],
    "box": {"a": [-1, 1]},
    "region": {"y": [0.5, None]},
}
TYPED = (
    *("+experiment=own_table", "dataset=table", "path=rows.csv", "dataset.task=task.yaml"),
    *("dataset.contexts=cases.csv", "decision=cme", "workers=1"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table, a model of it, and its decisions by one run, `one`, and by three shards, `parts`."""
    folder = tmp_path_factory.mktemp("place")
    draws = np.random.default_rng(0)
    x, a = draws.standard_normal(40), draws.uniform(-1, 1, 40)
    rows = pd.DataFrame({"x": x, "a": a, "y": x + a + 0.3 * draws.standard_normal(40)})
    rows.to_csv(folder / "rows.csv", index=False)
    pd.DataFrame({"x": np.linspace(-1, 1, 70)}).to_csv(folder / "cases.csv", index=False)
    (folder / "task.yaml").write_text(yaml.safe_dump(TASK))
    for script, *more in (
        ("train", "out=model", "limit=1"),
        ("decide", "out=one", "checkpoint=model"),
        ("decide", "-m", "out=parts", "checkpoint=model", "shards=3", "shard=range(3)"),
    ):
        answer = called(folder, script, *more[:1], *TYPED, *more[1:])
        assert answer.code == 0, answer.err
    return folder


def files(run):
    """The files of a run without those of its shards and of the sweep."""
    found = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
    return {name for name in found if not name[0].isdigit() and "lock" not in name} - {
        "multirun.yaml",
        "sweep.json",
    }


@pytest.mark.bench
def test_merged_shards_have_the_files_of_one_run_and_its_curves(place):
    one, parts = place / "one", place / "parts"
    assert {"claims.csv", "figures/claims.svg"} <= files(one)
    assert files(parts) == files(one)
    for name in ("decisions.jsonl", "claims.csv", "data.yaml", "figures/claims.svg", "figures/claims.png"):
        assert (parts / name).read_bytes() == (one / name).read_bytes(), name
    assert not list(parts.glob("[0-9]/claims.csv"))


@pytest.mark.slow
def test_collect_makes_them_anew_and_says_what_is_missing(place, tmp_path):
    shutil.copytree(place, tmp_path / "there")
    run = tmp_path / "there/parts"
    before = (run / "claims.csv").read_bytes()
    (run / "claims.csv").unlink()
    answer = called(run.parent, "collect", "parts")
    assert (answer.code, answer.err) == (0, "")
    assert (run / "claims.csv").read_bytes() == before
    for missing, told in (("rows.csv", "rows.csv"), ("model", "checkpoint=model")):
        (run.parent / missing).rename(run.parent / "away")
        # Other decisions than those of the curves.
        (run / "decisions.jsonl").unlink()
        answer = called(run.parent, "collect", "parts")
        assert answer.code == 0
        assert answer.err.startswith("Merged without claims.csv and its figure, for which the checkpoint and")
        assert told in answer.err
        assert not (run / "claims.csv").exists(), "no curves of other decisions are left"
        assert not list((run / "figures").glob("claims*"))
        assert (run / "report.html").is_file()
        (run.parent / "away").rename(run.parent / missing)
    rows = pd.read_csv(run.parent / "rows.csv")
    rows.assign(y=-rows["y"]).to_csv(run.parent / "rows.csv", index=False)
    answer = called(run.parent, "collect", "parts")
    assert "the run was started with other data" in answer.err
    assert not (run / "claims.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("trust", "made"), [((), False), (("trusted=[pathlib]",), True)])
def test_a_folder_builds_no_class_of_others_unless_it_is_trusted(place, tmp_path, trust, made):
    shutil.copytree(place, tmp_path / "there")
    run = tmp_path / "there/parts"
    (run / "claims.csv").unlink()
    for path in run.glob("[0-9]/config.yaml"):
        content = yaml.safe_load(path.read_text())
        # Never built by this run, which has no trainer; everything is looked through first.
        content["trainer"] = {"_target_": "pathlib.Path", "folder": None}
        path.write_text(yaml.safe_dump(content))
    answer = called(run.parent, "collect", "parts", *trust)
    assert answer.code == 0
    assert (run / "claims.csv").exists() is made, answer.err
    assert ("asks to build 'pathlib.Path', which is not a trainer" in answer.err) is not made


def test_episodes_have_no_curves_and_curves_that_are_there_stay(tmp_path):
    run = RunFolder(tmp_path)
    run.write_json("run.json", {"kind": "look_back"})
    assert with_curves(run, ())
    run.write_json("run.json", {"kind": "optimise"})
    run.write("surrogate.csv", "x\n")
    assert with_curves(run, ())
    run.write("figures/surrogate.svg", "")
    without_curves(run)
    assert [path.name for path in tmp_path.rglob("*.*")] == ["run.json"]


def test_a_run_without_a_checkpoint_is_told(tmp_path, capsys):
    run = RunFolder(tmp_path)
    run.write_json("run.json", {"kind": "rehearse"})
    run.write_yaml("config.yaml", {"checkpoint": None})
    assert not with_curves(run, ())
    assert "config.yaml: names no checkpoint." in capsys.readouterr().err
