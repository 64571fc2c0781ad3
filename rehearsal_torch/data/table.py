"""Tables: observations over named variables, with a mask of the cells set by interventions.

Observational and interventional data share one form: rows over the same variables, some of whose cells a
decision set instead of their mechanism. A mechanism is fitted to the rows in which its variables were not.

Source: Qin et al. (2023), Sec. 4.1 (updating on altered rounds).
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rehearsal_torch.data import records
from rehearsal_torch.data.records import Records, positions

if TYPE_CHECKING:
    import pandas as pd

BITS = 32  # Of a value, relative to the largest of its column, in a fingerprint.
ROWS = 65_536  # Rows that are hashed at a time.


@dataclass(frozen=True)
class Table:
    """n rows over d named variables. A ValueError if the shapes disagree, or a name is repeated.

    Attributes:
        values: (n, d), each column in its variable's unit.
        altered: (n, d), true where a decision or a filling in, not the mechanism, set the cell.
        units: The number of the unit (a patient, a store) of each row, (n,) long; None if rows stand alone.
        places: Where each row stood when they were recorded, (n,) long; None if they stand in that order.
    """

    names: tuple[str, ...]
    values: Tensor
    altered: Tensor
    units: Tensor | None = field(default=None, kw_only=True)
    places: Tensor | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"a table names each column once; got {self.names}")
        shape, marked = tuple(self.values.shape), tuple(self.altered.shape)
        if len(shape) != 2 or shape[1] != len(self.names):
            raise ValueError(f"expected values of shape (n, {len(self.names)}); got {shape}")
        if marked != shape:
            raise ValueError(f"expected `altered` of shape {shape}; got {marked}")
        for noun, numbers in (("unit", self.units), ("place", self.places)):
            if numbers is not None and tuple(numbers.shape) != shape[:1]:
                raise ValueError(f"expected a {noun} for each of {shape[0]} rows; got {tuple(numbers.shape)}")

    @classmethod
    def observed(cls, names: Sequence[str], values: Tensor) -> "Table":
        """Rows (n, d) in which nothing was altered."""
        return cls(tuple(names), values, torch.zeros_like(values, dtype=torch.bool))

    @classmethod
    def from_frame(
        cls, frame: Any, names: Sequence[str] | None = None, called: str = "the data frame"
    ) -> "Table":
        """A table from a frame of pandas, polars or pyarrow; truth values count as 1 and 0, and a column
        ``set:NAME`` marks with 1 what a decision set. A TableError lists missing and repeated columns and
        cells that are no finite numbers, each with its first line (the header is line 1).
        """
        from rehearsal_torch.data.tables.in_memory import cells_of

        chosen, *cells = cells_of(frame, None if names is None else tuple(names), called)
        return cls(chosen, *map(torch.from_numpy, cells))

    def to_frame(self) -> "pd.DataFrame":
        """The table as a data frame of pandas, with columns ``set:NAME`` for cells that were set."""
        from rehearsal_torch.data.tables.in_memory import frame_of

        cells = (tensor.detach().cpu().numpy() for tensor in (self.values, self.altered))
        return frame_of(self.names, *cells)

    def __len__(self) -> int:
        return len(self.values)

    def to(self, device: torch.device | str) -> "Table":
        """The table on a device; itself where it is there."""
        if self.values.device == self.altered.device == torch.device(device):
            return self
        units, places = (
            None if numbers is None else numbers.to(device) for numbers in (self.units, self.places)
        )
        return Table(self.names, self.values.to(device), self.altered.to(device), units=units, places=places)

    def rows(self, which: Tensor | slice) -> "Table":
        """Some rows, by their numbers (m,), a mask (n,) or a slice, as a table."""
        units, places = (None if numbers is None else numbers[which] for numbers in (self.units, self.places))
        return Table(self.names, self.values[which], self.altered[which], units=units, places=places)

    def as_recorded(self) -> "Table":
        """The rows in the order in which they were recorded."""
        return self if self.places is None else self.rows(self.places.argsort())

    def records(self) -> Records:
        """The rows as NumPy's numbers."""
        places = None if self.places is None else self.places.cpu().numpy()
        values = self.values.detach().cpu().double().numpy()
        return Records(self.names, values, places, altered=self.altered.cpu().numpy())

    def columns(self, names: Sequence[str]) -> Tensor:
        """The named columns in the given order, (n, len(names))."""
        return self.values[:, positions(self.names, names)]

    def unaltered(self, names: Sequence[str]) -> "Table":
        """The rows in which none of `names` was altered."""
        keep = ~self.altered[:, positions(self.names, names)].any(-1)
        return self.rows(keep)

    def __add__(self, other: "Table") -> "Table":
        """The rows of both, which have the same columns."""
        if self.names != other.names:
            fault = f"got {other.names}: reorder or rename the second table"
            raise ValueError(f"expected columns {self.names}; {fault}")
        values, altered = (self.values, other.values), (self.altered, other.altered)
        return Table(self.names, torch.cat(values), torch.cat(altered))

    def fingerprint(self) -> str:
        """SHA-256 over names, altered cells and values, these to 2^-32 of the largest of their column.

        Processors compute the same simulation to different last bits; such tables have equal fingerprints.
        """
        largest = torch.zeros(len(self.names), dtype=torch.float64)
        for rows in self._exact_rows():
            largest = torch.cat([largest[None], rows.nan_to_num(0.0, 0.0, 0.0).abs()]).amax(0)
        # The smallest power of two above it: a division by it is exact.
        exponent = torch.frexp(largest).exponent.clamp_min(-900) - BITS
        unit = torch.ldexp(torch.ones_like(largest), exponent)
        digest = hashlib.sha256("\0".join(self.names).encode())
        for rows in self._exact_rows():
            rounded = (rows / unit).round() * unit + 0.0
            digest.update(rounded.contiguous().numpy().tobytes())
        digest.update(self.altered.cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def _exact_rows(self) -> Iterator[Tensor]:
        """The values in float64, some rows at a time."""
        return (rows.detach().cpu().to(torch.float64) for rows in self.values.split(ROWS))


def evenly(count: int, most: int, device: torch.device | None = None) -> Tensor:
    """The places of at most `most` evenly spaced rows, the first and the last among them, (m,)."""
    return torch.from_numpy(records.evenly(count, most)).to(device)


def drawn(count: int, most: int, stream: torch.Generator) -> Tensor:
    """The places of at most `most` rows, in order: all, or as many drawn without replacement, (m,)."""
    if count <= most:
        return torch.arange(count)
    return torch.randperm(count, generator=stream)[:most].sort().values
