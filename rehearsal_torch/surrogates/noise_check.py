"""What is left of the states in a model's noise: how well the noise that it abducts can be predicted.

A model of transitions explains the next state by state and action; the rest, which it abducts as noise, is
kept in every counterfactual. If that rest can itself be predicted from state and action, it is no noise but
error of the model: it would have been another under other actions, and a replay carries it on as if it were
not.

The noise of the members, in standard deviations, is averaged for each state, predicted by boosted trees that
are fitted to training rows, and compared on the rows of units that were held out:

    R2_i = 1 - sum (u_i - predicted u_i)^2 / sum (u_i - mean u_i)^2,

0 or below for noise, above 0 for error. `claims.sequences` refuses to recommend from it.

Source: Hastie, Tibshirani and Friedman (2009), Ch. 10 (boosted trees); residuals that covariates predict as a
check of a model: Cox and Snell (1968); its use for counterfactuals is ours.
"""

import torch
from torch import Tensor

from rehearsal_torch.data.part import Part, Sizes
from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate

ROWS = 5_000
"""Rows, evenly spaced, to which the trees are fitted and on which they are compared, at most."""
FEWEST = 100
"""Rows of either kind below which nothing is said: an R2 of fewer is chance, and trees do not split them."""


class NoiseCheck(Part):
    """R2 of each state's noise, kept with the model; empty if it is not known, as in earlier files.

    Attributes:
        shares: (D,) float64, or (0,).
    """

    needed = False
    shares: Tensor

    def __init__(self, states: int) -> None:
        super().__init__()
        self.states = states
        self.register_fitted("shares", source=True)

    def sizes(self) -> Sizes:
        """One number for each state."""
        return {"shares": (self.states,)}


def predictable_noise(surrogate: EpisodeSurrogate, rows: Table | None, held_out: Table | None) -> Tensor:
    """R2 of each state's noise on held-out rows; rows whose noise is not finite are left out.

    Args:
        rows: Transitions to which it was fitted, (n, ...); None if there are none.
        held_out: Transitions of units that it was not fitted to, (m, ...); None if there are none.

    Returns:
        (D,) float64, rounded to three places, in the order of `surrogate.names`; (0,) if it is not known:
        there are fewer than 100 rows of either kind, their noise is beyond arithmetic, or the model abducts
        no noise from rows.
    """
    unknown = torch.empty(0, dtype=torch.float64)
    if rows is None or held_out is None:
        return unknown
    fitted, judged = (_finite(surrogate, sample(each)) for each in (rows, held_out))
    if fitted is None or judged is None:
        return unknown
    from sklearn.ensemble import HistGradientBoostingRegressor

    spread = fitted[1].std(0).clamp_min(torch.finfo(torch.float64).tiny)
    (inputs, noise), (others, there) = ((x, (u / spread).mean(1)) for x, u in (fitted, judged))
    if not bool(spread.isfinite().all()):
        return unknown
    found = []
    for place in range(noise.shape[1]):
        trees = HistGradientBoostingRegressor(random_state=0).fit(inputs.numpy(), noise[:, place].numpy())
        guess = torch.from_numpy(trees.predict(others.numpy()))
        left = (there[:, place] - guess).square().sum()
        whole = (there[:, place] - there[:, place].mean()).square().sum()
        found.append(1 - left / whole if whole else torch.zeros_like(whole))
    shares = torch.stack(found).to(torch.float64).round(decimals=3)
    return shares if bool(shares.isfinite().all()) else unknown


def sample(table: Table) -> Table:
    """A copy of at most `ROWS` rows, evenly spaced."""
    kept = torch.linspace(0, len(table) - 1, min(ROWS, len(table)), dtype=torch.float64).long()
    return Table(table.names, table.values[kept], table.altered[kept])


def _finite(surrogate: EpisodeSurrogate, table: Table) -> tuple[Tensor, Tensor] | None:
    """Inputs and noise of the rows in which all of it is finite; None if they are too few, or abduct none."""
    found = surrogate.noise(table)
    if found is None:
        return None
    inputs, noise = found
    kept = inputs.isfinite().all(-1) & noise.isfinite().flatten(1).all(-1)
    return (inputs[kept], noise[kept]) if int(kept.sum()) >= FEWEST else None
