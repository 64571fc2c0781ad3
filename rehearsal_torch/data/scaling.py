"""Scaling of columns: standardisation, and min-max scaling with optional logarithms.

`Standardise` transforms every column to mean zero and standard deviation one. `Rescale` transforms a column v
with training range [lower, upper] to

    x = (v - lower) / (upper - lower) - 1/2,

optionally after a logarithm, log(v + 1). Values outside the training range are not clipped.

Source: standardisation: Qin et al. (2025), Sec. 5 (their code standardises all variables); Du et al. (2026),
Sec. 4.1; min-max scaling: Tsirtsis and Gomez-Rodriguez (2023), Sec. 5 (without logarithms).
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.records import positions
from rehearsal_torch.data.trainable_part import Sizes, Solved

CELLS = 2**24
"""The most numbers of which torch gives quantiles."""


class Standardise(Solved):
    """Column-wise standardisation z = (v - location) / scale; keeps observed ranges and deciles."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.register_fitted("location", "scale", "lowest", "highest", "first", "last")

    def solve(self, *examples: Tensor) -> None:
        """Fits means, deviations, ranges and deciles to rows (n, d); a constant column has scale one."""
        rows = examples[0].detach().to(torch.float64)
        spread = rows.std(0, correction=0)
        self.location, self.scale = rows.mean(0), torch.where(spread > 0, spread, torch.ones_like(spread))
        self.lowest, self.highest = rows.aminmax(dim=0)
        self.first, self.last = quantiles(rows, (0.1, 0.9))

    def sizes(self) -> Sizes:
        """One number per column."""
        return dict.fromkeys(self._fitted, (len(self.names),))

    def faults(self) -> list[str]:
        """Inconsistent sizes, and scales that are not positive."""
        faults = super().faults()
        if not faults and not bool((self.scale > 0).all()):
            faults.append(f"scale: expected numbers above 0; got {self.scale.tolist()}")
        return faults

    def moments(self, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of some variables in their units, (k,) each."""
        columns = positions(self.names, names)
        return self.location[columns], self.scale[columns]

    def standardised(self, names: Sequence[str], values: Tensor) -> Tensor:
        """Original to standardised units, on the scaler's device, (..., len(names)) -> the same shape."""
        columns = positions(self.names, names)
        return (values.to(self.scale.device) - self.location[columns]) / self.scale[columns]

    def units(self, names: Sequence[str], standardised: Tensor) -> Tensor:
        """The inverse of `standardised`."""
        columns = positions(self.names, names)
        return self.location[columns] + self.scale[columns] * standardised.to(self.scale)

    def ranges(self, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """The minimum and maximum observed values, (len(names),) each."""
        columns = positions(self.names, names)
        return self.lowest[columns], self.highest[columns]

    def deciles(self, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """The first and the last decile, (len(names),) each: a range that does not grow with the rows."""
        columns = positions(self.names, names)
        return self.first[columns], self.last[columns]


class Rescale(Solved):
    """Min-max scaling to [-1/2, 1/2], of `logarithms` after log(v + 1); a KeyError for unknown ones."""

    def __init__(self, names: Sequence[str], logarithms: Sequence[str] = ()) -> None:
        super().__init__()
        self.names = tuple(names)
        logged = torch.zeros(len(self.names), dtype=torch.bool)
        logged[positions(self.names, logarithms)] = True
        self.register_buffer("logged", logged, persistent=False)
        self.register_fitted("lower", "upper")

    def solve(self, *examples: Tensor) -> None:
        """Fits the range of each column to rows (n, d), in the columns' units."""
        (values,) = examples
        worst = values[:, self.logged].amin(0) if self.logged.any() else values.new_ones(1)
        if (worst <= -1).any():
            expected = "expected values above -1 in log-transformed columns"
            raise ValueError(f"{expected}; remove the logarithm or clean the column")
        shown = self._logarithm(values.to(torch.float64))
        self.lower, self.upper = shown.amin(0), shown.amax(0)

    def sizes(self) -> Sizes:
        """`lower` and `upper` with one number per column."""
        return dict.fromkeys(("lower", "upper"), (len(self.names),))

    def faults(self) -> list[str]:
        """Inconsistent sizes, and ranges with lower > upper."""
        faults = super().faults()
        if not faults and bool((self.upper < self.lower).any()):
            ranges = f"{self.lower.tolist()} and {self.upper.tolist()}"
            faults.append(f"upper: expected lower <= upper; got {ranges}")
        return faults

    def fix(self, ranges: Mapping[str, Sequence[float]]) -> "Rescale":
        """Sets the ranges instead: of each column finite (lower, upper), before any logarithm."""
        lacking = [name for name in self.names if name not in ranges]
        unknown = [name for name in ranges if name not in self.names]
        if lacking or unknown:
            fault = f"none for {lacking}, and {unknown} are not columns of the model"
            raise ValueError(f"expected a range for each of {', '.join(self.names)}; {fault}")
        ends = [torch.as_tensor(ranges[name], dtype=torch.float64) for name in self.names]
        for name, pair in zip(self.names, ends, strict=True):
            if pair.shape != (2,) or not bool(pair.isfinite().all()) or not float(pair[0]) < float(pair[1]):
                expected = "expected a finite range (lower, upper) with lower < upper"
                raise ValueError(f"{name}: {expected}; got {pair.tolist()}")
        pairs = torch.stack(ends, -1)
        if bool((pairs[0, self.logged] <= -1).any()):
            raise ValueError("expected ranges above -1 in log-transformed columns; remove the logarithm")
        self.lower, self.upper = self._logarithm(pairs)
        return self

    @property
    def width(self) -> Tensor:
        """(d,), upper - lower; one for a column of one value."""
        span = self.upper - self.lower
        return torch.where(span > 0, span, torch.ones_like(span))

    def scale(self, values: Tensor) -> Tensor:
        """Original units to scaled values, (..., d) -> (..., d)."""
        return (self._logarithm(values) - self.lower.to(values)) / self.width.to(values) - 0.5

    def unscale(self, boxed: Tensor) -> Tensor:
        """Scaled values to original units, (..., d) -> (..., d); the inverse of `scale`."""
        values = (boxed + 0.5) * self.width.to(boxed) + self.lower.to(boxed)
        return torch.where(self.logged.to(values.device), torch.expm1(values), values)

    def _logarithm(self, values: Tensor) -> Tensor:
        logged = self.logged.to(values.device)
        return torch.where(logged, torch.log1p(values.clamp_min(-1 + 1e-12)), values)


def quantiles(rows: Tensor, levels: Sequence[float] | Tensor) -> Tensor:
    """Quantiles of columns of rows (n, d), linear between rows (Hyndman and Fan, 1996), (levels, d)."""
    levels = torch.as_tensor(levels, dtype=rows.dtype, device=rows.device)
    if rows.numel() <= CELLS:
        return torch.quantile(rows, levels, dim=0)
    ranks = levels * (len(rows) - 1)
    below, above = ranks.long(), ranks.ceil().long()
    ranked = (column.sort().values for column in rows.mT)
    return torch.stack([column[below].lerp(column[above], ranks - below) for column in ranked], -1)
