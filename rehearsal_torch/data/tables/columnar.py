"""Parquet and Feather files, read by pyarrow. Lines in messages count the rows from 2, as in a plain file.

Categories and text are text, dates are text as well, decimal numbers are numbers.

Source: Apache Parquet and Apache Arrow (Feather) for the formats.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from rehearsal_torch.data.tables.frame import (
    BYTES,
    CELLS,
    EXTRA,
    ReadTable,
    TableError,
    few_columns,
    header_faults,
    plain_cell,
    refused_or_collected,
)

COLUMNAR = (".parquet", ".feather", ".arrow")


def read_columnar(file: Path, faults: list[str] | None = None) -> ReadTable:
    """Reads a Parquet or Feather file.

    Args:
        file: The file; at most 2 GiB in memory.
        faults: Collects faults of the header instead of raising for them.

    Raises:
        TableError: if pyarrow is not installed, the file is no such file, or it is too large.
        OSError: if the file cannot be read.
    """
    kind = "Parquet" if file.suffix.lower() == ".parquet" else "Feather"
    pa = parquet_reader(file, kind)
    with file.open("rb"):  # an error of the operating system, before pyarrow says it in its own words
        pass
    with damaged(pa, file, kind):
        table = _parquet(pa, file) if kind == "Parquet" else _feather(pa, file)
        names = [str(name) for name in table.column_names]
        few_columns(len(names), str(file))
        frame = arrow_cells(table)
    refused_or_collected(header_faults(names, frame), str(file), faults)
    frame.columns = pd.Index(names)
    frame = frame.loc[:, ~frame.columns.duplicated()]
    kept = frame[~frame.isna().all(axis=1)] if frame.shape[1] else frame
    # pandas writes an index without a name under this name: it is no variable.
    return ReadTable(
        kept.drop(columns=[name for name in names if name.startswith("__index_level_")]), str(file)
    )


def parquet_reader(file: Path, kind: str) -> Any:
    """The package pyarrow, imported.

    Args:
        file: The file that it is to read.
        kind: Parquet or Feather, for the message.

    Raises:
        TableError: if it is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.ipc
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise TableError(
            f"{file} is a {kind} file, and pyarrow, which reads it, is not installed: type {EXTRA}, or write "
            "it as CSV"
        ) from error
    return pa


@contextmanager
def damaged(pa: Any, file: Path, kind: str) -> Iterator[None]:
    """Turns errors of pyarrow into one about the file.

    Raises:
        TableError: if pyarrow cannot read it.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(
            f"{file} is not a {kind} file, or is damaged ({' '.join(str(error).split())[:100]}): write it "
            "again, or write it as CSV"
        ) from error


def arrow_cells(table: Any) -> pd.DataFrame:
    """The cells of a table of Arrow, with numbers for the names of columns: numbers and truth values as they
    are, all else as text.

    Raises:
        ValueError: if the table is damaged.
    """
    # Lengths and offsets of a damaged file may lead outside its buffers.
    table.validate(full=True)
    # What pandas wrote about itself is not needed, and not trusted.
    bare = table.replace_schema_metadata(None)
    frame: pd.DataFrame = bare.to_pandas(timestamp_as_object=True, date_as_object=True)
    frame = frame.set_axis(range(frame.shape[1]), axis=1)
    for place in frame.columns:
        if frame[place].dtype.kind not in "biuf":
            frame[place] = frame[place].astype(object).map(plain_cell).infer_objects()
    return frame


def _parquet(pa: Any, file: Path) -> Any:
    with pa.parquet.ParquetFile(file) as opened:
        about = opened.metadata
        size = sum(about.row_group(place).total_byte_size for place in range(about.num_row_groups))
        _bounded(file, size, about.num_rows * max(about.num_columns, 1))
        return opened.read()


def _feather(pa: Any, file: Path) -> Any:
    with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as opened:
        batches, size, cells = [], 0, 0
        for place in range(opened.num_record_batches):
            batch = opened.get_batch(place)
            size += batch.nbytes
            cells += batch.num_rows * max(batch.num_columns, 1)
            _bounded(file, size, cells)
            batches.append(batch)
        return pa.Table.from_batches(batches, opened.schema)


def _bounded(file: Path, size: int, cells: int) -> None:
    if size > BYTES or cells > CELLS:
        raise TableError(
            f"{file}: expected at most {BYTES // 2**30} GiB and {CELLS} cells; there are more: keep the "
            "columns that are needed"
        )
