"""Tables from a data base: the result of one query, read from SQLite, and never written to.

    data: {sql: "sqlite:///shop.db", query: "select season, price, sales from weeks"}

The data base is opened for reading only, and only statements that read are allowed. Other data bases are
refused: their query's result can be saved as a file. A connection string may hold a password, so no message
and no record repeats any part of it.

Source: SQLite's documentation (URI file names, authorizer callbacks).
"""

import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rehearsal_torch.data.tables.frame import ReadTable, TableError, frame_of

PREFIX = "sqlite:///"
WHERE = "the query's result"
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}


def read_query(connection: str, query: str, folder: Path, faults: list[str] | None = None) -> ReadTable:
    """Reads the result of a query.

    Args:
        connection: sqlite:/// and a file, relative to `folder` or absolute.
        query: One select statement.
        folder: The folder that a relative file is in.
        faults: Collects faults of the header instead of raising for them.

    Raises:
        TableError: if it is another data base, there is no such file, or the query fails; without any part
            of the connection string.
    """
    if not connection.startswith(PREFIX) or len(connection) == len(PREFIX):
        raise TableError(
            "data.sql: only SQLite is read, as sqlite:///FILE; save the result of the query in your data "
            "base as CSV, Excel or Parquet, and name that file under data"
        )
    file = folder / connection.removeprefix(PREFIX)
    try:
        there = file.is_file()
    except (OSError, ValueError):
        there = False
    if not there:
        raise TableError(
            "data.sql: there is no such data base: its file is relative to the folder of the problem file, "
            "and an absolute one is written with four slashes, sqlite:////folder/file.db"
        )
    opened = None
    try:
        opened = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)
        opened.set_authorizer(_allowed)
        found = opened.execute(query)
        if found.description is None:
            raise TableError("data.query: expected a select statement")
        return ReadTable(
            frame_of([name for name, *_ in found.description], found, WHERE, faults=faults), WHERE
        )
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
        words = " ".join(str(error).split()).replace(str(file), "the data base")
        if words == "not authorized":
            words = "only statements that read are allowed"
        # `from None`: the cause may hold the file's name.
        raise TableError(f"data.query: the data base refuses it ({words}): correct the query") from None
    finally:
        if opened is not None:
            opened.close()


def _allowed(action: int, first: Any, second: Any, *_: Any) -> int:
    known = action in _READING and "load_extension" not in (first, second)
    return sqlite3.SQLITE_OK if known else sqlite3.SQLITE_DENY
