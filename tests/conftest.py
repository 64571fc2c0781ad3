"""The lanes of whole folders, and a small run folder with numbers that can be checked by hand."""

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import settings

# How long an input takes says nothing of the code on a machine that does other work beside it.
settings.register_profile("project", deadline=None, max_examples=30)
settings.load_profile("project")

# Every test below the folder has the marker; elsewhere a test or a file says for itself that it is slow.
LANES = {
    "fuzz": "fuzz",
    "gpu": "gpu",
    "papers": "slow",
    "reproduction": "slow",
    "scripts": "slow",
    "slurm": "slurm",
}
# A file whose tests are all of another lane.
WHOLE = re.compile(r"^pytestmark = pytest\.mark\.(\w+)$", re.MULTILINE)

IMPROVEMENTS = (0.02, 0.10, 0.04, 0.06, 0.03)
TRUTH = (
    ("SOFA", "learnt", 0),
    ("SOFA", "observed trajectory", 1),
    ("SOFA", "fresh noise", 3),
    ("GCS", "learnt", 0),
    ("GCS", "fresh noise", 1),
)
OBSERVED = (-50.0, -60.0, -40.0, -80.0, -20.0)


def pytest_addoption(parser):
    parser.addoption(
        "--device",
        choices=("second", "cuda"),
        default=None,
        help="where contracts move fitted models to: a stand-in in memory, or a GPU; the tests of devices "
        "take the stand-in by default, the other contracts move nothing",
    )


@pytest.fixture
def place(request):
    """Where models are moved to, by ``--device``."""
    import torch

    from tests.toys.place import Place

    kind = request.config.getoption("--device") or "second"
    if kind == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    return Place(kind)


def pytest_terminal_summary(terminalreporter):
    """What each golden run took; here, since processes of xdist report to a session without tests/golden."""
    reports = [each for name in ("passed", "failed") for each in terminalreporter.getreports(name)]
    spent = {
        each.nodeid.rpartition("::")[2]: dict(each.user_properties)["golden_seconds"]
        for each in reports
        if "golden_seconds" in dict(each.user_properties)
    }
    if spent:
        terminalreporter.section(f"golden runs: {len(spent)}, {sum(spent.values()):.0f} CPU seconds")
        for name, seconds in sorted(spent.items(), key=lambda each: -each[1]):
            terminalreporter.write_line(f"{seconds:7.1f} {name}")


def pytest_ignore_collect(collection_path, config):
    """What is of another lane as a whole is not even imported, which takes longer than many tests."""
    here = collection_path.parent == Path(__file__).parent
    marker = LANES.get(collection_path.name) if here else None
    if collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        found = WHOLE.search(collection_path.read_text(encoding="utf-8"))
        marker = found and found[1]
    return True if marker and f"not {marker}" in config.option.markexpr else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            folder = item.path.relative_to(here).parts[0]
            if folder in LANES and item.get_closest_marker("bench") is None:
                item.add_marker(LANES[folder])


def decision(index: int, search: str = "branch_and_bound", changes: int = 3, proven: bool = True) -> dict:
    observed, improvement = OBSERVED[index], IMPROVEMENTS[index]
    trajectory = [observed / 4] * 4
    return {
        "index": index,
        "identity": f"stay-{index}",
        "kind": "look_back",
        "status": "may",
        "alteration": {"action[1]": 12},
        "value": observed * (1 - improvement),
        "estimate": {"point": observed * (1 - improvement), "of": "return"},
        "baseline": {"point": observed, "of": "return"},
        "findings": [],
        "reason": None,
        "trajectory": {
            "horizon": 4,
            "changes": changes,
            "actions": [0, 12, 0],
            "observed_actions": [0, 7, 0],
            "value": observed * (1 - improvement),
            "observed": observed,
            "rewards": [value * (1 - improvement) for value in trajectory],
            "observed_rewards": trajectory,
            "doses": [[0.0, 0.0], [0.113, 80.0], [0.0, 0.0]],
            "observed_doses": [[0.0, 0.0], [0.04, 279.0], [0.0, 0.0]],
            "improvement": improvement,
        },
        "trace": {
            "search": search,
            "expanded": 10 * (index + 1),
            "generated": 100,
            "network_evaluations": 1000,
            "effective_branching_factor": 1.0 + index / 10,
            "gap": 0.0 if proven else 1.5,
            "proven": proven,
        },
        "score": {"true_improvement": improvement / 2, "regret": 0.5 * index},
    }


def write(folder: Path, decisions: list[dict], metrics: list[tuple], config: dict) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "decisions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in decisions))
    (folder / "metrics.csv").write_text(
        "step,name,value\n" + "".join(f"{step},{name},{value}\n" for step, name, value in metrics)
    )
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    (folder / "run.json").write_text(json.dumps({"seed": 0}))
    return folder


def sequences(folder: Path) -> Path:
    metrics = [
        (epoch, f"mechanism/{name}", 3.0 - epoch + shift)
        for epoch in range(4)
        for name, shift in (("train_loss", 0.0), ("held_out_loss", 0.25))
    ]
    metrics += [(index, "decision/seconds", 0.1 * (index + 1)) for index in range(5)]
    config = {
        "surrogate": {"doses": ["max_dose_vaso", "input_4hourly"]},
        "objective": {
            "reward": {
                "_target_": "rehearsal_torch.objectives.step_reward.LinearReward",
                "weights": {"SOFA": -1},
            }
        },
    }
    write(folder, [decision(index, proven=index != 4) for index in range(5)], metrics, config)
    lines = [
        f"stay-{index},recommended,rmse,{feature},{estimator},{index + 1 + more}"
        for index in range(5)
        for feature, estimator, more in TRUTH
    ]
    lines += [f"stay-{index},recommended,regret,SOFA,true,{index}" for index in range(5)]
    (folder / "truth.csv").write_text(
        "\n".join(["episode,sequence,quantity,feature,estimator,value", *lines]) + "\n"
    )
    return folder


@pytest.fixture
def sepsis_run(tmp_path):
    return sequences(tmp_path / "run")


MACHINE_WORDS = {
    "unit": "machine",
    "units": "machines",
    "step": "week",
    "units_of": {"wear": "%"},
    "levels": {"service": ["none", "minor", "major"], "load": ["full", "reduced"]},
}
MACHINE_REWARD = {
    "components": {"worn": {"wear": {"> 50": 1}}},
    "costs": {"service": [0, 1, 4]},
    "name": "risk and cost",
}


def machines(folder: Path, **edited) -> Path:
    """A run on episodes that are not of patients, with the configuration of one on patients, whose names the
    words of its data set stand in for; `edited` replaces parts of ``run.json``.
    """
    sequences(folder)
    lines = [decision(index) for index in range(2)]
    for line in lines:
        line["identity"] = line["identity"].removeprefix("stay-")
        line["hidden_cause"] = {
            "tipping": 0.25,
            "covariate": "wear",
            "doses": 0.1,
            "state": "wear",
            "explained": 0.5,
        }
        line["trajectory"] |= {
            "doses": [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
            "observed_doses": [[0.0, 0.0], [2.0, 1.0], [0.0, 0.0]],
        }
    (folder / "decisions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "truth.csv").unlink()
    words = {"words": MACHINE_WORDS, "reward": MACHINE_REWARD, "actions": ["service", "load"]}
    (folder / "run.json").write_text(json.dumps({"seed": 0, "kind": "look_back"} | words | edited))
    return folder


@pytest.fixture
def machine_run(tmp_path):
    return machines(tmp_path / "machines")


@pytest.fixture(scope="session")
def reported(tmp_path_factory):
    """A sequence run that has been reported once, and what was printed; to be read only."""
    from rehearsal_torch.reporting.run_report import report

    folder = sequences(tmp_path_factory.mktemp("reported") / "run")
    return folder, report(folder, tables=True)


@pytest.fixture
def plain_run(tmp_path):
    decisions = [
        {
            "index": index,
            "identity": str(index),
            "status": "may" if index else "leave",
            "alteration": {"price": 1.0} if index else None,
            "value": float(index),
            "reason": None if index else {"kind": "invalid", "text": ""},
            "score": {"success": index / 4},
        }
        for index in range(5)
    ]
    return write(
        tmp_path / "plain",
        decisions,
        [(0, "decision/seconds", 0.5)],
        {"objective": {"_target_": "somewhere.else"}},
    )
