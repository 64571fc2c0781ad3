"""Queries to SQLite: read only, bounded, and without the connection string in any message."""

import sqlite3
import traceback

import pytest

from rehearsal_torch.data.reading import number_columns
from rehearsal_torch.data.tables.query import TableError, read_query


@pytest.fixture
def shop(tmp_path):
    opened = sqlite3.connect(tmp_path / "secret place.db")
    opened.execute("create table weeks (price real, sales integer, note text)")
    opened.executemany("insert into weeks values (?, ?, ?)", [(1.5, 20, "x"), (2.0, 10, None)])
    opened.commit()
    opened.close()
    return tmp_path


def test_the_result_of_a_query_is_a_table(shop):
    found = read_query("sqlite:///secret place.db", "select price, 2 * sales as twice from weeks", shop)
    assert number_columns(found.frame, ["price", "twice"], "t").tolist() == [[1.5, 40.0], [2.0, 20.0]]
    assert found.where == "the query's result"
    whole = read_query(f"sqlite:///{shop}/secret place.db", "select * from weeks", shop)
    assert list(whole.frame.columns) == ["price", "sales", "note"]


@pytest.mark.parametrize(
    ("connection", "query", "words"),
    [
        ("postgresql://me:hunter2@secret/shop", "select 1", "data.sql: only SQLite is read"),
        ("sqlite:///secret elsewhere.db", "select 1", "data.sql: there is no such data base"),
        ("sqlite:///", "select 1", "only SQLite is read"),
        ("sqlite:///secret place.db", "select size from weeks", "no such column: size"),
        ("sqlite:///secret place.db", "delete from weeks", "only statements that read are allowed"),
        ("sqlite:///secret place.db", "attach 'secret.db' as s", "only statements that read are allowed"),
        ("sqlite:///secret place.db", "select load_extension('secret')", "refuses it"),
        ("sqlite:///secret place.db", "select 1; select 2", "one statement at a time"),
        ("sqlite:///secret place.db", "", "expected a select statement"),
        ("sqlite:///secret\0place.db", "select 1", "there is no such data base"),
    ],
)
def test_what_cannot_be_read_is_refused_without_the_connection(shop, connection, query, words):
    with pytest.raises(TableError, match=words) as told:
        read_query(connection, query, shop)
    whole = "".join(traceback.format_exception(told.value, chain=True)).split("TableError: ")[-1]
    for secret in ("secret", "hunter2", str(shop)):
        assert secret not in whole.replace(query, "")
    opened = sqlite3.connect(shop / "secret place.db")
    assert opened.execute("select count(*) from weeks").fetchone() == (2,)
    opened.close()


def test_a_file_that_is_no_data_base_is_refused(tmp_path):
    (tmp_path / "secret.db").write_text("a,b\n1,2\n" * 300)
    with pytest.raises(TableError, match="file is not a database") as told:
        read_query("sqlite:///secret.db", "select * from a", tmp_path)
    assert "secret" not in str(told.value)
