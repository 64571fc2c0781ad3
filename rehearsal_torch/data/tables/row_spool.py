"""Rows of numbers on disk: one after the other in a file, read again from any row on.

    d numbers of 8 bytes for each row

The file is read, not mapped, so that what is in memory is what was asked for alone. It is a temporary file
without a name (`tempfile.TemporaryFile`): where the system knows such files, it is gone with the process,
however that ends, and no other user can open it. It is closed with its object and with the blocks that are
read from it.

Source: ours.
"""

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
        scratch: The folder for the file; None for the system's own folder of temporary files.

    Attributes:
        count: The number of rows.
        file: The open file.

    Raises:
        OSError: if the file cannot be made.
    """

    def __init__(self, names: tuple[str, ...], scratch: str | Path | None = None) -> None:
        self._folder = str(scratch or tempfile.gettempdir())
        self.file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 (open as long as the object)
        self.close = weakref.finalize(self, self.file.close)
        self.names, self.count = names, 0

    def append(self, values: Tensor) -> None:
        """Adds rows (n, d) to the end.

        Raises:
            OSError: if they cannot be written, as on a full disk.
        """
        self.file.seek(self.count * len(self.names) * BYTES)
        try:
            self.file.write(values.numpy().astype("<f8").tobytes())
            self.file.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._folder) from error
        self.count += len(values)

    def read(self, begin: int, rows: int) -> Tensor:
        """Rows from `begin` on, (rows, d).

        Raises:
            OSError: if the file has fewer.
        """
        width = len(self.names)
        content = bytearray(rows * width * BYTES)
        self.file.seek(begin * width * BYTES)
        if self.file.readinto(content) != len(content):
            raise OSError(
                f"a temporary file in {self._folder} is shorter than it was written: was it changed?"
            )
        values = np.frombuffer(content, dtype="<f8").reshape(rows, width)
        return torch.from_numpy(values.astype(np.float64, copy=False))

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
