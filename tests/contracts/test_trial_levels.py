"""One contract over every method of trials: actions with levels, limits between them, and fixed actions."""

import pytest

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.methods.presets import methods

pytestmark = pytest.mark.slow
TASK = {
    "graph": {"parents": {"X": ["a", "drug"], "Y": ["X", "b"]}},
    "actions": {"a": [0, 1], "b": {"values": [0, 0.5, 1.25, 2]}, "drug": {"values": [0, 1, 3]}},
    "reward": "Y",
}
# a + drug <= 1.5 leaves drug = 0, or drug = 1 with a <= .5.
LIMITS = {"normals": [[1.0, 0.0, 1.0]], "offsets": [1.5]}
METHODS = "excbo", "excbo_paper", "mcbo", "eifn", "qlognei", "qlogei", "function_network"
# Some ten seconds each, under either task; with limits, those that ascend by BoTorch's functions, and more.
LONG = ("mcbo", "qlogei", "function_network")
LONG_WITH_LIMITS = ("qlognei", "eifn", "eicf", "excbo_paper")
# Without the graph.
BASELINES = "eicf", "ucb", "random_actions", "sobol_actions"
ROUNDS = 15
# Y at b = 1.25 and x = .6: a = .775 without the drug, or a = .548 with drug = 1.
OPTIMUM = 1 - 0.05**2


def system(action):
    x = action["a"] ** 2 + 0.3 * action["drug"] * (2 - action["drug"])
    return {"X": x, "Y": 1 - (x - 0.6) ** 2 - (action["b"] - 1.2) ** 2}


def told(method, task=TASK, rounds=ROUNDS):
    made = CausalOptimiser(task, seed=0, method=method)
    for _ in range(rounds):
        (action,) = made.ask()
        made.tell(action, system(action))
    return made


def allowed(task, action):
    limits = task.get("limits")
    kept = limits is None or action["a"] + action["drug"] <= 1.5 + 1e-6
    return kept and 0 <= action["a"] <= 1 and action["b"] in (0, 0.5, 1.25, 2) and action["drug"] in (0, 1, 3)


def test_every_method_of_trials_stands_under_this_contract():
    assert sorted([*METHODS, *BASELINES]) == sorted(methods("optimise"))


def asked_of_all():
    for name, task, long in (
        ("levels", TASK, LONG),
        ("limits", {**TASK, "limits": LIMITS}, LONG + LONG_WITH_LIMITS),
    ):
        for method in (*METHODS, *BASELINES):
            marks = pytest.mark.bench if method in long else ()
            yield pytest.param(method, task, id=f"{method}-{name}", marks=marks)


@pytest.mark.bench
@pytest.mark.parametrize(("method", "task"), list(asked_of_all()))
def test_fifteen_rounds_end_near_the_optimum(method, task):
    made = told(method, task)
    asked = made.ask(2, fixed={"drug": 1})
    assert [action["drug"] for action in asked] == [1, 1]
    for trial in made.trials:
        assert allowed(task, trial.settings)
    best = made.recommend().action
    assert allowed(task, best)
    assert OPTIMUM - system(best)["Y"] <= (0.01 if method in METHODS else 0.2)
