"""Tables from a data base: the result of one query, which is never written to.

    data: {sql: "sqlite:///shop.db", query: "select season, price, sales from weeks"}
    data: {sql: "postgresql+psycopg://me:word@host/shop", query: "select ..."}

SQLite is opened for reading only, and only statements that read are allowed. Other data bases are read by
way of SQLAlchemy: one select statement, in a transaction that is rolled back (and is declared as one that
only reads, where PostgreSQL or MySQL let it be). What a user of the data base may do, it decides: give this
one the right to read alone. A connection string may hold a password, so no message and
no record repeats any part of it.

Source: SQLite's documentation (URI file names, authorizer callbacks); SQLAlchemy's (engines, transactions).
"""

import re
import sqlite3
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rehearsal_torch.data.tables.frame import ReadTable, TableError, frame_of

PREFIX = "sqlite:///"
WHERE = "the query's result"
EXPECTED = "sqlite:///FILE, or the address of a data base, such as postgresql+psycopg://USER@HOST/NAME"
# Statements that declare a transaction as one that only reads, by dialect.
READ_ONLY = {"postgresql": "set transaction read only", "mysql": "set transaction read only"}
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}


def read_query(connection: str, query: str, folder: Path, faults: list[str] | None = None) -> ReadTable:
    """Reads the result of a query.

    Args:
        connection: sqlite:/// and a file, relative to `folder` or absolute; or the address of another data
            base, DIALECT+DRIVER://USER:PASSWORD@HOST/NAME.
        query: One select statement.
        folder: The folder that a relative file is in.
        faults: Collects faults of the header instead of raising for them.

    Raises:
        TableError: if there is no such file or data base, its library is not installed, or the query fails;
            without any part of the connection string.
    """
    if connection == PREFIX or "://" not in connection:
        raise TableError(f"data.sql: expected {EXPECTED}")
    if not connection.startswith(PREFIX):
        return _elsewhere(connection, query, faults)
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


def _elsewhere(connection: str, query: str, faults: list[str] | None) -> ReadTable:
    """Reads the result of a query by way of SQLAlchemy.

    Raises:
        TableError: as `read_query`.
    """
    if find_spec("sqlalchemy") is None:
        raise TableError(
            "data.sql: other data bases than SQLite need SQLAlchemy: pip install 'rehearsal-torch[sql]' and "
            "the driver of yours, or save the result of the query as CSV, Excel or Parquet"
        )
    from sqlalchemy import create_engine, text
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

    if query.split(None, 1)[:1] not in (["select"], ["with"], ["SELECT"], ["WITH"]):
        raise TableError("data.query: expected a select statement")
    engine, reached = None, False
    try:
        url = make_url(connection)
        if url.get_backend_name() == "sqlite":
            raise TableError("data.sql: SQLite is written as sqlite:///FILE, without a driver")
        engine = create_engine(url)
        with engine.connect() as opened:
            reached = True
            if (declared := READ_ONLY.get(engine.dialect.name)) is not None:
                opened.execute(text(declared))
            found = opened.execution_options(stream_results=True).execute(text(query))
            if not found.returns_rows:
                raise TableError("data.query: expected a select statement")
            names = list(found.keys())
            made = frame_of(names, (tuple(row) for row in found), WHERE, faults=faults)
            opened.rollback()
        return ReadTable(made, WHERE)
    except NoSuchModuleError:
        raise TableError(f"data.sql: there is no such kind of data base: expected {EXPECTED}") from None
    except ModuleNotFoundError as error:
        raise TableError(
            f"data.sql: this kind of data base needs the package {error.name}, which is not installed"
        ) from None
    except (SQLAlchemyError, ValueError, OSError, UnicodeError) as error:
        if isinstance(error, TableError):
            raise
        words = _words(error, connection) if reached else ""
        what = "refuses the query" if reached else "cannot be reached, or is not written as an address"
        place = "data.query" if reached else "data.sql"
        raise TableError(f"{place}: the data base {what}{words}: correct it") from None
    finally:
        if engine is not None:
            engine.dispose()


def _words(error: Exception, connection: str) -> str:
    """What a data base says of a query, in brackets; empty if it repeats a part of the connection."""
    said = " ".join(str(getattr(error, "orig", None) or type(error).__name__).split())[:300]
    parts = [part for part in re.split(r"[/:@?&=]+", connection)[1:] if len(part) > 2]
    return "" if any(part in said for part in parts) else f" ({said})"
