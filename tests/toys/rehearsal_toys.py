"""Small rehearsal tasks with a known truth: one with a confounder, one with a covariate between two
alterations."""

from functools import partial

import torch

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.kernel.nested_ridge import NestedRidge
from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble
from rehearsal_torch.training.surrogate_fit import fit

small = partial(SpectralEnsemble, members=2, features=100, direction_rows=120, width_rows=150, iterations=10)


def confounded(adjusted=True, candidates=(("a",),)):
    """u -> a, u -> y and a -> y; c may be set and does next to nothing. Without the adjustment, u is no part
    of the task."""
    parents = (
        {"u": [], "a": ["x", "u"], "c": ["x"], "y": ["x", "a", "u"]}
        if adjusted
        else {"a": ["x"], "c": ["x"], "y": ["x", "a"]}
    )
    names = [list(each) for each in candidates]
    box = {"a": [-1.5, 1.5], "c": [-1.0, 1.0]}
    return RehearsalTask.of(
        {
            "graph": {"parents": parents},
            "context": ["x"],
            "box": box,
            "region": {"y": [2.0, None]},
            "candidates": names,
        }
    )


def confounded_table(rows, seed=0, freedom=0.5):
    """y = 2 a - 4 u + x / 2: setting a high is right, rows with a high a have a low y; a has a deviation of
    `freedom` given u and x."""
    x, u, e, c, noise = torch.randn(
        5, rows, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    a = u + 0.2 * x + freedom * e
    y = 2 * a - 4 * u + 0.5 * x + 0.3 * noise
    return Table.observed(("x", "u", "a", "c", "y"), torch.stack([x, u, a, 0.3 * x + c, y], -1))


def confounded_truth(x, a):
    """P(y >= 2 | x, a altered)."""
    return torch.special.ndtr((2 * a + 0.5 * x - 2) / (16 + 0.09) ** 0.5)


def sequential():
    """x -> a -> v -> b -> y and v -> y: a and b are altered together, and v follows one and confounds the
    other."""
    parents = {"a": ["x"], "v": ["x", "a"], "b": ["x", "v"], "y": ["v", "b"]}
    box = {"a": [-1.5, 1.5], "b": [-2.0, 2.0]}
    return RehearsalTask.of(
        {
            "graph": {"parents": parents},
            "context": ["x"],
            "box": box,
            "region": {"y": [-1.0, 1.0]},
            "candidates": [["a", "b"]],
        }
    )


def sequential_table(rows, seed=0, altered=None, x=None):
    """Rows of the world above; with actions set and the context given, what follows them."""
    stream = torch.Generator().manual_seed(seed)
    root, e, f, g, h = torch.randn(5, rows, generator=stream, dtype=torch.float64)
    x = root if x is None else torch.full_like(root, x)
    a = 0.5 * x + e if altered is None else torch.full_like(x, altered[0])
    v = a + 0.3 * x + 0.5 * f
    b = 0.8 * v + 0.8 * g if altered is None else torch.full_like(x, altered[1])
    y = b - 1.5 * v + 0.3 * h
    return Table.observed(("x", "a", "v", "b", "y"), torch.stack([x, a, v, b, y], -1))


def sequential_truth(x, actions):
    """P(|y| < 1 | x, both altered), simulated."""
    return (sequential_table(20000, 3, actions.tolist(), float(x)).columns(["y"]).abs() < 1).double().mean()


def some_cases(task, count, seed=1):
    values = torch.randn(
        count, len(task.context), generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    given = [dict(zip(task.context, row, strict=True)) for row in values]
    return [RehearsalCase(str(index), each, task.box.bounds()) for index, each in enumerate(given)]


def fitted(task, table, estimator=small, **settings):
    return fit(NestedRidge(task, estimator, **settings), table)


def levelled(context=("x",)):
    """u -> a, u -> y and a -> y, a of the levels 0, 1 and 2; with u in the context, a has all its parents
    there."""
    parents = {"u": [], "a": ["x", "u"], "y": ["x", "a", "u"]}
    return RehearsalTask.of(
        {
            "graph": {"parents": parents},
            "context": list(context),
            "box": {"a": {"values": [0, 1, 2]}},
            "region": {"y": [0.5, None]},
        }
    )


def levelled_table(rows, seed=0, freedom=1.0):
    """y = a - 1.5 u + x / 2, of a that rises with u."""
    x, u, e, noise = torch.randn(4, rows, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    a = (1 + u + 0.3 * x + freedom * e).round().clamp(0, 2)
    y = a - 1.5 * u + 0.5 * x + 0.5 * noise
    return Table.observed(("x", "u", "a", "y"), torch.stack([x, u, a, y], -1))
