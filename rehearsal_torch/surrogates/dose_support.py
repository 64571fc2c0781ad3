"""Comparable steps (positivity): the number of training units that had a dose in a similar state.

A model extrapolates to doses, or combinations of doses, that no unit had in such a state. The recorded steps
are divided into cells by k-means of their standardised states, with static and contextual features. Steps of
one cell are comparable; a state farther from its centre than all recorded ones is comparable with none. Doses
are counted in pairs, as two may each be usual and never be given at once, and a unit counts once in a cell.
The number of cells is halved from 256 until nine tenths of the given pairs have five other units with the
same pair in the same cell: the count then measures the support of doses that were not given. No row is
stored, only the cells' centres, radii and counts.

Source: Petersen et al. (2012) (positivity); Lloyd (1982) (k-means); the rule is ours.
"""

from itertools import combinations

import torch
from torch import Tensor

from rehearsal_torch.data.dose_levels import DoseLevels
from rehearsal_torch.data.trainable_part import Solved

# The most rows that are counted, about; the most for k-means; and the fewest of these for a cell.
KEPT, PLACING, EACH = 100_000, 5_000, 20
CELLS, OTHERS, SHARE = 256, 5, 0.9


class ComparableSteps(Solved):
    """Cells of steps with `features` columns, and counts of units for each two levels of a pair of doses."""

    needed = False

    def __init__(self, features: int, doses: DoseLevels) -> None:
        super().__init__()
        self._doses, count = (doses,), len(doses.names)  # a part of the surrogate, not of this one
        # A single dose makes a pair with itself.
        self.pairs = list(combinations(range(count), 2)) if count > 1 else [(0, 0)]
        cells = ("k", len(self.pairs) * doses.count**2)
        self.register_fitted(source=True, centre=(features,), spread=(features,), middles=("k", features))
        self.register_fitted(source=True, reach=("k",), units=cells)

    def faults(self) -> list[str]:
        """Inconsistent sizes, missing buffers, and negative numbers."""
        faults, parts = super().faults(), ("centre", "spread", "middles", "reach", "units")
        present = [name for name in parts if len(self.get_buffer(name))]
        if len(present) < len(parts):
            missing = ", ".join(name for name in parts if name not in present)
            faults.append(f"{missing}: expected numbers, as for the other parts of the cells; got none")
        low = {"spread": self.spread <= 0, "units": self.units < 0, "reach": self.reach < 0}
        return faults + [f"{name}: a number is too low" for name, mask in low.items() if bool(mask.any())]

    def solve(self, *examples: Tensor) -> None:
        """Fits to features (n, d), actions (n,), and whether a row is the first of its unit, (n,) bool."""
        from sklearn.cluster import KMeans

        features, actions, begins = examples
        spread = features.std(0, correction=0)
        self.centre, self.spread = features.mean(0), torch.where(spread > 0, spread, 1.0)
        z, unit = (features - self.centre) / self.spread, begins.cumsum(0) - 1
        levels, width, units = self.codes(actions), self._sizes["units"][1], int(unit[-1]) + 1
        assert isinstance(width, int)
        treated = levels > 0
        levels = levels + torch.arange(len(self.pairs), device=z.device) * (width // len(self.pairs))
        places = torch.linspace(0, len(z) - 1, min(PLACING, len(z)), dtype=torch.float64).long()
        sample = z[places.to(z.device)].cpu()
        cells = max(1, min(CELLS, len(sample) // EACH, len(sample.unique(dim=0))))
        while True:
            # The cells need not be optimal: one start is enough.
            clusters = KMeans(cells, n_init=1, max_iter=25, random_state=0).fit(sample.numpy())
            self.middles = torch.from_numpy(clusters.cluster_centers_).to(z)
            distance, cell = self._nearest_cell(z)
            self.reach = distance.new_zeros(cells).scatter_reduce(0, cell, distance, "amax")
            occurrences = (cell.unsqueeze(1) * width + levels) * units + unit.unsqueeze(1)
            counts = torch.bincount(occurrences.unique() // units, minlength=cells * width)
            self.units = counts.view(cells, width).to(z)
            supported = self.units[cell].gather(1, levels)[treated] > OTHERS
            if cells == 1 or float(supported.double().mean()) >= SHARE:
                return
            cells //= 2

    def codes(self, actions: Tensor) -> Tensor:
        """The levels of each pair of doses as one number, (...) long -> (..., P): 0 for neither."""
        (doses,) = self._doses
        levels = doses.levels(actions)
        first, second = (levels[..., list(positions)] for positions in zip(*self.pairs, strict=True))
        return first * doses.count + second

    def counts(self, features: Tensor) -> Tensor:
        """Units that had each two levels of each pair in a comparable step, (T, d) -> (T, P, LL) long."""
        distance, cell = self._nearest_cell((features.to(self.centre) - self.centre) / self.spread)
        near = distance <= self.reach[cell] * (1 + 1e-9)
        return (self.units[cell] * near.unsqueeze(1)).long().unflatten(1, (len(self.pairs), -1))

    def _nearest_cell(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The distance to the nearest centre, and its cell, (n,) each."""
        blocks = [torch.cdist(block, self.middles).min(1) for block in z.split(8192)]
        return torch.cat([block.values for block in blocks]), torch.cat([block.indices for block in blocks])
