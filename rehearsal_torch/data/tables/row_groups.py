"""Parquet files of any size, read in parts of some ten thousand rows.

A folder of Parquet files is one table, in the order of the files' names. Only the columns that are wanted are
read, and a part at a time is in memory. Cells become what they become of a file that is read at once
(`data.tables.columnar`). The index of a part is the number of the row in its file, from 0.

Source: Apache Parquet, file format (row groups).
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd

from rehearsal_torch.data.tables.columnar import (
    ROWS,
    arrow_cells,
    damaged,
    parquet_file,
    parquet_reader,
    plain_texts,
    unpacked,
)
from rehearsal_torch.data.tables.frame import TableError, bounded, few_columns, header_faults


def parquet_files(path: str | Path) -> list[Path]:
    """The files of a table: the file itself, or the Parquet files of a folder, by name.

    Raises:
        TableError: if there is no such file or folder, it is no Parquet file, or the folder has none.
    """
    given = Path(path)
    if given.is_dir():
        found = sorted(each for each in given.iterdir() if each.suffix.lower() == ".parquet")
        if not found:
            raise TableError(f"there is no Parquet file in {given}: expected files *.parquet")
        return found
    if not given.is_file():
        raise TableError(f"there is no file {given}: check path=, which is relative to the current folder")
    if given.suffix.lower() != ".parquet":
        raise TableError(
            f"{given}: only Parquet files are read in parts; got {given.suffix or 'no ending'}: write it as "
            "Parquet, episodes sorted by unit and time"
        )
    return [given]


def columns_and_rows(path: str | Path) -> list[tuple[str, list[str], int]]:
    """The name, the columns and the number of rows of each file of a table; no row is read.

    Args:
        path: A Parquet file, or a folder of them.

    Raises:
        TableError: as `read_parts` does.
        OSError: if a file cannot be read.
    """
    found = []
    for file in parquet_files(path):
        with file.open("rb"):
            pass
        pa = parquet_reader(file, "Parquet")
        with damaged(pa, file, "Parquet"), pa.parquet.ParquetFile(file) as opened:
            names = [str(name) for name in opened.schema_arrow.names]
            found.append((str(file), names, int(opened.metadata.num_rows)))
    return found


def read_parts(
    path: str | Path, wanted: Sequence[str], rows: int = ROWS
) -> Iterator[tuple[str, pd.DataFrame]]:
    """The parts of a table, each with the name of its file.

    Args:
        path: A Parquet file, or a folder of them.
        wanted: The columns to read; those that a file lacks are left out.
        rows: Rows of a part, at most.

    Yields:
        The file, and at least one row of it. Rows without any value are left out.

    Raises:
        TableError: if pyarrow is not installed, a file is damaged, or two of its columns have one name.
        OSError: if a file cannot be read.
    """
    for file in parquet_files(path):
        with file.open("rb"):  # an error of the operating system, before pyarrow says it in its own words
            pass
        pa = parquet_reader(file, "Parquet")
        begun = 0
        with damaged(pa, file, "Parquet"), ExitStack() as held:
            opened, most = parquet_file(pa, file)
            held.enter_context(opened)
            names = [str(name) for name in opened.schema_arrow.names]
            few_columns(len(names), str(file))
            kept = [name for name in dict.fromkeys(wanted) if name in names]
            twice = [name for name in names if name in kept]
            faults = header_faults(twice, pd.DataFrame(columns=range(len(twice))))
            if faults:
                raise TableError(f"{file}: {'; '.join(faults)}")
            for batch in _batches(opened, min(rows, most), kept):
                bounded(file, sum(unpacked(pa, column) for column in batch.columns), 0)
                plain = pa.Table.from_batches([plain_texts(pa, batch)])
                frame = arrow_cells(plain).set_axis(list(batch.schema.names), axis=1)
                frame.index = pd.RangeIndex(begun, begun + len(frame))
                begun += len(frame)
                frame = frame[~frame.isna().all(axis=1)] if frame.shape[1] else frame
                if len(frame):
                    yield str(file), frame


def _batches(opened: Any, rows: int, columns: Sequence[str]) -> Iterator[Any]:
    """The rows of an opened file, from few row groups at a time: the reader keeps what it has read of those
    that it is given together.
    """
    together, waiting = list[int](), 0
    for group in range(opened.metadata.num_row_groups):
        together.append(group)
        waiting += opened.metadata.row_group(group).num_rows
        if waiting >= rows or group == opened.metadata.num_row_groups - 1:
            yield from opened.iter_batches(batch_size=rows, row_groups=together, columns=list(columns))
            together, waiting = [], 0
