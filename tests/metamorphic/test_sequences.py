"""Other actions in episodes by every search: the same rows in another form give the same answer, exactly."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import rehearsal_torch as rt
from tests.toys import pumps

pytestmark = pytest.mark.filterwarnings("ignore::rehearsal_torch.user_error.RequestWarning")
QUICK = ["greedy"]
SLOW = ["astar", "branch_and_bound", "exhaustive", "top_k", "random"]
METHODS = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
HEAT, FLOW = 2.0**-30, 2.0**20


def asked(heat=1.0, flow=1.0):
    """What is asked of heat and flow in some units; all searches bound such a reward."""
    task = pumps.task(reward={"weights": {"flow": 0.25 / flow, "heat": -1.0 / heat}})
    task["varying"]["flow"]["range"] = [0, 100 * flow]
    return task


def units():
    rows = pumps.table(effect=25.0)
    return rows.assign(heat=rows["heat"] * HEAT, flow=rows["flow"] * FLOW), asked(HEAT, FLOW)


def shuffled():
    rows = pumps.table(effect=25.0)
    return rows.iloc[np.random.default_rng(1).permutation(len(rows))].reset_index(drop=True), asked()


CHANGES = {
    "units": units,
    "rows": shuffled,
    "columns": lambda: (pumps.table(effect=25.0)[pumps.table(effect=25.0).columns[::-1]], asked()),
    "further": lambda: (pumps.table(effect=25.0).assign(aa=1.0, zz="none"), asked()),
}


@cache
def model(change, method):
    rows, task = CHANGES[change]() if change else (pumps.table(effect=25.0), asked())
    return rt.learn_episodes(rows, task, method, seed=3, **pumps.SMALL)


def answers(change, method):
    """What is said of two pumps: status, claims and actions, without the units that the words name."""
    # A* needs Lipschitz constants, which a closed form has not; all other searches ask the same model.
    asked = replace(model(change, "astar" if method == "astar" else None), method=method)
    told = [pumps.told(asked.look_back(pump, 1)) for pump in ("1", "2")]
    return [
        {key: each.get(key) for key in ("status", "estimate", "baseline", "gain", "alteration")}
        for each in told
    ]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", METHODS)
def test_the_answer_is_exactly_the_same(method, change):
    assert answers(change, method) == answers(None, method)
