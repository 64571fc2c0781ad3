"""Inputs of the kinds that people meet: what check and decide say of each, and what Python answers."""

import json

import numpy as np
import pandas as pd
import pytest

import rehearsal_torch as rt
from rehearsal_torch.console_command import main
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable
from tests.golden.snapshots.met_inputs import MET, orchard, presses
from tests.golden.snapshots.page_text import without_digits
from tests.golden.snapshots.plain_calls import places

pytestmark = pytest.mark.slow
SMALL = (
    "search.screened=16",
    "search.starts=5",
    "search.steps=8",
    "objective.draws=8",
    "workers=1",
    "out=run",
)
DECIDED = {
    "missing written as -99": ("decision=care", "workers=1", "out=run"),
    "mixture of three": SMALL,
    "reward without variation": SMALL,
    "rows three times": ("decision=care", "workers=1", "out=run"),
    "two settings that are equal": SMALL,
}
TASK = {
    "graph": ["soil -> {water loss}", "water -> loss"],
    "context": ["soil"],
    "box": {"water": [1, 19]},
    "region": {"loss": [None, 35]},
}


def said(code, captured, here):
    """What a command printed, without what was computed, or the place that a refusal names."""
    if code:
        return f"exit code {code}: {places(captured.err.strip(), here)}"
    return without_digits(captured.out.strip().replace(f"{here}/", ""))


def test_check_says_what_it_said(tmp_path, monkeypatch, capsys, file_regression):
    lines = []
    for name, make in MET.items():
        folder = tmp_path / name.replace(" ", "_")
        folder.mkdir()
        monkeypatch.chdir(folder)
        make(folder)
        lines.append(f"[{name}]\n{said(main(['check', 'problem.yaml']), capsys.readouterr(), folder)}\n")
    folder = tmp_path / "rows=220"
    folder.mkdir()
    MET["front door"](folder)
    monkeypatch.chdir(tmp_path)
    code = main(["check", "rows=220/problem.yaml"])
    lines.append(f"[a folder with = in its name]\n{said(code, capsys.readouterr(), tmp_path)}\n")
    file_regression.check("\n".join(lines), encoding="utf-8")


def answers(folder):
    """The statuses of a run, what each recommends to one digit, and its claim to two."""
    for line in (folder / "decisions.jsonl").read_text(encoding="utf-8").splitlines():
        made = json.loads(line)
        setting = {name: float(f"{each:.1g}") for name, each in (made["alteration"] or {}).items()}
        yield f"{made['kind']}: {made['status']} {setting} warnings {len(made['findings'])}"


@pytest.mark.parametrize("name", DECIDED)
def test_decide_says_what_it_said(name, tmp_path, monkeypatch, capsys, file_regression):
    monkeypatch.chdir(tmp_path)
    MET[name](tmp_path)
    code = main(["decide", "problem.yaml", *DECIDED[name]])
    captured = capsys.readouterr()
    lines = [f"exit code {code}"]
    if code:
        lines.append(places(captured.err.strip(), tmp_path))
    if (tmp_path / "run" / "decisions.jsonl").exists():
        lines += answers(tmp_path / "run")
    if (tmp_path / "run" / "start_design.csv").exists():
        design = pd.read_csv(tmp_path / "run" / "start_design.csv").round(3)
        lines.append(f"{len(design)} first experiments, {len(design.drop_duplicates())} different")
    file_regression.check("\n".join(lines) + "\n", basename=name.replace(" ", "_"))


def claim(decision):
    """The status, and the claim to two digits."""
    point = None if decision.estimate is None else f"{decision.estimate.point:.2g}"
    return f"{decision.status}, {point}"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_python_answers_what_it_answered(tmp_path, file_regression):
    lines = []
    for unit in (1, 1e-5, 1e-11):
        rows = orchard(loss=lambda table, unit=unit: table.loss * unit)
        task = {**TASK, "region": {"loss": [None, 35 * unit]}}
        for method in ("outcome_regression", "care"):
            (found,) = rt.rehearse(rows, task, [{"soil": 31}], method=method)
            lines.append(f"small units, {unit:g}, {method}: {claim(found)}")
    random = np.random.default_rng(41)
    rows = orchard(loss=lambda table: (random.random(len(table)) < 0.02 + 0.004 * table.water).astype(int))
    for method in ("outcome_regression", "care"):
        task = {**TASK, "region": {"loss": [0.5, None]}}
        (found,) = rt.rehearse(rows, task, [{"soil": 31}], method=method)
        lines.append(f"rare yes, {method}: {claim(found)}")
    lines += [f"last action, {rule}: {answer}" for rule, answer in last_actions(tmp_path)]
    kept = {**TASK, "context": ["soil", "kind"], "codings": {"kind": "categorical"}}
    kept["graph"] = ["{soil kind} -> {water loss}", "water -> loss"]
    rows = orchard(kind=lambda table: np.array(["ash", "oak", "elm"])[table.index % 3])
    rt.learn(rows, kept, method="care").save(tmp_path / "kept")
    for task in (None, kept):
        try:
            answer = type(rt.load(tmp_path / "kept", task=task)).__name__
        except ValueError as error:
            answer = f"refused {places(str(error), tmp_path)}"
        lines.append(f"loaded {'with' if task else 'without'} its task: {answer}")
    lines.append(f"two settings that are equal, claimed chance: {tied():.1f} on average")
    file_regression.check("\n".join(lines) + "\n")


def last_actions(here):
    """What becomes of units without an action in their last row, by the rule for missing cells."""
    table = presses(pd.RangeIndex(9))
    table["lever"] = table.lever.astype(object).where(table.month != 8, None)
    task = {
        "unit": "press",
        "time": "month",
        "varying": ["load"],
        "actions": {"lever": {"levels": ["low", "mid", "top"]}},
        "reward": {"weights": {"load": 0.2}},
    }
    for rule in ("refuse", "drop", {"carry": 1}):
        try:
            yield rule, EpisodeTable(table, {**task, "missing": rule}, min_length=4).card()["missing"]
        except ValueError as error:
            yield rule, f"refused {places(str(error), here)}"


def tied(seeds=4):
    """The mean claimed chance that the better of two equal settings is the better one, over some seeds."""
    task = {
        "graph": {"parents": {"taste": ["ripe"]}},
        "actions": {"ripe": {"values": [2, 5]}},
        "reward": "taste",
    }
    claimed = []
    for seed in range(seeds):
        random, optimiser = np.random.default_rng(500 + seed), rt.CausalOptimiser(task, seed=seed)
        for place in range(10):
            optimiser.tell(None, {"taste": 6 + 0.3 * random.normal()}, ran={"ripe": (2, 5)[place % 2]})
        claimed.append(float(optimiser.recommend().chance))
    return float(np.mean(claimed))
