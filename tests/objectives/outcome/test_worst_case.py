"""When an action may be recommended although rows are missing, and worlds in which it may not."""

import numpy as np
import pandas as pd
import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.data.decision import CHANCE, Estimate
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.objective import Appraisal
from rehearsal_torch.objectives.outcome.worst_case import allowed, withheld


def at(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def test_rows_nearby_or_little_to_lose_allow_an_action() -> None:
    beyond, value = at(0.1, 0.11, 0.5, 0.5, 1.0, 1.0), at(0.9, 0.9, 0.9, 0.9, 0.9, 0.9)
    before = at(0.9, 0.9, 0.42, 0.43, 0.02, 0.03)
    assert allowed(beyond, value, before).tolist() == [True, False, True, False, True, False]


def test_what_is_withheld_says_how_much_could_be_lost():
    made = [Appraisal(Estimate(0.94, CHANCE), None)] * 3
    fine, some, most = withheld(made, at(0.05, 0.3, 0.7), at(0.9, 0.9, 0.9))
    assert (fine.refused, fine.unsupported, fine.trace) == (None, None, {"beyond": 0.05})
    assert some.unsupported.text.startswith("no support: for 30 % of such cases no row is near this action")
    assert "26 % of the probability is lost" in some.unsupported.text
    assert (some.refused, most.refused) == (None, None)
    assert most.unsupported.text.startswith("no support: for 70 % of such cases no row is near this action")
    (other,) = withheld([Appraisal(None, None, refused=Finding("invalid", "why"))], at(1.0), at(0.9))
    assert other.refused.text == "why"


def dosed(kind: str, seed: int, count: int = 1000) -> tuple[pd.DataFrame, dict]:
    """Experts dose by x and u, nearly without freedom, and are right: another dose does harm."""
    stream = np.random.default_rng([seed, 11])
    x = stream.normal(size=count)
    u = 0.3 * x + stream.normal(size=count)
    rule = {"line": u, "parabola": u**2 / 1.5, "wave": 1.5 * np.sin(2 * u), "step": 2.0 * (u > 0)}[
        kind
    ] + 0.5 * x
    a = rule + 0.15 * stream.normal(size=count)
    y = -1.2 * (a - rule) ** 2 + 0.3 * stream.normal(size=count)
    parents = {"u": ["x"], "a": ["x", "u"], "y": ["x", "u", "a"]}
    task = {
        "graph": {"parents": parents},
        "context": ["x"],
        "box": {"a": [-3, 3]},
        "region": {"y": [-0.5, None]},
    }
    return pd.DataFrame({"x": x, "u": u, "a": a, "y": y}), task


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["line", "parabola", "wave", "step"])
@pytest.mark.parametrize("method", ["cme_stack", "outcome_regression"])
def test_doses_that_nobody_like_the_case_has_had_are_not_recommended(kind: str, method: str) -> None:
    frame, task = dosed(kind, 1)
    cases = [{"x": float(value)} for value in np.linspace(-1.5, 1.5, 9)]
    decisions = rt.rehearse(frame, task, cases, method=method, seed=1)
    assert [each.alteration for each in decisions] == [None] * 9
    beyond = [each.trace["beyond"] for each in decisions if each.undecided]
    assert min(beyond, default=1) > 0.1


@pytest.mark.slow
def test_what_somebody_else_proposes_is_refused_with_the_same_words() -> None:
    frame, task = dosed("line", 1)
    found = rt.learn(frame, task, seed=1).what_if({"x": 0.0}, {"a": 0.5})
    assert found.refused.startswith("no support: for ")
    assert found.refused.endswith("offer actions that such cases have had")
