"""What is left of the states in a model's noise: how well the noise that it abducts can be predicted.

A model of transitions explains the next state by state and action; the rest, which it abducts as noise, is
kept in every counterfactual. If that rest can itself be predicted from state and action, it is no noise but
error of the model: it would have been another under other actions, and a replay carries it on as if it were
not.

The noise of the members, in standard deviations, is averaged for each state, predicted by boosted trees that
are fitted to training rows, and compared on the rows of units that were held out:

    R2_i = 1 - sum (u_i - predicted u_i)^2 / sum (u_i - mean u_i)^2,

0 or below for noise, above 0 for error. `objectives.sequences.model_error` refuses to recommend from it.

Source: Hastie, Tibshirani and Friedman (2009), Ch. 10 (boosted trees); residuals that covariates predict as a
check of a model: Cox and Snell (1968); its use for counterfactuals is ours.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from rehearsal_torch.data.part import Part, Sizes
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.blocks import Blocks
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate

ROWS = 5_000
"""Rows, evenly spaced, to which the trees are fitted and on which they are compared, at most."""
FEWEST = 100
"""Held-out rows below which nothing is said: an R2 of fewer is chance."""


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


def predictable_noise(
    surrogate: EpisodeSurrogate, rows: Callable[[], Table | Blocks[Table]], held_out: Table | None
) -> Tensor:
    """R2 of each state's noise on held-out rows.

    Args:
        surrogate: The fitted model.
        rows: Gives the transitions to which it was fitted; of blocks, the first one is taken.
        held_out: Transitions of units that it was not fitted to, (m, ...); None if there are none.

    Returns:
        (D,) float64, rounded to three places, in the order of `surrogate.names`; (0,) if it is not known:
        there are fewer than 100 held-out rows, or the model abducts no noise from rows.
    """
    unknown = torch.empty(0, dtype=torch.float64)
    if held_out is None or len(held_out) < FEWEST:
        return unknown
    given = rows()
    table = next(iter(given)) if isinstance(given, Blocks) else given
    fitted, judged = (surrogate.noise(_some(each)) for each in (table, held_out))
    if fitted is None or judged is None:
        return unknown
    from sklearn.ensemble import HistGradientBoostingRegressor

    spread = fitted[1].std(0).clamp_min(torch.finfo(torch.float64).tiny)
    (inputs, noise), (others, there) = (
        (x.numpy(), (u / spread).mean(1).numpy()) for x, u in (fitted, judged)
    )
    found = []
    for place in range(noise.shape[1]):
        trees = HistGradientBoostingRegressor(random_state=0).fit(inputs, noise[:, place])
        left = ((there[:, place] - trees.predict(others)) ** 2).sum()
        whole = ((there[:, place] - there[:, place].mean()) ** 2).sum()
        found.append(1 - left / whole if whole else 0.0)
    return torch.tensor(found, dtype=torch.float64).round(decimals=3)


def _some(table: Table) -> Table:
    """At most `ROWS` rows, evenly spaced."""
    if len(table) <= ROWS:
        return table
    kept = torch.linspace(0, len(table) - 1, ROWS, dtype=torch.float64).long()
    return Table(table.names, table.values[kept], table.altered[kept])
