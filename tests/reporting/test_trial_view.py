"""What an optimiser shows of its trials."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from tests.api.test_optimiser import TASK, optimiser, system, told

REWARDS = [0.2, 0.9, 0.4, 0.95]
SETTINGS = [{"a": 0.1 * place, "b": 1.0} for place in range(4)]


@pytest.fixture
def made():
    found = optimiser()
    for setting, reward in zip(SETTINGS, REWARDS, strict=True):
        found.tell(None, {"X": 0.5, "Y": reward}, ran=setting)
    return found


def test_trials_and_the_best_so_far_are_drawn(made):
    made.ask()
    axes = made.plot(Figure().subplots())
    points, best, _ = axes.lines
    assert list(points.get_ydata()) == REWARDS
    assert list(best.get_ydata()) == [0.2, 0.9, 0.9, 0.95]
    assert list(points.get_xdata()) == [1, 2, 3, 4]
    legend = [each.get_text() for each in axes.get_legend().get_texts()]
    assert legend == ["trial", "best so far", "no recommendation yet: see recommend()"]


@pytest.mark.slow
def test_the_recommendation_is_drawn_with_its_interval():
    made = told(optimiser(), 9)
    found = made.recommend()
    axes = made.plot(Figure().subplots())
    mean = axes.lines[-1]
    assert set(mean.get_ydata()) == {found.predicted}
    (band,) = axes.patches
    low, high = band.get_y(), band.get_y() + band.get_height()
    assert (low, high) == pytest.approx(
        (found.predicted - 1.959964 * found.std, found.predicted + 1.959964 * found.std)
    )
    assert len(made.plot(Figure().subplots(), recommended=False).lines) == 2


def test_without_trials_there_is_a_sentence_alone():
    made = optimiser()
    assert made.summary() == "0 trials; no reward is known yet."
    assert made._repr_html_() == "<div><p>0 trials; no reward is known yet.</p></div>"
    assert len(made.plot(Figure().subplots(), recommended=False).lines) == 1


def test_the_largest_reward_is_one_that_kept_the_constraints():
    limited = optimiser({**TASK, "constraints": "X <= 0.3"})
    limited.read(pd.DataFrame({"a": [0.1, 0.2], "b": 1.0, "X": [0.5, 0.2], "Y": [0.9, 0.4]}))
    best = "the largest reward that kept the constraints so far is 0.4, of trial 2, line 3 of the table (a"
    assert best in limited.summary()
    limited.abandon(2)
    assert limited.summary().endswith("; none of them is known to have kept the constraints.")


def test_html_has_the_last_trials(made):
    for place in range(8):
        action = {"a": 0.05 * place, "b": 0.5}
        made.tell(None, system(action), ran=action)
    made.ask()
    html = made._repr_html_()
    assert html.count("<tr>") == 1 + 10
    assert "3 earlier trials are not shown" in html
    assert "<td>12</td><td>completed</td><td>0.35</td><td>0.5</td>" in html
    assert "<td>13</td><td>pending</td>" in html
    rewards = made._reward_of_trial()
    assert np.allclose(list(rewards.values())[:4], REWARDS)
