"""Rows of numbers on disk: one after the other in a file, read again from any row on.

    values.f64      d numbers of 8 bytes for each row

The file is read, not mapped, so that what is in memory is what was asked for alone. It lies in a folder of
its own, and is deleted with its object and with the blocks that are read from it.

Source: ours.
"""

import shutil
import tempfile
import weakref
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.blocks import ROWS, Blocks

BYTES = 8


class RowSpool:
    """Rows of d numbers on disk.

    Args:
        names: The d columns.
        scratch: The folder for the file, which lies in a new folder there; None for the system's own folder
            of temporary files.
        prefix: The beginning of the new folder's name.

    Attributes:
        count: The number of rows.

    Raises:
        OSError: if the file cannot be written.
    """

    def __init__(
        self, names: tuple[str, ...], scratch: str | Path | None = None, prefix: str = "rows-"
    ) -> None:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=scratch))
        self.close = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.names, self.file, self.count = names, folder / "values.f64", 0

    def append(self, values: Tensor) -> None:
        """Adds rows (n, d) to the end.

        Raises:
            OSError: if they cannot be written, as on a full disk.
        """
        with self.file.open("ab") as out:
            out.write(values.numpy().astype("<f8").tobytes())
        self.count += len(values)

    def read(self, begin: int, rows: int) -> Tensor:
        """Rows from `begin` on, (rows, d).

        Raises:
            OSError: if the file has fewer.
        """
        width = len(self.names)
        flat = np.fromfile(self.file, dtype="<f8", count=rows * width, offset=begin * width * BYTES)
        if len(flat) != rows * width:
            raise OSError(f"{self.file} is shorter than it was written: was it changed?")
        return torch.from_numpy(flat.astype(np.float64, copy=False).reshape(rows, width))

    def blocks(self, rows: int = ROWS) -> Blocks[Table]:
        """All rows in blocks, as observations.

        Args:
            rows: Rows of a block; the last one may be smaller.
        """
        begins = range(0, self.count, rows)
        counts = [min(rows, self.count - begin) for begin in begins]
        return Blocks(
            counts,
            lambda place: Table.observed(self.names, self.read(begins[place], counts[place])),
        )
