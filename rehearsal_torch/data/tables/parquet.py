"""Parquet and Feather files, read by pyarrow. Lines in messages count the rows from 2, as in a plain file.

A folder of Parquet files with the same columns is one table, in the order of their names. Of many columns,
those that are needed are read alone.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rehearsal_torch.data.tables.header_checks import (
    EXTRA,
    ReadTable,
    TableError,
    bounded,
    few_columns,
    header_faults,
    plain_cell,
    refused_or_collected,
)
from rehearsal_torch.files.redaction import beginning

COLUMNAR = (".parquet", ".feather", ".arrow")
# From the names of a file's columns to those that are read.
Needed = Callable[[Sequence[str]], Iterable[str]]
# Rows that are written out at a time; fewer of texts that share their beginnings: each may be as long as the
# file.
ROWS, SHARED_ROWS = 65_536, 256
_MAGIC = b"ARROW1\0\0"
# The kinds of Arrow whose cells are texts.
TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")


def read_columnar(file: Path, faults: list[str] | None = None, needed: Needed | None = None) -> ReadTable:
    """Reads a Parquet or Feather file, or a folder of Parquet files, of at most 2 GiB, 200 million cells."""
    parquet = file.is_dir() or file.suffix.lower() == ".parquet"
    kind = "Parquet" if parquet else "Feather"
    pa = _pyarrow(file, kind)
    files, tables = [file], list[Any]()
    if file.is_dir():
        files = sorted(each for each in file.iterdir() if each.suffix.lower() == ".parquet")
    for each in files:
        with each.open("rb"):  # an error of the operating system, before pyarrow says it in its own words
            pass
        with _damaged(pa, each, kind):
            tables.append(_parquet(pa, each, needed, tables) if parquet else _feather(pa, each, needed))
    names = [str(name) for name in tables[0].column_names]
    with _damaged(pa, file, kind):
        if any(set(each.column_names) != set(names) for each in tables):
            raise TableError(f"{file}: expected the same columns in each of its {len(files)} files")
        frame = _cells(pa, _joined(pa, files, tables))
    refused_or_collected(header_faults(names, frame), str(file), faults)
    frame.columns = pd.Index(names)
    if frame.columns.has_duplicates:
        frame = frame.loc[:, ~frame.columns.duplicated()]
    empty = frame.isna().all(axis=1).to_numpy() if frame.shape[1] else np.zeros(0, dtype=bool)
    # pandas writes an index without a name under this name: it is no variable.
    unnamed = [name for name in frame.columns if name.startswith("__index_level_")]
    kept = frame[~empty] if empty.any() else frame
    return ReadTable(kept.drop(columns=unnamed) if unnamed else kept, str(file))


def _pyarrow(file: Path, kind: str) -> Any:
    """The package, imported, with what is used of it."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.ipc
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        what = f"{file} is a {kind} file, and pyarrow, which reads it, is not installed"
        raise TableError(f"{what}: type {EXTRA}, or write it as CSV") from error
    return pa


@contextmanager
def _damaged(pa: Any, file: Path, kind: str) -> Iterator[None]:
    """Turns errors of pyarrow into one about the file."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        reason = beginning(" ".join(str(error).split()), 100)
        what = f"{file} is not a {kind} file, or is damaged ({reason})"
        raise TableError(f"{what}: write it again, or write it as CSV") from error


def _joined(pa: Any, files: Sequence[Path], tables: list[Any]) -> Any:
    """The rows of all tables, which are given up."""
    schema = tables[0].schema
    for file, table in zip(files[1:], tables[1:], strict=True):
        try:
            schema = pa.unify_schemas([schema, table.schema], promote_options="permissive")
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            reason = beginning(" ".join(str(error).split()).replace("large_string", "text"), 100)
            expected = f"expected columns of the same types as in {files[0].name} ({reason})"
            raise TableError(f"{file}: {expected}: write the files again with one type") from error
    joined = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    tables.clear()
    return joined


def _plain_texts(pa: Any, batch: Any) -> Any:
    """A batch whose texts are the cells that they become, each looked at once; nothing of it is kept."""
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


def _cells(pa: Any, table: Any) -> pd.DataFrame:
    """The cells of batches of `_plain_texts`, by the numbers of their columns: all but numbers and truth
    values as text.
    """
    # What pandas wrote about itself is not needed, and not trusted.
    table = table.replace_schema_metadata(None)
    texts = [
        str(column.type) == "large_string" and column.null_count < len(column) for column in table.columns
    ]
    # Each column is given up once it is converted: all of them twice would be twice the memory. pyarrow would
    # keep what it has freed.
    frame: pd.DataFrame = table.to_pandas(
        memory_pool=pa.system_memory_pool(),
        timestamp_as_object=True,
        date_as_object=True,
        split_blocks=True,
        self_destruct=True,
    )
    del table
    pa.default_memory_pool().release_unused()
    frame = frame.set_axis(range(frame.shape[1]), axis=1)
    for place, text in enumerate(texts):
        if not text and frame[place].dtype.kind not in "biuf":
            frame[place] = frame[place].astype(object).map(plain_cell).infer_objects()
    return frame


def _parquet(pa: Any, file: Path, needed: Needed | None, before: Sequence[Any]) -> Any:
    """The rows of a file, after those of other files; what a row group says of its size is heeded first."""
    about = pa.parquet.read_metadata(file)
    names = [str(name) for name in about.schema.to_arrow_schema().names]
    few_columns(len(names), str(file))
    wanted = set(names if needed is None else needed(names))
    texts, shared, whole, cells = dict[str, bool](), False, 0, 0
    for group in (about.row_group(place) for place in range(about.num_row_groups)):
        size = 0
        for place in range(about.num_columns):
            column, kind = group.column(place), about.schema.column(place)
            if wanted.isdisjoint(accumulate(kind.path.split("."), "{}.{}".format)):
                continue
            size += max(column.total_uncompressed_size, column.num_values * kind.length)
            begun = "DELTA_BYTE_ARRAY" in column.encodings
            shared |= begun
            if kind.physical_type == "BYTE_ARRAY":
                texts[kind.path] = texts.get(kind.path, True) and not begun
            cells += column.num_values
            bounded(file, size, column.num_values)
        whole += size
    bounded(file, whole, max(cells, about.num_rows * max(len(wanted), 1)))
    kept = [path for path, keep in texts.items() if keep]
    with pa.parquet.ParquetFile(file, read_dictionary=kept) as opened:
        read = None if needed is None else [name for name in names if name in wanted]
        batches = opened.iter_batches(SHARED_ROWS if shared else ROWS, columns=read)
        return _together(pa, file, batches, opened.schema_arrow, wanted, before)


def _feather(pa: Any, file: Path, needed: Needed | None) -> Any:
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
            names = [str(name) for name in opened.schema.names]
            few_columns(len(names), str(file))
            wanted = set(names if needed is None else needed(names))
            # By number: a name that is repeated is told with the other faults of the header.
            places = [place for place, name in enumerate(names) if name in wanted]
            batches = (batch.select(places) for batch in opened)
            return _together(pa, file, batches, opened.schema, wanted)


def _together(
    pa: Any, file: Path, batches: Any, schema: Any, wanted: set[str], before: Sequence[Any] = ()
) -> Any:
    """One table of batches that are counted as they come, with the tables before it."""
    schema = pa.schema([field for field in schema if str(field.name) in wanted])
    kept, size = list[Any](), sum(table.nbytes for table in before)
    cells = sum(table.num_rows * max(table.num_columns, 1) for table in before)
    for batch in batches:
        size += sum(_unpacked(pa, column) for column in batch.columns)
        cells += batch.num_rows * max(batch.num_columns, 1)
        bounded(file, size, cells)
        parts = (batch.slice(begin, ROWS) for begin in range(0, batch.num_rows, ROWS))
        kept += [_plain_texts(pa, part) for part in parts]
    if not kept:
        columns = [column.combine_chunks() for column in schema.empty_table().columns]
        kept = [_plain_texts(pa, pa.RecordBatch.from_arrays(columns, schema.names))]
    return pa.Table.from_batches(kept)


def _unpacked(pa: Any, column: Any) -> int:
    """The bytes of a column of Arrow once every text is written out."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        texts = types.is_string, types.is_large_string, types.is_binary, types.is_large_binary
        if not any(is_text(kind.value_type) for is_text in texts):
            return len(column) * (8 if types.is_primitive(kind.value_type) else column.dictionary.nbytes)
        lengths = pa.compute.binary_length(column.dictionary).take(column.indices)
        return 4 * len(column) + (pa.compute.sum(lengths).as_py() or 0)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        parts = (column.slice(begin, SHARED_ROWS) for begin in range(0, len(column), SHARED_ROWS))
        return sum(part.cast(pa.large_binary()).nbytes for part in parts)
    if types.is_struct(kind):
        return sum(_unpacked(pa, each) for each in column.flatten())
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        # As Python's objects.
        below = column.flatten()
        return 64 * len(below) + _unpacked(pa, below)
    if types.is_nested(kind) or types.is_run_end_encoded(kind):
        raise ValueError(f"columns of the kind {str(kind)[:40]} are not read")
    return int(column.nbytes)


def _announced(head: bytes, body: Any) -> tuple[int, int]:
    """The rows of a record batch or a dictionary, and the bytes that its buffers unpack to."""

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
