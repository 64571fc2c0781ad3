"""When to stop, bounds that may be too tight, and experiments predicted by the others."""

import math
from dataclasses import replace

import pandas as pd
import pytest
import torch

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.trials.recommendation_history import PastRecommendation
from rehearsal_torch.data.trials.trial import Trial
from rehearsal_torch.data.trials.trial_log import TrialLog
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.search.trials.acquisition import Recommendation
from rehearsal_torch.search.trials.campaign_advice import at_bounds, gains_left
from rehearsal_torch.seeding import numpy_generator

TASK = {
    "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
    "actions": {"a": [0, 1], "b": [0, 2]},
    "reward": "Y",
}


def system(a, b, noise):
    x = a**2 + 0.01 * noise[0]
    return {"a": a, "b": b, "X": x, "Y": 1 - (x - 0.3) ** 2 - (b - 1.2) ** 2 + 0.02 * noise[1]}


def campaign(count):
    """Experiments of a system with its optimum, 1, at a = 0.55 and b = 1.2."""
    optimiser = CausalOptimiser(TASK)
    points, noise = optimiser.task.box.sobol(count, seed=0), numpy_generator(0).normal(size=(count, 2))
    optimiser.read(
        pd.DataFrame([system(*point, row) for point, row in zip(points.tolist(), noise, strict=True)])
    )
    return optimiser


def test_more_experiments_leave_less_to_gain():
    few, many = campaign(7).stopping(), campaign(40).stopping()
    assert 0 <= few.gain <= few.high
    assert many.high < 0.1 * few.high
    assert (few.reason, many.reason, many.stop) == ("more_to_gain", "little_left", True)
    # Without experiments there is no model, and a tolerance of one's own counts in place of a share.
    assert CausalOptimiser(TASK).stopping().reason == "no_model"
    assert campaign(7).stopping(worth=10.0).stop
    for worth in (0, -1, math.nan):
        with pytest.raises(ValueError, match="worth: expected a gain above 0"):
            campaign(7).stopping(worth=worth)


def test_what_a_bad_setting_loses_is_left_to_gain():
    optimiser = campaign(40)
    objective = PosteriorMean(optimiser.model().surrogate, optimiser._case(optimiser._store.fresh(), {}))
    worst = Recommendation(torch.tensor([0.55, 0.2], dtype=torch.float64), 0.0, objective.visited[:1], 0)
    gains = gains_left(objective, worst, 0)
    # The optimum is 1, and the reward at b = 0.2 is 0.
    assert gains.median() == pytest.approx(1.0, abs=0.05)
    assert (gains >= 0).all()


def test_bounds_that_recommendation_or_most_proposals_lie_on():
    task = CausalTask.of({**TASK, "actions": {"a": [0, 1], "b": {"values": [0, 2]}}})
    settings = [{"a": a, "b": 2.0} for a in (0.2, 1.0, 0.3, 0.0, 0.0, 1e-4, 0.4, 0.0)]
    trials = tuple(Trial(id=n + 1, state="pending", asked=each) for n, each in enumerate(settings))
    log = TrialLog(task, trials)
    # Of the six after the start design of two; b has two levels, and no bound to widen.
    (lower,) = at_bounds(log, 2)
    assert (lower.action, lower.side, lower.value, lower.recommended) == ("a", "lower", 0.0, False)
    assert (lower.proposals, lower.of) == (4, 6)
    assert at_bounds(log, 6) == ()
    past = PastRecommendation(after=5, action={"a": 1.0, "b": 2.0}, predicted=1.0, std=0.1)
    (upper,) = at_bounds(TrialLog(task, trials, recommended=(past,)), 8)
    assert (upper.side, upper.recommended, upper.proposals) == ("upper", True, 0)
    assert "the recommended setting had a at its upper bound, 1." in str(upper)
    assert at_bounds(TrialLog(replace(task, before={"a": 0.0}), trials), 2) == ()


def test_every_experiment_is_predicted_by_the_others_alone():
    optimiser = campaign(16)
    rows = optimiser.left_out()
    assert [row.trial for row in rows] == list(range(1, 17))
    assert all(row.low <= row.predicted <= row.high for row in rows)
    # A wrong value stands out, since its prediction does not know it.
    optimiser.read(pd.DataFrame({"trial": [5], "Y": [rows[4].measured + 3.0]}))
    rows = optimiser.left_out()
    assert rows[4].measured > rows[4].high
    missed = sum(not row.low <= row.measured <= row.high for row in rows)
    labels = [text.get_text() for text in optimiser.plot_left_out().get_legend().get_texts()]
    assert labels[1] == f"outside of it ({missed} of 16)"
