"""Shards of a sweep as one run."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml

from rehearsal_torch.cli.verbs.collect import merge, shards, with_curves, without_curves
from rehearsal_torch.console_command import run
from rehearsal_torch.run_folder import SECONDS, RunFolder
from rehearsal_torch.user_error import UserError
from tests.scripts.typing_in import called


def shard(sweep, job, number, indices, shards=2, state="ok", **config):
    folder = RunFolder(sweep / str(job))
    folder.write_yaml(
        "config.yaml", {"name": "toy", "shard": number, "shards": shards, "out": str(job), **config}
    )
    folder.write_json(
        "run.json",
        {"seconds": 1.5, "overrides": [f"shard={number}", f"shards={shards}", "seed=0"], "script": "decide"},
    )
    folder.write(
        "decisions.jsonl",
        "".join(f'{{"index": {index}, "status": "leave", "value":  {index}.50}}\n' for index in indices),
    )
    folder.write_metrics([(index, SECONDS, 0.1) for index in indices])
    folder.close(state, "", [], 1.5)


def test_lines_are_merged_as_they_are_in_the_order_of_their_indices(tmp_path):
    shard(tmp_path, 0, 1, [1, 3])
    shard(tmp_path, 1, 0, [0, 2, 4])
    (merged,) = merge(tmp_path)
    assert merged.path == tmp_path
    assert (tmp_path / "decisions.jsonl").read_text() == "".join(
        f'{{"index": {index}, "status": "leave", "value":  {index}.50}}\n' for index in range(5)
    )
    assert [step for step, _, _ in merged.metrics()] == list(range(5))
    assert merged.read_json("run.json") == {
        "seconds": 3.0,
        "overrides": ["seed=0"],
        "script": "decide",
        "merged_from": 2,
    }
    content = {"name": "toy", "shard": 0, "shards": 1, "out": str(tmp_path)}
    assert list(merged.read_yaml("config.yaml").items()) == list(content.items()), "in the order of a job"


def test_several_cohorts_are_kept_apart(tmp_path):
    for job, (seed, number) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        shard(tmp_path, job, number, [number], seed=seed)
    assert [merged.path.name for merged in merge(tmp_path)] == ["cohort-0", "cohort-1"]
    assert [merged.read_yaml("config.yaml")["seed"] for merged in merge(tmp_path)] == [0, 1]


def test_a_damaged_shard_is_named_and_what_was_merged_stays(tmp_path, capsys):
    shard(tmp_path, 0, 0, [0, 2])
    shard(tmp_path, 1, 1, [1, 3])
    merge(tmp_path)
    merged = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with (tmp_path / "1/decisions.jsonl").open("a") as file:
        file.write("hello\n")
    assert run("collect", [str(tmp_path)]) == 2
    assert "1/decisions.jsonl, line 3: " in capsys.readouterr().err
    (tmp_path / "0/config.yaml").write_text("shards: many\n")
    assert run("collect", [str(tmp_path)]) == 2
    assert "shards: expected a whole number; got many" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == merged


def test_what_this_command_did_not_write_is_not_written_over(tmp_path):
    shard(tmp_path, 0, 0, [0, 2])
    shard(tmp_path, 1, 1, [1])
    (tmp_path / "run.json").write_text('{"seconds": 1}')
    (tmp_path / "decisions.jsonl").write_text("mine\n")
    with pytest.raises(
        UserError, match=r"holds run.json and decisions.jsonl that this command did not write"
    ):
        shards(tmp_path)
    assert (tmp_path / "decisions.jsonl").read_text() == "mine\n"


def test_merging_again_changes_nothing_and_a_new_shard_line_is_taken_up(tmp_path):
    shard(tmp_path, 0, 0, [0, 2])
    shard(tmp_path, 1, 1, [1])
    (first,) = merge(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    (again,) = merge(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    shard(tmp_path, 1, 1, [1, 3])
    assert [each["index"] for each in merge(tmp_path)[0].decisions()] == [0, 1, 2, 3]
    assert first.path == again.path == tmp_path


def test_the_comparisons_with_the_truth_follow_the_order_of_the_situations(tmp_path):
    for job, (number, indices) in enumerate([(0, [0, 2]), (1, [1, 3])]):
        shard(tmp_path, job, number, indices)
        folder = RunFolder(tmp_path / str(job))
        named = [
            json.loads(text) | {"identity": f"stay-{9 - json.loads(text)['index']}"}
            for text, _ in folder.decision_lines()
        ]
        folder.write("decisions.jsonl", "".join(f"{json.dumps(each)}\n" for each in named))
        rows = [f"stay-{9 - index},{quantity},{index}" for index in indices for quantity in ("a", "b")]
        folder.write("truth.csv", "\n".join(["episode,quantity,value", *rows, ""]))
    (merged,) = merge(tmp_path)
    assert (merged.path / "truth.csv").read_text().splitlines() == [
        "episode,quantity,value",
        *(f"stay-{9 - index},{quantity},{index}" for index in range(4) for quantity in ("a", "b")),
    ]


def test_jobs_that_are_no_shards_are_left_alone(tmp_path):
    shard(tmp_path, 0, 0, [0, 2])
    shard(tmp_path, 1, 1, [1])
    shard(tmp_path, 2, 0, [0, 1, 2], shards=1, name="whole")
    (tmp_path / "figures").mkdir()
    assert [each.path for each in merge(tmp_path)] == [tmp_path]


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
    # Of a merged run each part has the record of its own configuration.
    kept = {name for name in found if not name[0].isdigit() and "lock" not in name and ".hydra" not in name}
    return kept - {"multirun.yaml", "sweep.json"}


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
