"""A small table of episodes: pumps, hour by hour, with every kind of column."""

import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

import rehearsal_torch as rt
from rehearsal_torch.problems.sequences.sequence_schema import SequenceProblem

TASK = {
    "unit": "pump",
    "time": "hour",
    "varying": {"flow": {"unit": "l/s", "range": [0, 100]}, "heat": None},
    "static": {"bore": {"unit": "mm"}, "maker": {"values": ["A", "B", "C"]}},
    "contextual": ["demand"],
    "actions": {
        "valve": {"levels": ["shut", "half", "open"], "cost": {"half": 1, "open": 3}},
        "oil": {"unit": "ml", "cost": 0.5},
    },
    "reward": {"weights": {"flow": 0.25}, "score": {"hot": {"heat": {"> 10": 2}}}},
}

# Settings of a model without words on the terminal.
SMALL = {"trainer.progress": False}


def told(found):
    """What a look-back says, without the time that it took."""
    return replace(found, seconds=0.0).to_dict()


def task(**changes):
    return {**copy.deepcopy(TASK), **changes}


def roles_of(plain):
    """What the columns of a task mean."""
    return SequenceProblem.of(plain).roles()


def table(units=30, steps=6, seed=0, effect=0.0):
    """A frame of `units` pumps with `steps` rows each; the last pump is called as the first plus `units`. No
    action moves anything, but that each level of the valve adds its `effect` to the flow of the next hour.
    """
    draws = np.random.default_rng(seed)
    rows = units * steps
    unit = np.repeat(np.arange(units), steps)
    frame = pd.DataFrame(
        {
            "pump": unit + 1,
            "hour": np.tile(np.arange(steps), units),
            "flow": draws.uniform(20, 80, rows).round(3),
            "heat": draws.normal(8, 4, rows).round(3),
            "bore": (unit % 5 + 10).astype(float),
            "maker": np.array(["A", "B", "C"])[unit % 3],
            "demand": draws.uniform(0, 1, rows).round(3),
            "valve": np.array(["shut", "half", "open"])[draws.integers(0, 3, rows)],
            "oil": np.where(draws.random(rows) < 0.5, 0.0, draws.uniform(1, 9, rows).round(2)),
        }
    )
    if effect:
        level = frame["valve"].map({"shut": 0, "half": 1, "open": 2})
        before = level.groupby(frame["pump"]).shift(fill_value=0)
        frame["flow"] = (0.5 * frame["flow"] + effect * before).round(3)
    return frame


@cache
def fitted():
    """A model of them; not to be changed."""
    return rt.learn_episodes(table(effect=25.0), task(), seed=3, **SMALL)
