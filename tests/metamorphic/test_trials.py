"""Experiments by every method: the same trials in another form give the same next one and recommendation.

Exactly the same: units by powers of two, other names, the order of columns. Units by powers of ten from 1e-12
to 1e12, and the order of trials, which other sums are taken in: within 1e-4 of the box and of the spread.
"""

from functools import cache

import numpy as np
import pytest

import rehearsal_torch as rt
from tests.golden import inputs

NAMES = ("a0", "a1", "X", "Y")
QUICK = ["qlognei", "ucb"]
SLOW = ["eicf", "eifn", "excbo", "excbo_paper", "mcbo", "qlogei"]
METHODS = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
of_method = pytest.mark.parametrize("method", METHODS)
EXACT = {
    "units": {"units": {"a0": 2.0**20, "a1": 2.0**-9, "X": 2.0**-20, "Y": 2.0**30}},
    "small": {"units": {"Y": 2.0**-40}},
    "names": {"names": {"a0": "z", "a1": "b", "X": "q", "Y": "aa"}},
    "columns": {"columns": NAMES[::-1]},
}
NEAR = {
    "small": {"units": dict.fromkeys(NAMES, 1e-12)},
    "large": {"units": dict.fromkeys(NAMES, 1e12)},
    "mixed": {"units": {"a0": 1e12, "a1": 1e-12, "X": 1e9, "Y": 1e-9}},
    "trials": {"order": np.random.default_rng(0).permutation(12)},
}


@cache
def plain(method):
    return answers(method)


def answers(method, units=None, names=None, columns=NAMES, order=slice(None)):
    """The next experiment and the recommendation as shares of the box, and the claims as multiples of the
    reward's unit."""
    unit, names = (
        {name: (units or {}).get(name, 1.0) for name in NAMES},
        names or {name: name for name in NAMES},
    )
    task = {
        "graph": {"parents": {names["X"]: [names["a0"], names["a1"]], names["Y"]: [names["X"]]}},
        "actions": {names[name]: [0, unit[name]] for name in ("a0", "a1")},
        "reward": names["Y"],
    }
    optimiser = rt.CausalOptimiser(task, seed=0, method=method)
    for row in inputs.experiments(12)[list(columns)].iloc[order].to_dict("records"):
        told = {names[name]: value * unit[name] for name, value in row.items()}
        ran = {names[name]: told.pop(names[name]) for name in ("a0", "a1")}
        optimiser.tell(None, told, ran=ran)
    (action,) = optimiser.ask()
    advice = optimiser.recommend()
    settings = [each[names[name]] / unit[name] for each in (action, advice.action) for name in ("a0", "a1")]
    return [*settings, advice.predicted / unit["Y"], advice.std / unit["Y"]]


@of_method
@pytest.mark.parametrize("change", EXACT)
def test_the_answer_is_exactly_the_same(method, change):
    assert answers(method, **EXACT[change]) == plain(method)


@of_method
@pytest.mark.parametrize("change", NEAR)
def test_the_answer_is_the_same_to_a_ten_thousandth(method, change):
    assert answers(method, **NEAR[change]) == pytest.approx(plain(method), abs=1e-4)


@of_method
def test_on_a_log_scale_the_answer_is_that_of_the_logarithm(method):
    frame, answers = inputs.experiments(12), list[list[float]]()
    for scale in ("linear", "log"):
        task = {"graph": {"parents": {"X": ["a0", "a1"], "Y": ["X"]}}, "reward": "Y"}
        ends = {"range": [0, 1]} if scale == "linear" else {"range": [1, 100], "scale": "log"}
        optimiser = rt.CausalOptimiser({**task, "actions": {"a0": ends, "a1": [0, 1]}}, method=method, seed=0)
        optimiser.read(frame if scale == "linear" else frame.assign(a0=100 ** frame["a0"]))
        asked, kept = optimiser.ask()[0], optimiser.recommend()
        shares = [
            np.log(action["a0"]) / np.log(100) if scale == "log" else action["a0"]
            for action in (asked, kept[0])
        ]
        answers.append([*shares, asked["a1"], kept[0]["a1"], kept.predicted, kept.std])
    assert answers[0] == pytest.approx(answers[1], rel=1e-4, abs=1e-4)
