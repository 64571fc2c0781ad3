"""A checkpoint of every method for cases, with its settings of conf, has at most 2 MB for 300 rows of 15
columns with two outcomes and three sets of actions; and what it leaves out is computed to the last bit.
"""

import numpy as np
import pytest
import torch

from rehearsal_torch.checkpoint import load, save
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.state_file import derived_names
from tests.toys import rehearsal_methods
from tests.toys.rehearsal_methods import DECISIONS, SURROGATES, choices, learnt, plain

pytestmark = pytest.mark.slow
# Bytes.
LARGEST = 2_000_000
CONTEXT, COVARIATES, ACTIONS, OUTCOMES = (
    tuple(f"{letter}{place}" for place in range(count))
    for letter, count in zip("xuay", (6, 4, 3, 2), strict=True)
)


def task():
    """Every set of actions is adjusted for the covariates and the other actions."""
    parents = {name: list(CONTEXT[:3]) for name in COVARIATES}
    parents |= {name: [*COVARIATES, CONTEXT[0]] for name in ACTIONS}
    parents |= {name: [*CONTEXT, *COVARIATES, *ACTIONS] for name in OUTCOMES}
    return RehearsalTask(
        RehearsalGraph.of(parents),
        CONTEXT,
        Box.of({name: (-1, 1) for name in ACTIONS}),
        Polytope.of({"y0": (0.5, 3), "y1": (0, 3)}),
        tuple((name,) for name in ACTIONS),
    )


def table(count=300):
    draws = np.random.default_rng(0)
    x = draws.normal(size=(count, 6))
    u = x[:, :3].mean(1, keepdims=True) + draws.normal(size=(count, 4))
    a = 0.3 * u[:, :1] + draws.normal(size=(count, 3))
    noise = 0.5 * draws.normal(size=(count, 2))
    y = np.stack([np.sin(x[:, 0]) + a[:, 0] + u[:, 0], a.sum(1) - x[:, 1]], -1) + noise
    names = (*CONTEXT, *COVARIATES, *ACTIONS, *OUTCOMES)
    return Table.observed(names, torch.from_numpy(np.concatenate([x, u, a, y], 1)))


def test_every_method_of_conf_is_among_them():
    assert {choices(name)[0] for name in DECISIONS} <= set(SURROGATES)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "outcome_regression" else pytest.mark.bench)
        for name in SURROGATES
    ],
)
def test_a_checkpoint_of_300_rows_has_at_most_two_megabytes(name, tmp_path, monkeypatch):
    monkeypatch.setattr(rehearsal_methods, "QUICK", {})
    rows = table()
    assert rows.values.shape == (300, 15)
    made = learnt(name, task(), rows)
    folder = save(made, plain(name, task()), tmp_path)
    assert sum(path.stat().st_size for path in folder.iterdir()) <= LARGEST
    state, again = made.state_dict(), load(folder).state_dict()
    assert state.keys() == again.keys()
    for key, value in state.items():
        torch.testing.assert_close(again[key], value, rtol=0, atol=0, equal_nan=True, msg=key)
    assert name not in ("nested_ridge_fourier", "nested_ridge_nystrom") or derived_names(made)
