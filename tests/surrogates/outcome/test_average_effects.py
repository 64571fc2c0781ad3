"""Mean effects over rows, and their doubly robust check, in worlds whose effects are known."""

import numpy as np
import pytest
import torch

from rehearsal_torch.data.finding import DOUBTING
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.outcome.average_effects import AverageEffects
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.training.surrogate_fit import fit

SMALL = {
    **{"members": 2, "blocks": 8, "functions": 12, "frequencies": 60},
    **{"evidence_rows": 120, "iterations": 15},
}


def task(**rest):
    return RehearsalTask.of(
        {
            "graph": {"parents": {"u": ["x"], "a": ["x", "u"], "y": ["x", "u", "a"]}},
            **{"context": ["x"], "box": {"a": {"values": [0, 1]}}, "region": {"y": [0, None]}},
            **rest,
        }
    )


def rows(seed, count, effect=0.8, confounding=1.2, action=None):
    """Those who have u act more often, and fare worse."""
    draw = np.random.default_rng([seed, 71])
    x = draw.normal(size=count)
    u = 0.5 * x + draw.normal(size=count)
    usual = (draw.random(count) < 1 / (1 + np.exp(-confounding * u))).astype(float)
    a = usual if action is None else np.full(count, float(action))
    y = effect * a - u + 0.5 * x + 0.7 * draw.normal(size=count)
    return {"x": x, "u": u, "a": a, "y": y}


def table(columns):
    values = torch.from_numpy(np.stack(list(columns.values()), -1))
    return Table.observed(tuple(columns), values)


def truth(action):
    return (rows(5, 400_000, action=action)["y"] >= 0).mean()


@pytest.fixture(scope="module")
def fitted():
    return [fit(OutcomeRegression(task(), **SMALL, seed=seed), table(rows(seed, 500))) for seed in range(3)]


def test_draws_and_check_hold_what_differences_of_rows_do_not(fitted):
    usual, *set_to = map(truth, (None, 0, 1))
    known = {(1, None): set_to[1] - usual, (0, None): set_to[0] - usual, (1, 0): set_to[1] - set_to[0]}
    for seed, surrogate in enumerate(fitted):
        effects = surrogate.averages[0].effects()
        assert {(each.action, each.against) for each in effects} == set(known)
        for each in effects:
            for estimate in (each.draws.estimate(), each.check):
                assert estimate.lower <= known[each.action, each.against] <= estimate.upper
            assert not each.contradicted
        columns = rows(seed, 500)
        desired, acted = columns["y"] >= 0, columns["a"] == 1
        assert desired[acted].mean() - desired[~acted].mean() < known[1, 0] - 0.15
        assert surrogate.contradictions(0) == []


def test_means_of_rows_are_coherent(fitted):
    averages = fitted[0].averages[0]
    success, none = averages.success.mean(-1), averages.none.mean()
    assert float(success.min()) <= float(none) <= float(success.max())
    assert bool((averages.low <= averages.success + 1e-9).all())


def test_what_the_check_contradicts_is_a_finding(fitted):
    averages = fitted[1].averages[0]
    before = averages.means.clone()
    try:
        averages.means = before + torch.tensor([0.0, 0.5, 0.0], dtype=torch.float64)
        (finding,) = fitted[1].contradictions(0)
    finally:
        averages.means = before
    assert finding.kind == "claim"
    assert "a at 1" in finding.text


def test_rows_of_a_unit_count_together():
    psi = torch.tensor([[1.0, 0.0]] * 4 + [[0.0, 0.0]] * 4, dtype=torch.float64)
    none = torch.zeros(1, 4, dtype=torch.float64)
    alone, whole = AverageEffects(1), AverageEffects(1)
    rest = (torch.ones(1, 1).double(), none, none[0], none, torch.zeros(1).double(), psi)
    alone.solve(*rest, torch.arange(8.0))
    whole.solve(*rest, torch.arange(8.0) // 4)
    error, wider = ((each.effects()[0].check.upper - 0.5) / (1.2 * 1.959964) for each in (alone, whole))
    assert error == pytest.approx((8 * 0.25) ** 0.5 / 8, abs=1e-6)
    assert wider == pytest.approx((2 * 4.0) ** 0.5 / 8, abs=1e-6)


def test_quantiles_of_a_continuous_action_have_no_check():
    columns = rows(1, 200)
    columns["a"] = np.random.default_rng(3).normal(size=200) + columns["u"]
    columns["y"] = columns["y"] + columns["a"]
    surrogate = fit(OutcomeRegression(task(box={"a": [-1, 1]}), **SMALL), table(columns))
    effects = surrogate.averages[0].effects()
    assert len(effects) == 6
    assert all(each.check is None for each in effects)
    assert surrogate.averages[0].actions.abs().max() <= 1


def test_a_model_that_predicts_nothing_says_so(fitted):
    columns, doubts = rows(2, 300), []
    for seed in range(4):
        columns["y"] = np.random.default_rng(seed).normal(size=300)
        score = fit(OutcomeRegression(task(), **SMALL), table(columns)).score
        assert bool(score.doubt()) == (float(score.brier[0]) >= float(score.brier[1]))
        doubts += score.doubt()
    assert doubts
    assert doubts[0].kind in DOUBTING
    assert all(surrogate.score.doubt() == [] for surrogate in fitted)
