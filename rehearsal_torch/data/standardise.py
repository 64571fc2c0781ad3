"""Standardisation: every column with mean zero and standard deviation one, and back.

Source: Qin et al. (2025), Sec. 5 (their code standardises all variables); Du et al. (2026), Sec. 4.1.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.fitted import Sizes, Solved
from rehearsal_torch.data.table import positions


class Standardise(Solved):
    """Column-wise z = (v - location) / scale; remembers the observed ranges and first and last deciles as well.

    Args:
        names: The d columns.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.register_fitted("location", "scale", "lowest", "highest", "first", "last")
        self.location: Tensor
        self.scale: Tensor
        self.lowest: Tensor
        self.highest: Tensor
        self.first: Tensor
        self.last: Tensor

    def solve(self, *examples: Tensor) -> None:
        """Learns means, standard deviations and ranges of rows (n, d); a constant column has scale one."""
        (values,) = examples
        values = values.detach().to(torch.float64)
        spread = values.std(0, correction=0)
        self.location, self.scale = values.mean(0), torch.where(spread > 0, spread, torch.ones_like(spread))
        self.lowest, self.highest = values.amin(0), values.amax(0)
        self.first, self.last = torch.quantile(values, values.new_tensor([0.1, 0.9]), dim=0)

    def sizes(self) -> Sizes:
        """A number for each column."""
        return dict.fromkeys(self._fitted, (len(self.names),))

    def faults(self) -> list[str]:
        """Sizes, and scales that are not positive."""
        found = super().faults()
        return found or ([] if bool((self.scale > 0).all()) else [f"scale: expected numbers above 0; got {self.scale.tolist()}"])

    def shown(self, names: Sequence[str], values: Tensor) -> Tensor:
        """Units to standard deviations from the mean, (..., len(names)) -> the same."""
        place = positions(self.names, names)
        return (values - self.location[place]) / self.scale[place]

    def units(self, names: Sequence[str], shown: Tensor) -> Tensor:
        """The inverse of `shown`."""
        place = positions(self.names, names)
        return self.location[place] + self.scale[place] * shown.to(self.scale)

    def ranges(self, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """The least and the largest observed values, (len(names),) each."""
        place = positions(self.names, names)
        return self.lowest[place], self.highest[place]

    def deciles(self, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """The first and the last decile of the observed values, (len(names),) each: a range that does not grow with the number of rows."""
        place = positions(self.names, names)
        return self.first[place], self.last[place]
