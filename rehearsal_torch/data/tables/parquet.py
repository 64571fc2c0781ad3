"""Parquet files, read by pyarrow. Lines in messages count the rows from 2, as in a plain file.

A folder of Parquet files with the same columns is one table, in the order of their names. Of many columns,
those that are needed are read alone.

Categories and text are text, dates are text as well, decimal numbers are numbers.

What a file takes in memory is no function of its size: a text that occurs in a million rows is stored once,
and a column that is packed may be a thousandth of what it unpacks to. Parquet says beforehand how many values
each column has and what they take encoded, and its texts are read as numbers of a list of texts, so that they
are counted before they are written out, once, some ten thousand rows at a time.

Source: Apache Parquet for the format.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import pandas as pd

from rehearsal_torch.data.tables.header_checks import (
    EXTRA,
    ReadTable,
    TableError,
    bounded,
    few_columns,
    header_faults,
    plain_cell,
    raise_or_collect,
)
from rehearsal_torch.files.redaction import beginning

# Selects, among the names of a file's columns, those that are read.
Needed = Callable[[Sequence[str]], Iterable[str]]
# Rows that are decoded at a time; fewer of texts that share beginnings: each may be as long as the file.
ROWS, SHARED_ROWS = 65_536, 256
# The kinds of Arrow whose cells are texts.
TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")


def read_parquet(file: Path, faults: list[str] | None = None, needed: Needed | None = None) -> ReadTable:
    """Reads a Parquet file, or a folder of Parquet files, of at most 2 GiB, 200 million cells."""
    pa = _import_pyarrow(file)
    files, tables = [file], list[Any]()
    if file.is_dir():
        files = sorted(path for path in file.iterdir() if path.suffix.lower() == ".parquet")
    for path in files:
        with path.open("rb"):  # an error of the operating system, before pyarrow says it in its own words
            pass
        with _as_table_errors(pa, path):
            tables.append(_read_file(pa, path, needed, tables))
    names = [str(name) for name in tables[0].column_names]
    with _as_table_errors(pa, file):
        if any(set(table.column_names) != set(names) for table in tables):
            raise TableError(f"{file}: expected the same columns in each of its {len(files)} files")
        frame = _to_frame(pa, _concatenate(pa, files, tables))
    raise_or_collect(header_faults(names, frame), str(file), faults)
    frame.columns = pd.Index(names)
    if frame.columns.has_duplicates:
        frame = frame.loc[:, ~frame.columns.duplicated()]
    rows = frame.dropna(how="all") if frame.shape[1] else frame
    # pandas writes an index without a name under this name: it is no variable.
    unnamed = [name for name in rows.columns if name.startswith("__index_level_")]
    return ReadTable(rows.drop(columns=unnamed) if unnamed else rows, str(file))


def _import_pyarrow(file: Path) -> Any:
    """The package, with the modules of it that are used."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        fault = f"{file} is a Parquet file, and pyarrow, which reads it, is not installed"
        raise TableError(f"{fault}: type {EXTRA}, or write it as CSV") from error
    return pa


@contextmanager
def _as_table_errors(pa: Any, file: Path) -> Iterator[None]:
    """Turns errors of pyarrow into a TableError about the file."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        reason = beginning(" ".join(str(error).split()), 100)
        fault = f"{file} is not a Parquet file, or is damaged ({reason})"
        raise TableError(f"{fault}: write it again, or write it as CSV") from error


def _concatenate(pa: Any, files: Sequence[Path], tables: list[Any]) -> Any:
    """The rows of all tables; empties the list, so that their memory is free."""
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


def _with_plain_texts(pa: Any, batch: Any) -> Any:
    """A batch with each text as its `plain_cell`; its texts share no memory with the batch that was read."""
    # Lengths and offsets of a damaged file may lead outside its buffers.
    batch.validate(full=True)
    columns = list(batch.columns)
    for index, column in enumerate(columns):
        is_dictionary = pa.types.is_dictionary(column.type)
        kind = column.type.value_type if is_dictionary else column.type
        if any(getattr(pa.types, f"is_{each}")(kind) for each in TEXTS):
            by_level = is_dictionary and len(column.dictionary) < len(column)
            texts = column.dictionary if by_level else column.dictionary_decode() if is_dictionary else column
            cells = pa.array(map(plain_cell, texts.to_pylist()), pa.large_string())
            columns[index] = cells.take(column.indices) if by_level else cells
    return pa.RecordBatch.from_arrays(columns, list(batch.schema.names))


def _to_frame(pa: Any, table: Any) -> pd.DataFrame:
    """The cells of `_with_plain_texts`, with columns 0, 1, ...: all but numbers and truth values are text."""
    # What pandas wrote about itself is not needed, and not trusted.
    table = table.replace_schema_metadata(None)
    texts = [
        str(column.type) == "large_string" and column.null_count < len(column) for column in table.columns
    ]
    # Each column is freed once it is converted, or memory would double; pyarrow's own pool would keep it.
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
    for index, text in enumerate(texts):
        if not text and frame[index].dtype.kind not in "biuf":
            frame[index] = frame[index].astype(object).map(plain_cell).infer_objects()
    return frame


def _read_file(pa: Any, file: Path, needed: Needed | None, earlier: Sequence[Any]) -> Any:
    """The rows of a file after those of earlier ones; its row groups are refused by their sizes, unread."""
    metadata = pa.parquet.read_metadata(file)
    names = [str(name) for name in metadata.schema.to_arrow_schema().names]
    few_columns(len(names), str(file))
    wanted = set(names if needed is None else needed(names))
    # Columns of texts, which are read as dictionaries unless they share the beginnings of their texts.
    texts, shared, total_size, cells = dict[str, None](), set[str](), 0, 0
    for group in (metadata.row_group(index) for index in range(metadata.num_row_groups)):
        size = 0
        for index in range(metadata.num_columns):
            column, schema = group.column(index), metadata.schema.column(index)
            if wanted.isdisjoint(accumulate(schema.path.split("."), "{}.{}".format)):
                continue
            size += max(column.total_uncompressed_size, column.num_values * schema.length)
            if "DELTA_BYTE_ARRAY" in column.encodings:
                shared.add(schema.path)
            if schema.physical_type == "BYTE_ARRAY":
                texts[schema.path] = None
            cells += column.num_values
            bounded(file, size, column.num_values)
        total_size += size
    bounded(file, total_size, max(cells, metadata.num_rows * max(len(wanted), 1)))
    with pa.parquet.ParquetFile(
        file, read_dictionary=[path for path in texts if path not in shared]
    ) as parquet:
        selected = None if needed is None else [name for name in names if name in wanted]
        batches = parquet.iter_batches(SHARED_ROWS if shared else ROWS, columns=selected)
        return _collect_batches(pa, file, batches, parquet.schema_arrow, wanted, earlier)


def _collect_batches(
    pa: Any, file: Path, batches: Any, schema: Any, wanted: set[str], earlier: Sequence[Any]
) -> Any:
    """One table of batches, refused once they and the earlier tables are too large."""
    schema = pa.schema([field for field in schema if str(field.name) in wanted])
    parts, size = list[Any](), sum(table.nbytes for table in earlier)
    cells = sum(table.num_rows * max(table.num_columns, 1) for table in earlier)
    for batch in batches:
        size += sum(_unpacked_bytes(pa, column) for column in batch.columns)
        cells += batch.num_rows * max(batch.num_columns, 1)
        bounded(file, size, cells)
        slices = (batch.slice(begin, ROWS) for begin in range(0, batch.num_rows, ROWS))
        parts += [_with_plain_texts(pa, part) for part in slices]
    if not parts:
        columns = [column.combine_chunks() for column in schema.empty_table().columns]
        parts = [_with_plain_texts(pa, pa.RecordBatch.from_arrays(columns, schema.names))]
    return pa.Table.from_batches(parts)


def _unpacked_bytes(pa: Any, column: Any) -> int:
    """The bytes of a column of Arrow once every text is written out."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        texts = types.is_string, types.is_large_string, types.is_binary, types.is_large_binary
        if not any(is_text(kind.value_type) for is_text in texts):
            return len(column) * (8 if types.is_primitive(kind.value_type) else column.dictionary.nbytes)
        lengths = pa.compute.binary_length(column.dictionary).take(column.indices)
        return 4 * len(column) + (pa.compute.sum(lengths).as_py() or 0)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        slices = (column.slice(begin, SHARED_ROWS) for begin in range(0, len(column), SHARED_ROWS))
        return sum(part.cast(pa.large_binary()).nbytes for part in slices)
    if types.is_struct(kind):
        return sum(_unpacked_bytes(pa, field) for field in column.flatten())
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        # As Python's objects.
        values = column.flatten()
        return 64 * len(values) + _unpacked_bytes(pa, values)
    if types.is_nested(kind) or types.is_run_end_encoded(kind):
        raise ValueError(f"columns of the kind {str(kind)[:40]} are not read")
    return int(column.nbytes)
