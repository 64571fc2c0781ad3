"""Asking for experiments and telling their results, from Python."""

import pytest

import rehearsal_torch as rt
from tests.golden import inputs

pytestmark = pytest.mark.slow
WIDTHS = {"a0": 1.0, "a1": 1.0}


def came_out(action):
    """What an experiment measures; no noise, so that the settings alone decide."""
    node = action["a0"] + action["a1"]
    return {"X": node, "Y": -((node - 1.2) ** 2)}


def begun(task, rows=10, **settings):
    """An optimiser that knows some experiments."""
    optimiser = rt.CausalOptimiser(task, seed=0, **settings)
    for _, row in inputs.experiments(rows).iterrows():
        optimiser.tell(None, {"X": row["X"], "Y": row["Y"]}, ran={"a0": row["a0"], "a1": row["a1"]})
    return optimiser


def advised(optimiser, **fixed):
    """What is recommended, how sure it is, and the best tried experiment beside it."""
    found = optimiser.recommend(**fixed)
    numbers = {name: getattr(found, name) for name in ("predicted", "std", "runner_up_predicted", "chance")}
    return {"recommendation": found.action, **numbers}


def test_ask_and_tell(golden):
    """From the start design on, one by one."""
    optimiser, asked = rt.CausalOptimiser(inputs.TRIALS, seed=0), []
    for _ in range(8):
        (action,) = optimiser.ask()
        asked.append(dict(action))
        optimiser.tell(action, came_out(action))
    # The best actions form a ridge, a0 + a1 = 1.2: where on it depends on the last digits.
    golden({"widths": WIDTHS, "asked": asked, "predicted": optimiser.recommend().predicted})


def test_pending_trials(golden):
    """Three side by side, one more while they are pending, and again after one has failed."""
    optimiser = begun(inputs.TRIALS, file="trials.json")
    asked = optimiser.ask(3)
    optimiser.fail(asked[0], "the pump stopped")
    again = rt.CausalOptimiser.load("trials.json")
    asked = [*asked, *again.ask()]
    golden({"widths": WIDTHS, "asked": [dict(each) for each in asked], "advised": advised(again)})


def test_levels(golden):
    """One action has levels; another is held at a value."""
    task = {**inputs.TRIALS, "actions": {"a0": [0, 1], "a1": {"values": [0, 0.25, 0.5, 1]}}}
    optimiser = begun(task)
    asked = [*optimiser.ask(2), *optimiser.ask(fixed={"a1": 0.5})]
    held = advised(optimiser, fixed={"a0": 0.5})
    golden(
        {
            "widths": WIDTHS,
            "asked": [dict(each) for each in asked],
            "advised": advised(optimiser),
            "held": held,
        }
    )


def test_limits_and_targets(golden):
    task = {
        **inputs.TRIALS,
        "reward": {"targets": {"X": 1.5}},
        "limits": {"normals": [[1, 1]], "offsets": [1.6]},
    }
    optimiser = begun(task)
    golden({"widths": WIDTHS, "asked": [dict(optimiser.ask()[0])], "advised": advised(optimiser)})


@pytest.mark.parametrize("method", ["qlogei", "qlognei"])
def test_botorch(golden, method):
    optimiser = begun(inputs.TRIALS, method=method)
    golden({"widths": WIDTHS, "asked": [dict(optimiser.ask()[0])], "advised": advised(optimiser)})


def test_problem_file_of_trials(golden):
    inputs.written(experiments_csv=inputs.experiments(10), problem_yaml=inputs.TRIALS_FILE)
    optimiser = rt.CausalOptimiser("problem.yaml")
    golden({"widths": WIDTHS, "asked": [dict(optimiser.ask()[0])], "advised": advised(optimiser)})
