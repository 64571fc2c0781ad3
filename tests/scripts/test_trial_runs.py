"""Trials as somebody types them: told round by round, taken up again to the same trace, compared, and refused
where something is wrong."""

import csv
import json

import pytest
import yaml

from rehearsal_torch.problems.trials.benchmark_functions import Dropwave
from tests.scripts.typing_in import called, lines, typed

SMALL = (
    "+experiment=cbo",
    "limit=4",
    "tables=true",
    "search.screened=64",
    "search.starts=6",
    "search.steps=15",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with one finished run: `run`."""
    folder = tmp_path_factory.mktemp("place")
    answer = typed(folder, "decide", *SMALL, "out=run")
    assert answer.code == 0, answer.err
    (folder / "answer.txt").write_text(answer.out)
    return folder


def test_a_run_that_was_killed_goes_on_to_the_same_trace(place):
    whole, text = lines(place / "run"), (place / "run/decisions.jsonl").read_text()
    curves = (place / "run/surrogate.csv").read_text()
    (place / "run/decisions.jsonl").write_text(
        "".join(f"{json.dumps(line)}\n" for line in whole[:1]) + '{"index": '
    )
    answer = called(place, "decide", "resume=run")
    assert answer.code == 0, answer.err
    assert lines(place / "run") == whole
    assert (place / "run/surrogate.csv").read_text() == curves
    best = max(whole[0]["score"]["start"], *(line["score"]["expected"] for line in whole[:2]))
    assert f"best expected {best:.4g} of" in next(
        line for line in answer.out.splitlines() if line.startswith("round 2 of 4")
    )
    (place / "run/decisions.jsonl").write_text(text)


@pytest.mark.bench
def test_a_sweep_ends_with_problems_by_methods(tmp_path):
    answer = called(
        tmp_path,
        "decide",
        "-m",
        "+experiment=cbo",
        "limit=1",
        "dataset=dropwave,ackley",
        "decision=random_actions,ucb",
        "seed=0,1",
        "out=sweep",
    )
    assert answer.code == 0, answer.err
    assert "mean normalised regret" in answer.out
    with (tmp_path / "sweep/traces.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["problem"], row["method"], row["seed"]) for row in rows} == {
        (problem, method, seed)
        for problem in ("dropwave", "ackley")
        for method in ("random_actions", "ucb")
        for seed in "01"
    }
    assert (tmp_path / "sweep/figures/rounds.svg").is_file()


@pytest.mark.bench
def test_recovery_trains_saves_and_says_how_well_the_noise_was_recovered(tmp_path):
    quick = ("trainer.max_epochs=60", "dataset.size.initial=60")
    answer = called(tmp_path, "train", "+experiment=dropwave_recovery", *quick, "out=recovery")
    assert answer.code == 0, answer.err
    assert "correlation of recovered and true noise, held-out trials: X " in answer.out
    assert (tmp_path / "recovery/checkpoint/weights.safetensors").is_file()
    assert (tmp_path / "recovery/figures/recovered.png").is_file()
    with (tmp_path / "recovery/truth.csv").open(newline="") as file:
        found = {
            (row["node"], row["part"]): float(row["value"])
            for row in csv.DictReader(file)
            if row["quantity"] == "correlation"
        }
    assert set(found) == {(node, part) for node in "XY" for part in ("fitted", "held out")}
    assert found["X", "fitted"] > 0.7
    again = called(
        tmp_path,
        "decide",
        "+experiment=dropwave_recovery",
        *quick,
        "checkpoint=recovery/checkpoint",
        "limit=1",
        "out=from_checkpoint",
    )
    assert again.code == 0, again.err
    assert "Note" not in again.out


def written(folder, **columns):
    table = Dropwave(seed=0).observations()
    rows = dict(zip(table.names, table.values.T.tolist(), strict=True)) | columns
    kept = {name: values for name, values in rows.items() if values is not None}
    with (folder / "experiments.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(kept)
        writer.writerows(zip(*kept.values(), strict=True))
    graph = {"parents": {"X": ["a0", "a1"], "Y": ["X"]}}
    (folder / "task.yaml").write_text(
        yaml.safe_dump({"graph": graph, "actions": {"a0": [0, 1], "a1": [0, 1]}, "reward": "Y"})
    )
    return "+experiment=own_system", "path=experiments.csv", "dataset.task=task.yaml"


def test_a_system_of_ones_own_is_told_what_to_try_next(tmp_path):
    answer = called(tmp_path, "decide", *written(tmp_path), "out=own")
    assert answer.code == 0, answer.err
    assert ": Try " in answer.out
    (line,) = lines(tmp_path / "own")
    assert all(0 <= value <= 1 for value in line["alteration"].values())
    assert set(line["recommendation"]) == {"a0", "a1"}
    with (tmp_path / "own/surrogate.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["panel"] == "reward"]
    for name, kept in line["recommendation"].items():
        curve = {float(row["x"]): row for row in rows if (row["along"], row["series"]) == (name, "learnt")}
        assert float(curve[kept]["value"]) == pytest.approx(line["estimate"]["point"], rel=1e-6)
    assert {row["series"] for row in rows} <= {"learnt", "recommended", "trial", "trial elsewhere"}
    assert sum(row["series"].startswith("trial") for row in rows) == 2 * 6
    assert (tmp_path / "own/figures/surrogate.svg").is_file()
