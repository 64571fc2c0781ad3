"""Small tasks with rows, and the quickest methods that decide for them."""

from functools import partial

import torch
from torch import Tensor

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.data.table import Table
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.kernel_value import KernelValue
from rehearsal_torch.objectives.upper_bounds import ConfidenceBound
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
from rehearsal_torch.surrogates.kernel.nested_ridge import NestedRidge
from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.fuzz.verdicts import sound
from tests.toys.rehearsal_toys import confounded_table, sequential_table

ROWS = 40
CONFOUNDED = {
    "graph": {"parents": {"a": ["x", "u"], "c": ["x"], "y": ["x", "a", "u"]}, "bidirected": []},
    "context": ["x"],
    "box": {"a": [-1.5, 1.5], "c": [-1.0, 1.0]},
    "region": {"y": [2.0, None]},
    "candidates": [["a"], ["c"], ["a", "c"]],
}
SEQUENTIAL = {
    "graph": {
        "cliques": [["x"], ["a"], ["v"], ["b"], ["y"]],
        "edges": [["x", "a"], ["x", "v"], ["a", "v"], ["x", "b"], ["v", "b"], ["v", "y"], ["b", "y"]],
    },
    "context": ["x"],
    "box": {"a": [-1.5, 1.5], "b": [-2, 2]},
    "region": {"names": ["y"], "normals": [[1.0], [-1.0]], "offsets": [1.0, 1.0]},
    "candidates": [["a", "b"]],
}
MOVING = {
    "graph": {"parents": {"a": "x", "c": "x", "u": [], "y": ["x", "a"]}, "bidirected": [["u", "y"]]},
    "context": "x",
    "box": {"a": [-1.5, 1.5]},
    "region": {"y": [-1, 1], "u": [None, 2]},
}
LEVELLED = CONFOUNDED | {"box": {"a": {"values": [0, 1, -1.5]}, "c": {"values": [1]}}}
REHEARSALS = [
    (CONFOUNDED, confounded_table(ROWS)),
    (SEQUENTIAL, sequential_table(ROWS)),
    (MOVING, confounded_table(ROWS)),
    (LEVELLED, confounded_table(ROWS)),
]

TRIALS = [
    {
        "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
        "actions": {"a": [0, 1], "b": [0, 2]},
        "reward": "Y",
    },
    {
        "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
        "actions": {"a": [0, 1], "b": [0, 2]},
        "reward": {"targets": {"X": 0.5, "Y": 0.0}, "mean": True},
        "limits": {"normals": [[1.0, 1.0]], "offsets": [1.5]},
    },
    {
        "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
        "actions": {"a": [0, 1], "b": [0, 2]},
        "reward": {"weights": {"Y": 1.0, "X": -0.5}},
    },
]

ridge = partial(
    NestedRidge,
    estimator=partial(
        SpectralEnsemble, members=1, features=40, direction_rows=40, width_rows=40, iterations=4
    ),
)
quick = partial(ExogenousModel, phi="homoskedastic", components=1, kernel="rbf")
search = AcquisitionSearch(screened=16, starts=3, incumbents=1, steps=5)
bound = partial(ConfidenceBound, draws=8)


def experiments(count=9):
    """Rows of a and b, which were set, and X and Y, which came out."""
    stream = torch.Generator().manual_seed(5)
    a, b, e, f = torch.rand(4, count, generator=stream, dtype=torch.float64)
    x = a**2 + 0.02 * e
    return Table.observed(
        ("a", "b", "X", "Y"),
        torch.stack([a, 2 * b, x, 1 - (x - 0.3) ** 2 - (2 * b - 1.2) ** 2 + 0.02 * f], -1),
    )


def rows_of(table):
    """A table as texts, the header first."""
    values: Tensor = table.values
    return [list(table.names), *([repr(value) for value in row] for row in values.tolist())]


def rehearse(problem, method, cases=2):
    """Fits and decides for the first cases of a problem of rehearsal."""
    made, objective, searched = (
        (ridge(problem.task), partial(KernelValue), ProjectedAscent(starts=2, steps=8))
        if method == "cme"
        else (LinearStructural(problem.task, draws=8), partial(GaussianSuccess), ProjectionNewton())
    )
    fit(made, problem.observations())
    for each in rounds(problem, made, objective, searched, range(min(cases, problem.count()))):
        sound(each.decision, each.case)
        each.line()


def optimised(task, past):
    """Asks for two actions after the experiments of a file, and for a recommendation."""
    optimiser = CausalOptimiser(task, quick, bound, search, initial=5)
    optimiser.read(past)
    for action in optimiser.ask(2):
        optimiser.task.check_action(
            torch.tensor([action[name] for name in optimiser.task.actions], dtype=torch.float64)
        )
    if len(optimiser.table) >= 5:
        action, worth = optimiser.recommend()
        optimiser.task.check_action(
            torch.tensor([action[name] for name in optimiser.task.actions], dtype=torch.float64)
        )
        assert abs(worth) < float("inf"), f"recommended with the worth {worth}"
