"""Comparable steps: how many units had a dose in a step like this one.

A model continues its form to doses that nobody had in such a state, or not together. The steps of the records
are divided into cells by k-means of their states, with static and contextual features, in standard
deviations. Steps of one cell are comparable; a state farther from its middle than those of the records is
comparable with none. Doses are counted in pairs, as two may each be usual and never be given at once, and a
unit counts once in a cell. There are as many cells, halving from 256, as leave nine tenths of the pairs that
were given with five other units that had the same in the same cell: of what was not done, the number of units
that did it then says how much is known of it. What is kept is no row: the middles of the cells, their reach,
and numbers of units.

Source: Petersen et al. (2012) (positivity); Lloyd (1982) (k-means); the rule is ours.
"""

from itertools import combinations

import torch
from torch import Tensor

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.trainable_part import Solved

# Rows that are counted, at most about; those that place the cells; and the fewest of them for a cell.
KEPT, PLACING, EACH = 100_000, 5_000, 20
CELLS, OTHERS, SHARE = 256, 5, 0.9


class ComparableSteps(Solved):
    """The cells of a table's steps, and how many units had which levels of each pair of doses in them.

    Args:
        features: Width of the state with static and contextual features.
        doses: The levels of the actions.
    """

    needed = False

    def __init__(self, features: int, doses: DoseLevels) -> None:
        super().__init__()
        self._doses, count = (doses,), len(doses.names)  # a part of the surrogate, not of this one
        # A single dose makes a pair with itself.
        self.pairs = list(combinations(range(count), 2)) if count > 1 else [(0, 0)]
        self.register_fitted(
            source=True,
            centre=(features,),
            spread=(features,),
            middles=("k", features),
            reach=("k",),
            units=("k", len(self.pairs) * doses.count**2),
        )

    def faults(self) -> list[str]:
        """Inconsistent sizes, cells of which a part is missing, and numbers that are too low."""
        found, parts = super().faults(), ("centre", "spread", "middles", "reach", "units")
        known = [name for name in parts if len(self.get_buffer(name))]
        if len(known) < len(parts):
            missing = ", ".join(name for name in parts if name not in known)
            found.append(f"{missing}: expected numbers, as for the other parts of the cells; got none")
        low = {"spread": self.spread <= 0, "units": self.units < 0, "reach": self.reach < 0}
        return found + [f"{name}: a number is too low" for name, wrong in low.items() if bool(wrong.any())]

    def solve(self, *examples: Tensor) -> None:
        """Divides features (n, d), and counts actions (n,); (n,) bool says which rows begin a unit."""
        from sklearn.cluster import KMeans

        features, actions, begins = examples
        spread = features.std(0, correction=0)
        self.centre, self.spread = features.mean(0), torch.where(spread > 0, spread, 1.0)
        z, unit = (features - self.centre) / self.spread, begins.cumsum(0) - 1
        levels, width, units = self.codes(actions), self._sizes["units"][1], int(unit[-1]) + 1
        assert isinstance(width, int)
        given = levels > 0
        levels = levels + torch.arange(len(self.pairs), device=z.device) * (width // len(self.pairs))
        row = torch.linspace(0, len(z) - 1, min(PLACING, len(z)), dtype=torch.float64).long()
        shown = z[row.to(z.device)].cpu()
        cells = max(1, min(CELLS, len(shown) // EACH, len(shown.unique(dim=0))))
        while True:
            # One start is enough: the cells need not be the best ones.
            found = KMeans(cells, n_init=1, max_iter=25, random_state=0).fit(shown.numpy())
            self.middles = torch.from_numpy(found.cluster_centers_).to(z)
            away, cell = self._cell(z)
            self.reach = away.new_zeros(cells).scatter_reduce(0, cell, away, "amax")
            every = (cell.unsqueeze(1) * width + levels) * units + unit.unsqueeze(1)
            counts = torch.bincount(every.unique() // units, minlength=cells * width)
            self.units = counts.view(cells, width).to(z)
            supported = self.units[cell].gather(1, levels)[given] > OTHERS
            if cells == 1 or float(supported.double().mean()) >= SHARE:
                return
            cells //= 2

    def codes(self, actions: Tensor) -> Tensor:
        """The levels of each pair of doses as one number, (...) long -> (..., P): 0 for none of both."""
        (doses,) = self._doses
        levels = doses.levels(actions)
        one, other = (levels[..., list(each)] for each in zip(*self.pairs, strict=True))
        return one * doses.count + other

    def counts(self, features: Tensor) -> Tensor:
        """In how many units each pair had each two levels in a comparable step, (T, d) -> (T, P, LL) long."""
        away, cell = self._cell((features.to(self.centre) - self.centre) / self.spread)
        near = away <= self.reach[cell] * (1 + 1e-9)
        return (self.units[cell] * near.unsqueeze(1)).long().unflatten(1, (len(self.pairs), -1))

    def _cell(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The distance to the nearest middle, and whose it is, (n,) each."""
        found = [torch.cdist(part, self.middles).min(1) for part in z.split(8192)]
        return torch.cat([each.values for each in found]), torch.cat([each.indices for each in found])
