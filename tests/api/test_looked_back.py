"""The decision for one episode as a frame, a figure and HTML."""

import copy
import math
from dataclasses import replace

import pandas as pd
import pytest
from matplotlib.figure import Figure

import rehearsal_torch as rt
from rehearsal_torch.api.episode_query import LookedBack, words_for
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.problems.sequences.sepsis_cohort import SepsisSimulated
from tests.places import ROOT
from tests.toys.episodes import transition_episode


@pytest.fixture(scope="module")
def toy():
    return transition_episode(3, horizon=6, changes=2)


@pytest.fixture(scope="module")
def found(toy):
    return rt.look_back(toy.surrogate, toy.case.episode, 2, reward={"x0": -1.0})


def test_it_stays_a_decision(found):
    assert isinstance(found, rt.Decision)
    assert replace(found, findings=(Finding("note", "one"),)).warnings == ("one",)
    assert replace(found, findings=(Finding("note", "one"),)).trajectory is found.trajectory
    assert "trajectory" not in found.to_dict()
    for again in (copy.deepcopy(found), copy.copy(found)):
        assert again.to_dict() == found.to_dict()
        assert again.to_frame().equals(found.to_frame())


def test_the_frame_has_a_row_for_each_changed_step(toy, found):
    frame = found.to_frame()
    assert list(frame.columns) == ["step", "observed_action", "action", "from/drug0", "to/drug0"]
    # From 1, as in the changes.csv of a run.
    times = frame["step"] - 1
    assert dict(zip(times, frame["action"], strict=True)) == found.actions()
    given = toy.case.episode.columns(["drug0"])[:, 0]
    assert frame["from/drug0"].tolist() == [float(given[time]) for time in times]
    assert frame["to/drug0"].tolist() == [found.doses[f"action[{time}]"][0] for time in times]
    observed = toy.observed.tolist()
    assert frame["observed_action"].tolist() == [observed[time] for time in times]


def test_the_course_adds_up_to_the_estimates(found):
    assert sum(found.trajectory["rewards"]) == pytest.approx(found.estimate.point)
    assert sum(found.trajectory["observed_rewards"]) == pytest.approx(found.baseline.point)
    assert found.trajectory["improvement"] == pytest.approx(found.improvement)


def test_the_figure_shows_both_courses(found):
    axes = Figure().subplots()
    assert found.plot(axes) is axes
    observed, replayed = axes.lines[:2]
    # The reward is minus x0, and x0 is what is drawn.
    assert list(observed.get_ydata()) == pytest.approx(
        [-each for each in found.trajectory["observed_rewards"]]
    )
    assert list(replayed.get_ydata()) == pytest.approx([-each for each in found.trajectory["rewards"]])
    assert axes.get_ylabel() == "x0"
    assert axes.get_legend() is not None


def test_html_says_the_gain_and_lists_the_changes(found):
    html = found._repr_html_()
    assert found.summary() == (
        "Episode episode-3: may help, 2 of at most 2 changed actions; cumulative x0 "
        f"{-found.estimate.point:.4g} instead of {-found.baseline.point:.4g}, {100 * found.improvement:.1f}% "
        "better; proven best for this model."
    )
    assert f"<p>{found.summary()}</p>" in html
    assert html.count("<tr>") == 1 + 2
    assert " → " in html


def test_without_a_change_there_is_a_sentence_and_no_row(toy):
    none = rt.look_back(toy.surrogate, toy.case.episode, 0, reward={"x0": -1.0})
    assert none.to_frame().empty
    assert list(none.to_frame().columns)[:3] == ["step", "observed_action", "action"]
    assert none.summary().startswith("Episode episode-3: no action would have been changed: ")
    assert "<table>" not in none._repr_html_()
    assert len(none.plot(Figure().subplots()).lines) >= 2


@pytest.mark.slow
def test_the_numbers_of_sepsis_episodes_have_their_units():
    world = SepsisSimulated(patients=60, horizon=6)
    found = rt.look_back(ROOT / "checkpoints" / "sepsis", world.case(0).episode, 1, method="greedy")
    assert isinstance(found, LookedBack)
    assert (found.words.variable, found.words.unit, found.words.sign) == ("SOFA", "points", -1.0)
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert {"from/max_dose_vaso", "to/input_4hourly"} <= set(frame.columns)


def test_a_reward_of_ones_own_is_called_the_reward():
    words = words_for({}, ["drug"])
    assert (words.variable, words.sign, words.doses[0].name) == ("reward", 1.0, "drug")
    assert math.isclose(words_for({"weights": {"x": -1}}, []).sign, -1.0)
