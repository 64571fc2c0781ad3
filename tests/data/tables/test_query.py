"""Queries to SQLite: read only, bounded, and without the connection string in any message."""

import sqlite3
import traceback

import pytest
import sqlalchemy

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
        ("postgresql+none://me:hunter2@secret/shop", "select 1", "there is no such kind of data base"),
        ("postgresql+psycopg://me:hunter2@secret/shop", "select 1", "needs the package psycopg, which is"),
        ("sqlite+pysqlite:///secret place.db", "select 1", "SQLite is written as sqlite:///FILE, without"),
        ("secret.db", "select 1", "data.sql: expected sqlite:///FILE, or the address of"),
        ("sqlite:///secret elsewhere.db", "select 1", "data.sql: there is no such data base"),
        ("sqlite:///", "select 1", "data.sql: expected sqlite:///FILE"),
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


ADDRESS = "mysql+pymysql://me:hunter2@secret/shop"


@pytest.fixture
def elsewhere(shop, monkeypatch):
    """The shop behind the address of another data base, whose transactions begin with every statement."""
    engine = sqlalchemy.create_engine(f"sqlite:///{shop}/secret place.db")

    @sqlalchemy.event.listens_for(engine, "connect")
    def _no_implicit_commits(opened, _):
        opened.isolation_level = None

    @sqlalchemy.event.listens_for(engine, "begin")
    def _begin(opened):
        opened.exec_driver_sql("BEGIN")

    monkeypatch.setattr("sqlalchemy.create_engine", lambda url: engine)
    return shop


def test_other_data_bases_are_read_by_way_of_sqlalchemy(elsewhere):
    shop, address = elsewhere, ADDRESS
    found = read_query(address, "select price, 2 * sales as twice from weeks", shop)
    assert number_columns(found.frame, ["price", "twice"], "t").tolist() == [[1.5, 40.0], [2.0, 20.0]]
    whole = read_query(address, "with all_of as (select * from weeks) select * from all_of", shop)
    assert list(whole.frame.columns) == ["price", "sales", "note"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select size from weeks", r"data.query: the data base refuses the query \(no such column: size\)"),
        ("delete from weeks", "data.query: expected a select statement"),
        ("with one as (select 1) delete from weeks", "data.query: expected a select statement"),
        ("select 1; select 2", "one statement at a time"),
        ("select load_extension('x')", r"refuses the query \(not authorized\): correct it"),
        ("select secret from weeks", "refuses the query: correct it"),
        ("", "data.query: expected a select statement"),
    ],
)
def test_their_refusals_do_not_repeat_the_connection_and_nothing_is_written(elsewhere, query, words):
    shop = elsewhere
    with pytest.raises(TableError, match=words) as told:
        read_query(ADDRESS, query, shop)
    whole = "".join(traceback.format_exception(told.value, chain=True)).split("TableError: ")[-1]
    assert str(shop) not in whole
    opened = sqlite3.connect(shop / "secret place.db")
    assert opened.execute("select count(*) from weeks").fetchone() == (2,)
    opened.close()


def test_what_cannot_be_reached_is_said_without_the_address(shop, monkeypatch):
    unreachable = sqlalchemy.create_engine(f"sqlite:///{shop}/secret/shop.db")
    monkeypatch.setattr("sqlalchemy.create_engine", lambda url: unreachable)
    with pytest.raises(TableError, match=r"data\.sql: the data base cannot be reached") as told:
        read_query(ADDRESS, "select 1", shop)
    assert not {"secret", "hunter2", "me"} & set(str(told.value).replace(":", " ").split())


def test_without_its_library_it_says_what_to_type(shop, monkeypatch):
    monkeypatch.setattr("rehearsal_torch.data.tables.query.find_spec", lambda name: None)
    with pytest.raises(TableError, match=r"pip install 'rehearsal-torch\[sql\]'"):
        read_query("postgresql://me:hunter2@secret/shop", "select 1", shop)


def test_a_file_that_is_no_data_base_is_refused(tmp_path):
    (tmp_path / "secret.db").write_text("a,b\n1,2\n" * 300)
    with pytest.raises(TableError, match="file is not a database") as told:
        read_query("sqlite:///secret.db", "select * from a", tmp_path)
    assert "secret" not in str(told.value)
