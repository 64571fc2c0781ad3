"""Parquet and Feather files, read by pyarrow. Lines in messages count the rows from 2, as in a plain file.

Categories and text are text, dates are text as well, decimal numbers are numbers.

What a file takes in memory is no function of its size: a text that occurs in a million rows is stored once,
and a column that is packed may be a thousandth of what it unpacks to. Parquet says beforehand how many values
each column has and what they take encoded, and its texts are read as numbers of a list of texts, so that they
are counted before they are written out, once, some ten thousand rows at a time. Feather says in each of its
messages how many rows follow, and before each buffer how many bytes it unpacks to; these are read before any
is unpacked.

Source: Apache Parquet and Apache Arrow (Feather; IPC messages, which are FlatBuffers) for the formats.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from rehearsal_torch.data.tables.frame import (
    EXTRA,
    ReadTable,
    TableError,
    bounded,
    few_columns,
    header_faults,
    plain_cell,
    refused_or_collected,
)
from rehearsal_torch.files.addresses import beginning

COLUMNAR = (".parquet", ".feather", ".arrow")
ROWS = 65_536
"""Rows that are read at a time, at most."""
# The same, of texts that share their beginnings: each may be as long as the file.
SHARED_ROWS = 256
_MAGIC = b"ARROW1\0\0"
# The kinds of Arrow whose cells are texts.
TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")


def read_columnar(file: Path, faults: list[str] | None = None) -> ReadTable:
    """Reads a Parquet or Feather file.

    Args:
        file: The file; at most 2 GiB and 200 million cells in memory.
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
        import pyarrow.compute
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
            f"{file} is not a {kind} file, or is damaged ("
            f"{beginning(' '.join(str(error).split()), 100)}): write it "
            "again, or write it as CSV"
        ) from error


def plain_texts(pa: Any, batch: Any) -> Any:
    """A batch of Arrow whose texts are the cells that they become, written out once: each text of a list of
    texts is looked at once, and nothing of the batch is kept with them.

    Args:
        pa: The package pyarrow.
        batch: The batch.

    Raises:
        ValueError: if it is damaged.
    """
    # Lengths and offsets of a damaged file may lead outside its buffers.
    batch.validate(full=True)
    columns = list(batch.columns)
    for place, column in enumerate(columns):
        coded = pa.types.is_dictionary(column.type)
        kind = column.type.value_type if coded else column.type
        if any(getattr(pa.types, f"is_{each}")(kind) for each in TEXTS):
            few = coded and len(column.dictionary) < len(column)
            texts = column.dictionary if few else column.dictionary_decode() if coded else column
            cells = pa.array(map(plain_cell, texts.to_pylist()), pa.large_string())
            columns[place] = cells.take(column.indices) if few else cells
    return pa.RecordBatch.from_arrays(columns, list(batch.schema.names))


def arrow_cells(table: Any) -> pd.DataFrame:
    """The cells of a table of batches of `plain_texts`, with numbers for the names of columns: numbers and
    truth values as they are, all else as text.
    """
    # What pandas wrote about itself is not needed, and not trusted.
    bare = table.replace_schema_metadata(None)
    frame: pd.DataFrame = bare.to_pandas(timestamp_as_object=True, date_as_object=True)
    frame = frame.set_axis(range(frame.shape[1]), axis=1)
    for place, kind in zip(frame.columns, bare.schema.types, strict=True):
        done = str(kind) == "large_string" and bare.column(place).null_count < len(frame)
        if not done and frame[place].dtype.kind not in "biuf":
            frame[place] = frame[place].astype(object).map(plain_cell).infer_objects()
    return frame


def parquet_file(pa: Any, file: Path) -> tuple[Any, int]:
    """An opened Parquet file whose texts are read as numbers of a list of texts, and the rows to read at a
    time.

    Args:
        pa: The package pyarrow.
        file: The file.

    Raises:
        TableError: if a row group says that it is too large.
    """
    about = pa.parquet.read_metadata(file)
    texts, shared = dict[str, bool](), False
    for group in (about.row_group(place) for place in range(about.num_row_groups)):
        size = 0
        for place in range(about.num_columns):
            column, kind = group.column(place), about.schema.column(place)
            size += max(column.total_uncompressed_size, column.num_values * kind.length)
            begun = "DELTA_BYTE_ARRAY" in column.encodings
            shared |= begun
            if kind.physical_type == "BYTE_ARRAY":
                texts[kind.path] = texts.get(kind.path, True) and not begun
            bounded(file, size, column.num_values)
    kept = [path for path, keep in texts.items() if keep]
    return pa.parquet.ParquetFile(file, read_dictionary=kept), SHARED_ROWS if shared else ROWS


def unpacked(pa: Any, column: Any) -> int:
    """The bytes of a column of Arrow once every text is written out.

    Args:
        pa: The package pyarrow.
        column: The column.

    Raises:
        ValueError: if it is of a kind whose values may stand for any number of others.
    """
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        text = any(
            is_kind(kind.value_type)
            for is_kind in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
        )
        if not text:
            return len(column) * (8 if types.is_primitive(kind.value_type) else column.dictionary.nbytes)
        lengths = pa.compute.binary_length(column.dictionary).take(column.indices)
        return 4 * len(column) + (pa.compute.sum(lengths).as_py() or 0)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        parts = (column.slice(begin, SHARED_ROWS) for begin in range(0, len(column), SHARED_ROWS))
        return sum(part.cast(pa.large_binary()).nbytes for part in parts)
    if types.is_struct(kind):
        return sum(unpacked(pa, each) for each in column.flatten())
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        # As Python's objects.
        below = column.flatten()
        return 64 * len(below) + unpacked(pa, below)
    if types.is_nested(kind) or types.is_run_end_encoded(kind):
        raise ValueError(f"columns of the kind {str(kind)[:40]} are not read")
    return int(column.nbytes)


def _parquet(pa: Any, file: Path) -> Any:
    opened, rows = parquet_file(pa, file)
    with opened:
        about = opened.metadata
        groups = [about.row_group(place) for place in range(about.num_row_groups)]
        size = sum(group.total_byte_size for group in groups)
        values = sum(group.column(place).num_values for group in groups for place in range(about.num_columns))
        bounded(file, size, max(values, about.num_rows * max(about.num_columns, 1)))
        return _together(pa, file, opened.iter_batches(rows), opened.schema_arrow)


def _feather(pa: Any, file: Path) -> Any:
    with pa.memory_map(str(file)) as source:
        if source.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it does not begin as one")
        size = 0
        for message in pa.ipc.MessageReader.open_stream(source):
            if message.type in ("record batch", "dictionary"):
                rows, content = _announced(bytes(message.metadata), message.body)
                size += content
                bounded(file, size, rows)
        source.seek(len(_MAGIC))
        with pa.ipc.open_stream(source) as opened:
            few_columns(len(opened.schema), str(file))
            return _together(pa, file, opened, opened.schema)


def _together(pa: Any, file: Path, batches: Any, schema: Any) -> Any:
    """One table of batches that are counted as they come."""
    kept, size, cells = [], 0, 0
    for batch in batches:
        size += sum(unpacked(pa, column) for column in batch.columns)
        cells += batch.num_rows * max(batch.num_columns, 1)
        bounded(file, size, cells)
        parts = (batch.slice(begin, ROWS) for begin in range(0, batch.num_rows, ROWS))
        kept += [plain_texts(pa, part) for part in parts]
    return pa.Table.from_batches(kept) if kept else schema.empty_table()


def _announced(head: bytes, body: Any) -> tuple[int, int]:
    """The rows of a record batch or a dictionary, and the bytes that its buffers unpack to.

    Raises:
        ValueError: if the message is damaged.
    """

    def number(kind: str, at: int) -> int:
        return int(struct.unpack_from(f"<{kind}", head, at)[0])

    def field(table: int, place: int) -> int:
        """The position of a field of a table; 0 if it is left out."""
        known = table - number("i", table)
        offset = number("H", known + 4 + 2 * place) if 4 + 2 * place < number("H", known) else 0
        return table + offset if offset else 0

    def below(at: int) -> int:
        return at + number("I", at)

    try:
        message = number("I", 0)
        batch = below(field(message, 2))
        if number("B", field(message, 1)) == 2:  # a dictionary, with its values as a batch
            batch = below(field(batch, 1))
        rows = field(batch, 0)
        buffers, packed = below(field(batch, 2)), field(batch, 3) > 0
        size = 0
        for place in range(number("I", buffers)):
            begin, length = struct.unpack_from("<qq", head, buffers + 4 + 16 * place)
            stated = struct.unpack_from("<q", body, begin)[0] if packed and length else -1
            size += length if stated < 0 else stated
        return (number("q", rows) if rows else 0), size
    except struct.error as error:
        raise ValueError(f"a message is damaged: {error}") from error
