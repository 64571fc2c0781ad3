"""For which cases and actions rows can speak."""

import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import torch

from rehearsal_torch.data import positivity
from rehearsal_torch.data.positivity import MOST_BEYOND, beyond
from rehearsal_torch.estimators.response_regression import ResponseRegression
from rehearsal_torch.graphs.separation import adjustment
from rehearsal_torch.problems.cases.random_world import DrawnWorld
from rehearsal_torch.problems.cases.user_table import RehearsalTable
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.surrogates.outcome.near_rows import NearRows

CASES = np.linspace(-1.5, 1.5, 12)[:, None]
PARENTS = {"u": ["x"], "a": ["x", "u"], "y": ["x", "u", "a"]}


def rows(freedom=None, count=1000, seed=1):
    """A dose that follows the covariates up to some freedom, or a randomised one."""
    stream = np.random.default_rng([seed, 11])
    x = stream.normal(size=count)
    u = 0.3 * x + stream.normal(size=count)
    usual = u + 0.5 * x
    a = stream.uniform(-3, 3, count) if freedom is None else usual + freedom * stream.normal(size=count)
    y = -1.2 * (a - usual) ** 2 + 0.3 * stream.normal(size=count)
    return pd.DataFrame({"x": x, "u": u, "a": a, "y": y})


def findings(frame, box=None):
    task = {
        "graph": {"parents": PARENTS},
        "context": ["x"],
        "box": {"a": box or [-3, 3]},
        "region": {"y": [-0.5, None]},
    }
    problem = RehearsalTable(frame, task, pd.DataFrame({"x": CASES[:, 0]}))
    return [each for each in problem.findings() if each.kind == "support"]


def test_rows_do_not_speak_for_a_dose_that_the_covariates_determine() -> None:
    (finding,) = findings(rows(0.15))
    assert finding.numbers["none"] > 0.9
    assert finding.numbers["complete"] == 0
    assert "a: the rows speak" in finding.text
    assert "for no value at all in" in finding.text


def test_beyond_the_rows_the_range_of_the_median_case_is_said() -> None:
    (finding,) = findings(rows(), [-3, 9])
    assert finding.numbers["none"] == 0
    assert finding.numbers["low"] == pytest.approx(-3, abs=0.5)
    assert finding.numbers["high"] == pytest.approx(3, abs=0.5)
    assert "of -3 to 9 in the median case" in finding.text


def test_levels_are_counted_one_by_one() -> None:
    frame = rows()
    frame["a"] = np.where(frame["x"] > 0, 1.0, 0.0)
    frame.loc[frame["u"].abs() < 0.05, "a"] = 1.0
    (finding,) = findings(frame, {"values": [0, 1]})
    assert finding.text.startswith("a: the rows speak for 0 in 6 of 12 cases, 1 in ")


def test_a_level_that_hardly_any_row_has_is_warned_of_and_supported_in_no_case() -> None:
    frame = rows()
    frame["a"] = np.where(np.arange(len(frame)) % 100 == 0, 1.0, 0.0)
    problem = RehearsalTable(
        frame,
        {"graph": {"parents": PARENTS}, "context": ["x"], "box": {"a": {"values": [0, 1]}}}
        | {"region": {"y": [-0.5, None]}},
        pd.DataFrame({"x": CASES[:, 0]}),
    )
    texts = [finding.text for finding in problem.findings()]
    assert any("few rows have a level that may be set (1 in 10 of 1000 rows)" in text for text in texts)
    assert any("1 in 0 of 12 cases" in text for text in texts)


def standardised(values, of):
    return torch.from_numpy((values - of.mean(0)) / of.std(0).clip(1e-9)).double()


@pytest.mark.parametrize("seed", [2, 7])
def test_agrees_with_the_rows_by_which_decisions_are_judged(seed) -> None:
    world = DrawnWorld(own_rows=False, size=SampleSize(600, 8), seed=seed)
    table, task = world.observations(), world.task
    altered = task.candidates[0]
    before = adjustment(task.graph, task.context, altered, task.outcomes).before
    context, covariates, actions = (
        table.columns(names).double().numpy() for names in (task.context, before, altered)
    )
    cases = world.given([world.case(index) for index in range(world.count())]).double().numpy()
    bounds = np.array([task.box.bounds()[name] for name in altered])
    settings = bounds[:, 0] + np.linspace(0, 1, 9)[:, None] * (bounds[:, 1] - bounds[:, 0])
    x, u, a = (standardised(each, each) for each in (context, covariates, actions))
    asked, doses = standardised(cases, context), standardised(settings, actions)
    usual = ResponseRegression(24, 300, 30, seed=3)
    usual.solve(torch.cat((x, u), -1), a)
    places = asked.repeat_interleave(40, 0)
    if before:
        drawn = ResponseRegression(24, 300, 30, seed=4)
        drawn.solve(x, u)
        picked = torch.randint(len(x), (len(places),), generator=torch.Generator().manual_seed(0))
        u_there = drawn(places) + (u - drawn(x))[picked]
        places = torch.cat((places, u_there), -1)
    levels = [place for place, name in enumerate(altered) if name in task.box.levels]
    near = NearRows(range(x.shape[1], places.shape[1]), levels=levels)
    near.solve(torch.cat((x, u), -1), a - usual(torch.cat((x, u), -1)), a)
    places = near.observed(places)
    left = doses[:, None] - usual(places)
    far = near.far(near.around(places), left, doses[:, None].expand_as(left)).double()
    far = far.unflatten(-1, (len(cases), 40)).mean(-1).mT.numpy()
    share = beyond(context, covariates, actions, cases, settings, levels=levels)
    assert np.abs(share - far).mean() < 0.15
    assert ((share <= MOST_BEYOND) == (far <= MOST_BEYOND)).mean() > 0.8


def test_is_cheap_and_loads_no_torch() -> None:
    stream = np.random.default_rng(0)
    x, u, a = (stream.normal(size=(20_000, width)) for width in (3, 2, 1))
    started = time.process_time()
    beyond(x, u, a, x[: positivity.CASES], np.linspace(-2, 2, 25)[:, None])
    assert time.process_time() - started < 2
    code = "import rehearsal_torch.data.positivity, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("share", [0.02, 0.06])
def test_a_level_that_few_rows_have_at_random_is_not_beyond_them(share) -> None:
    """It once was, however many rows there were, as less than one in forty had it."""
    stream = np.random.default_rng(0)
    x, cases = stream.normal(size=(3000, 1)), np.array([[-1.0], [0.0], [1.0]])
    a = (stream.random((3000, 1)) < share) * 1.0
    found = beyond(x, np.empty((3000, 0)), a, cases, np.array([[0.0], [1.0], [2.0]]), levels=[0])
    assert found[:, :2].max() <= MOST_BEYOND
    assert found[:, 2].min() == 1


def test_where_no_level_has_more_than_five_rows_they_are_compared_together() -> None:
    """An empty minimum once ended the check."""
    x, a = np.random.default_rng(0).normal(size=(60, 1)), (np.arange(60.0) % 12)[:, None]
    found = beyond(x, np.empty((60, 0)), a, np.zeros((1, 1)), np.array([[6.0]]), levels=[0])
    assert found.max() <= MOST_BEYOND
