"""A fitted network of two nodes, X <- a and Y <- X, b, for what is built on a fitted model."""

from functools import cache

import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.network.exogenous_model import ExogenousModel
from rehearsal_torch.training.surrogate_fit import fit

DOUBLE = torch.float64
PAIR = CausalTask.of(
    {
        "graph": {"parents": {"X": ["a"], "Y": ["X", "b"]}},
        "actions": {"a": [0.0, 2.0], "b": [-1.0, 1.0]},
        "reward": "Y",
    }
)


def pair_table(rows: int, seed: int = 0) -> Table:
    """X = sin 2a + .1 u; Y = X - b^2 + .1 u."""
    stream = torch.Generator().manual_seed(seed)
    a, b = torch.rand(2, rows, generator=stream, dtype=DOUBLE)
    a, b = 2 * a, 2 * b - 1
    noise = 0.1 * torch.randn(2, rows, generator=stream, dtype=DOUBLE)
    x = (2 * a).sin() + noise[0]
    values = torch.stack([a, b, x, x - b.square() + noise[1]], -1)
    altered = torch.tensor([True, True, False, False]).expand(rows, 4).clone()
    return Table(("a", "b", "X", "Y"), values, altered)


@cache
def fitted_pair(rows: int = 16, phi: str = "heteroskedastic", decoder: str = "closed_form") -> ExogenousModel:
    """A model of so many rows; not to be changed."""
    return fit(ExogenousModel(PAIR, phi=phi, decoder=decoder), pair_table(rows))  # type: ignore[arg-type]
