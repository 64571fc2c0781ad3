"""Comma-separated files: what is read past."""

import csv
import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook

from rehearsal_torch.data.tables import header_checks
from rehearsal_torch.data.tables.reader import (
    TableError,
    TableWarning,
    number_columns,
    number_faults,
    read_table,
    table_file,
)

PLAIN = "a,b\n" + "".join(f"{row},{row / 7}\n" for row in range(2000))


@pytest.mark.parametrize(
    ("name", "text", "encoding", "called"),
    [
        ("t 1.csv", "a\tb\n1.5\t2\n-3.25\t4\n", "utf-16-le", "UTF-16"),
        ("t.csv", "größe;b\n1,5;2\n2,5;1.234,5\n", "cp1252", "Windows-1252"),
        ("t.csv", "Temp (°C),µg/l\n1.5,2\n", "latin-1", "Windows-1252"),
        ("t.csv", "größe;b;Prüfer\r1,5;2;Müller\r2,5;3;Jürgen\r", "mac_roman", "Mac Roman"),
        (
            "t.csv",
            "L \u2013 Preise in \u20ac\n\nWer;b\nmännlich;2\nfür \u20ac 3;3\n",
            "cp1252",
            "Windows-1252",
        ),
        ("t.csv", "Wer;b\nmännlich;2\nÄnne;3\nfür \u20ac;4\n", "mac_roman", "Mac Roman"),
        ("t.tsv", "größe, m\tb\n1,5\t2\n", "utf-16", "UTF-16"),
        ("t.csv.gz", "größe;b\n1,5;2\n", "cp1252", "Windows-1252"),
    ],
)
def test_text_of_other_encodings_is_read_as_it_would_be_in_utf_8(tmp_path, name, text, encoding, called):
    """It was refused, with a command to type that rewrote the file."""
    frames = []
    for each in (encoding, "utf-8"):
        content = text.encode(each)
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        found = read_table(tmp_path / name)
        frames.append(found.frame)
        assert any(called in note for note in found.notes) == (each != "utf-8")
    pd.testing.assert_frame_equal(*frames)


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10_000, 10_000),
    st.floats(-1e4, 1e4).map(lambda x: round(x, 2) + 0.0),
    st.sampled_from(
        ["a", " b", "b ", "c  d", "ä", "a\u0308", "x\u00a0y", "NA", "-", "n.m.", "<5", "True", "7"]
    ),
    st.sampled_from(["mean", "sum", "19.02.2024", "1,234.5", "1,234", "45 %", "12 €", "Source: us", "n = 3"]),
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.data(), st.integers(1, 3), st.integers(1, 30), st.booleans())
def test_a_text_and_a_workbook_of_the_same_cells_are_one_table(tmp_path_factory, data, width, length, titled):
    """A workbook's texts kept words for missing cells, its blanks, and True beside an empty cell."""
    folder = tmp_path_factory.mktemp("same")
    kinds = [
        data.draw(st.sampled_from([CELLS, st.integers(-9, 9), st.sampled_from(["a", "b "])]))
        for _ in range(width)
    ]
    rows = (
        [["Trial 7"], [], ["Temp.\n(°C)", "y  [g] ", "z"][:width]] if titled else [["x", " y", "z"][:width]]
    )
    rows += [[data.draw(kind) for kind in kinds] for _ in range(length)]
    sheet = Workbook()
    for row in rows:
        sheet.active.append(row)
    sheet.save(folder / "t.xlsx")
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as stream:
        # As Excel keeps them: 2.0 is 2, and all lines are of one length.
        written = [[f"{cell:.15g}" if isinstance(cell, float) else cell for cell in row] for row in rows]
        written = [row + [None] * (width - len(row)) for row in written]
        csv.writer(stream).writerows(written)
    read = []
    for name in ("t.csv", "t.xlsx"):
        try:
            faults = []
            found = read_table(folder / name, faults=faults)
            told = [note.replace(name, "t") for note in found.notes]
            wrong = number_faults(found.frame, list(found.frame.columns))
            read.append((found.frame, told, [*faults, *wrong], found.units))
        except TableError as error:
            read.append((None, str(error)))
    if read[0][0] is None or read[1][0] is None:
        assert read[0][0] is read[1][0]
        return
    pd.testing.assert_frame_equal(read[0][0], read[1][0])
    assert read[0][1:] == read[1][1:]


def test_the_ending_decides_how_a_file_is_read_and_settings_are_for_their_kind(tmp_path):
    frame = pd.DataFrame({"a": [1.5, -2.0, 0.25], "b": [1, 2, 3]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    frame.to_csv(tmp_path / "t.csv.gz", sep=";", decimal=",", index=False)
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.tsv", "t.csv.gz", "t.xlsx", "t.parquet"):
        read = read_table(tmp_path / name).frame
        assert number_columns(read, ["a", "b"], name).tolist() == frame.to_numpy().tolist(), name
    frame.to_feather(tmp_path / "t.feather")
    with pytest.raises(TableError, match="which is not read: write it as Parquet or CSV"):
        read_table(tmp_path / "t.feather")


def test_what_was_detected_is_warned_of(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1,5;2\n")
    with pytest.warns(TableWarning, match="separated by semicolons"):
        assert table_file(tmp_path / "t.csv")["a"].tolist() == [1.5]


def test_what_spreadsheets_leave_is_read_past_and_lines_keep_their_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("\ufeff\n a, b,,\n1,2,,\n\n,,,\n3,x,,\n,,,\n,,,\n")
    frame = table_file(tmp_path / "t.csv")
    assert list(frame.columns) == ["a", "b"]
    assert frame["a"].tolist() == [1, 3]
    assert frame["a"].dtype.kind == "i", "whole numbers stay whole"
    with pytest.raises(TableError, match="b: expected numbers; got 'x' in line 6"):
        number_columns(frame, ["a", "b"], "table")
    (tmp_path / "index.csv").write_text(",a\n0,1\n1,2\n")
    assert table_file(tmp_path / "index.csv")["a"].tolist() == [1, 2], (
        "one column without a name, as pandas writes the index, is not read"
    )


def test_files_and_archives_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(header_checks, "BYTES", 5000)
    (tmp_path / "t.csv").write_text(PLAIN)
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write(PLAIN)
    monkeypatch.setattr(pd, "read_csv", None)
    for name in ("t.csv", "t.csv.gz"):
        with pytest.raises(TableError, match="at most 5,000 bytes when unpacked"):
            table_file(tmp_path / name)
    monkeypatch.setattr(header_checks, "BYTES", 2**31)
    monkeypatch.setattr(header_checks, "CELLS", 50)
    with gzip.open(tmp_path / "bomb.csv.gz", "wt") as file:
        file.write("a;b\n" + "1;2\n" * 30)
    with pytest.raises(TableError, match="when unpacked, and 50 cells; there are more"):
        table_file(tmp_path / "bomb.csv.gz")
    (tmp_path / "long.csv").write_text("a" * 2**20 + ",b\n1,2\n")
    with pytest.raises(TableError, match="expected a header of at most 1 MiB"):
        table_file(tmp_path / "long.csv")
    monkeypatch.setattr(header_checks, "CELLS", 200_000_000)
    (tmp_path / "wide.csv").write_text(",".join(f"c{place}" for place in range(10_001)) + "\n")
    with pytest.raises(TableError, match="at most 10000 columns; got 10001"):
        table_file(tmp_path / "wide.csv")
    monkeypatch.undo()


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.data())
def test_a_damaged_file_is_a_table_of_finite_numbers_or_a_paragraph(tmp_path_factory, data):
    content = bytearray(b"a,b,c\n" + b"".join(b"%d,%d.5,7e%d\n" % (row, row, row % 9) for row in range(12)))
    packed = data.draw(st.booleans())
    if packed:
        content = bytearray(gzip.compress(bytes(content), mtime=0))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[place : place + data.draw(st.integers(0, 3))] = data.draw(
                st.sampled_from([b"", b",", b"\n", b'"', b";", b"\0", b"\xff", b"1e999", b"\r", b",,,"])
            )
        else:
            del content[place : place + data.draw(st.integers(1, 30))]
        content = content or bytearray(b"a")
    file = tmp_path_factory.mktemp("damaged") / ("t.csv.gz" if packed else "t.csv")
    file.write_bytes(content)
    try:
        values = number_columns(table_file(file), ["a", "b", "c"], "table", 2, varying=True)
    except TableError:
        return
    assert np.isfinite(values).all()


def test_an_address_is_no_table_and_is_not_shown():
    with pytest.raises(TableError, match="path: data bases and addresses are not read") as told:
        read_table("postgresql://me:hunter2@host/shop")
    assert "hunter2" not in str(told.value)
