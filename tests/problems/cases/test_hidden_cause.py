"""A hidden common cause of known strength: rows, integrals, and bounds that hold the truth."""

import math
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm

import rehearsal_torch as rt
from rehearsal_torch.estimators.marginal_sensitivity import interval_bounds
from rehearsal_torch.problems.cases.hidden_cause import HiddenCause
from rehearsal_torch.problems.cases.linear_examples import LinSyn1
from rehearsal_torch.problems.cases.linear_world import LinearEquations, LinearWorld
from rehearsal_torch.problems.cases.nonlinear_examples import Loan, NonSyn2
from rehearsal_torch.problems.world_size import SampleSize

WORLDS = (Loan, LinSyn1, NonSyn2)
worlds = pytest.mark.parametrize("make", WORLDS)
strength = st.floats(1.001, 20.0)
unit = st.floats(0.0, 1.0)
CAUSES = np.array([1.0, -1.0])


def bounds(probability, gamma):
    return interval_bounds(probability, probability, gamma)


@worlds
def test_rows_differ_in_the_outcomes_alone_and_by_twice_the_shift(make):
    size = SampleSize(4000, 2)
    plain, off, on = (
        make(size=size, seed=3, **more) for more in ({}, {"confounding": 1}, {"confounding": 2.0})
    )
    assert torch.equal(plain.observations().values, off.observations().values)
    assert "hidden_cause" not in off.card()
    assert on.card()["hidden_cause"]["strength"] == 2.0
    moved = on.observations().values - plain.observations().values
    outcome = on.task.graph.names.index("Y1")
    others = [place for place in range(moved.shape[1]) if place != outcome]
    assert float(moved[:, others].abs().max()) == 0.0
    shift = on.hidden.shifts["Y1"]
    assert moved[:, outcome].abs().numpy() == pytest.approx(shift, rel=1e-6)
    assert float((moved[:, outcome] / shift).mean()) == pytest.approx(0.0, abs=0.05), "h is fair"
    assert all(
        torch.equal(plain.case(index).given[name], on.case(index).given[name])
        for index in range(2)
        for name in plain.task.context
    )


def test_the_ratio_of_densities_reaches_the_strength():
    cause = HiddenCause("a", {"y": 1.0}, 2.5)
    # h given the sign of the noise; both are fair, so that this is also the sign given h.
    stream = np.random.default_rng(0)
    noise = torch.from_numpy(stream.normal(size=200_000))
    drawn = cause.drawn(noise, stream)
    agree = float((drawn == noise.sign()).double().mean())
    assert agree == pytest.approx((1 + 0.6) / 2, abs=0.003)
    ratios = [1 / (2 * agree), 1 / (2 * (1 - agree))]
    assert max(ratios + [1 / each for each in ratios]) == pytest.approx(2.5, rel=0.02)


def test_integrals_over_the_noise_know_on_which_side_h_is():
    cause = HiddenCause("a", {"y": 1.0}, 4.0)
    noise, weights = cause.nodes(2.0, 40)
    h, joint = cause.joint(noise, weights)
    both = noise.repeat(2)
    assert float(joint.sum()) == pytest.approx(1.0)
    assert float(joint @ h) == pytest.approx(0.0, abs=1e-12)
    # E[h |e|] = 0, E[h e] = d E|e|.
    assert float(joint @ (h * both)) == pytest.approx(0.75 * 2.0 * math.sqrt(2 / math.pi), rel=1e-6)
    assert float(joint @ both.square()) == pytest.approx(4.0, rel=1e-6)
    fair, halves = cause.joint(None, torch.ones(1, dtype=torch.float64))
    assert (fair.tolist(), halves.tolist()) == ([1.0, -1.0], [0.5, 0.5])


def spread(centre, gamma):
    """P(h | s): rows s = +1 and -1 of what adjusting for all observed covariates sees, columns h."""
    lean = 1 - 1 / gamma
    return (1 + lean * np.where(centre >= 0, 1, -1)[..., None] * CAUSES) / 2


def bank(gamma, x, a):
    """The truth, and what a perfect adjustment estimates: averages over U1, a Beta(2, 2) on a grid."""
    u = (np.arange(4000) + 0.5) / 4000
    mass = 6 * u * (1 - u)
    mass /= mass.sum()
    middle = expit(2 * u**1.1 - 1.5 * a + 0.2 * x[1] + 0.4)[:, None] + 0.1 * CAUSES
    desired = norm.sf((0.6 - middle) / 0.05) * norm.sf((0.3 - 0.8 * a - 0.5 * u) / 0.05)[:, None]
    seen = spread(a - (u + 0.5 * x.sum() - 0.5), gamma)
    return mass @ desired.mean(1), mass @ (desired * seen).sum(1)


@settings(max_examples=25)
@given(strength, unit, unit, unit)
def test_on_the_bank_the_bounds_of_the_exact_estimate_hold_the_truth(gamma, one, other, a):
    x = np.array([one, other])
    true, seen = bank(gamma, x, a)
    low, high = bounds(torch.tensor(seen, dtype=torch.float64), gamma)
    assert float(low) - 1e-9 <= true <= float(high) + 1e-9
    known = loan(gamma).probability(torch.tensor(x[None]), ("A2",), torch.tensor([[a]], dtype=torch.float64))
    assert float(known) == pytest.approx(true, abs=1e-4)


@cache
def loan(gamma):
    return Loan(confounding=gamma)


@pytest.mark.bench
@worlds
@pytest.mark.parametrize("gamma", [1.5, 10.0])
def test_no_action_is_what_the_rows_show(make, gamma):
    world = make(confounding=gamma)
    rows = world.draw(100_000, np.random.default_rng(1))
    share = float(world.desired(rows.columns(world.task.outcomes)).double().mean())
    contexts = rows.columns(world.task.context)[:3000]
    known = float(world.probability(contexts, (), contexts.new_empty(3000, 0)).mean())
    assert known == pytest.approx(share, abs=0.02)


@pytest.mark.bench
@pytest.mark.parametrize(
    ("make", "method", "seeds", "least"),
    [(Loan, "care", 10, 0.95), (LinSyn1, "care", 10, 0.95), (Loan, "cme", 3, 0.9)],
)
def test_at_the_true_strength_the_bounds_of_an_estimated_interval_hold_the_truth(make, method, seeds, least):
    # Over seeds 400-409: care 200 of 200 and 199 of 199; cme on the bank 189 of 198.
    held, alone, strong = [], [], []
    for seed in range(400, 400 + seeds):
        world = make(size=SampleSize(1000, 20), seed=seed, confounding=2.0)
        cases = [world.case(index) for index in range(20)]
        given = [{name: float(value) for name, value in case.given.items()} for case in cases]
        decisions = rt.rehearse(world.observations(), world.task, given, seed=seed, method=method)
        for case, decision in zip(cases, decisions, strict=True):
            if decision.alteration is None:
                continue
            score = world.score(case, decision)
            ends = torch.tensor([decision.estimate.lower, decision.estimate.upper], dtype=torch.float64)
            low, high = interval_bounds(ends[0], ends[1], 2.0)
            held.append(float(low) <= score["probability"] <= float(high))
            alone.append(float(ends[0]) <= score["probability"] <= float(ends[1]))
            # Of equations that the rows refute, no strength is said.
            if decision.sensitivity is not None and decision.sensitivity.tipping > 2:
                strong.append(score["probability"] > score["no_action"])
    assert len(held) >= 19 * seeds
    assert sum(held) >= least * len(held)
    assert sum(alone) < 0.95 * len(alone), "without the bounds, the hidden cause misleads"
    assert all(strong)


def test_a_world_whose_action_shares_its_noise_is_refused():
    plain = LinSyn1()
    covariance = 0.1 * torch.eye(8, dtype=torch.float64)
    covariance[5, 6] = covariance[6, 5] = 0.05
    system = LinearEquations(plain.system.names, plain.system.weights, covariance)

    with pytest.raises(ValueError, match="normal noise of A2"):
        LinearWorld(plain.task, system, "a test", hidden=HiddenCause("A2", {"Y1": 1.0}, 2.0))
