"""Comparable steps: how many units had a dose in a step like this one.

A model continues its form to doses that nobody had in such a state. The steps of the records are divided into
cells by k-means of their states, with static and contextual features, in standard deviations; steps of one
cell are comparable. There are as many cells, halving from 256, as leave nine tenths of the doses that were
given with five other units that had the same level in the same cell: of a dose that was not given in a step,
the number of units that had it in the cell says how much is known of it. A unit counts once in a cell. What
is kept is no row: the middles of the cells, and numbers of units.

Source: Petersen et al. (2012) (positivity); Lloyd (1982) (k-means); the rule is ours.
"""

import torch
from torch import Tensor

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.part import Solved

# Rows that are counted, at most about; those that place the cells; and the fewest of them for a cell.
KEPT, PLACING, EACH = 100_000, 5_000, 20
CELLS, OTHERS, SHARE = 256, 5, 0.9


class ComparableSteps(Solved):
    """The cells of a table's steps, and how many units had each level of each dose in them.

    Args:
        features: Width of the state with static and contextual features.
        doses: The levels of the actions.
    """

    needed = False

    def __init__(self, features: int, doses: DoseLevels) -> None:
        super().__init__()
        self._doses = (doses,)  # a part of the surrogate, not of this one
        self.register_fitted(
            source=True,
            centre=(features,),
            spread=(features,),
            middles=("k", features),
            units=("k", len(doses.names) * doses.count),
        )

    def solve(self, *examples: Tensor) -> None:
        """Divides features (n, d), and counts actions (n,); (n,) bool says which rows begin a unit."""
        from sklearn.cluster import KMeans

        (features, actions, begins), (doses,) = examples, self._doses
        spread = features.std(0, correction=0)
        self.centre, self.spread = features.mean(0), torch.where(spread > 0, spread, 1.0)
        z, unit = (features - self.centre) / self.spread, begins.cumsum(0) - 1
        first = torch.arange(len(doses.names), device=z.device) * doses.count
        levels, width, units = doses.levels(actions) + first, len(first) * doses.count, int(unit[-1]) + 1
        given = levels > first
        row = torch.linspace(0, len(z) - 1, min(PLACING, len(z)), dtype=torch.float64).long()
        shown = z[row.to(z.device)].cpu()
        cells = max(1, min(CELLS, len(shown) // EACH, len(shown.unique(dim=0))))
        while True:
            # One start is enough: the cells need not be the best ones.
            found = KMeans(cells, n_init=1, max_iter=25, random_state=0).fit(shown.numpy())
            self.middles = torch.from_numpy(found.cluster_centers_).to(z)
            cell = self._cell(z)
            every = (cell.unsqueeze(1) * width + levels) * units + unit.unsqueeze(1)
            self.units = (
                torch.bincount(every.unique() // units, minlength=cells * width).view(cells, -1).to(z)
            )
            supported = self.units[cell].gather(1, levels)[given] > OTHERS
            if cells == 1 or float(supported.double().mean()) >= SHARE:
                return
            cells //= 2

    def counts(self, features: Tensor) -> Tensor:
        """In how many units each dose had each level in a comparable step, (T, d) -> (T, p, L) long."""
        (doses,) = self._doses
        cell = self._cell((features.to(self.centre) - self.centre) / self.spread)
        return self.units[cell].long().unflatten(1, (len(doses.names), doses.count))

    def _cell(self, z: Tensor) -> Tensor:
        return torch.cat([torch.cdist(part, self.middles).argmin(1) for part in z.split(8192)])
