"""Separators and decimal signs are detected, noted, or given; what is ambiguous is reported."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.tables.csv_file import TableError, cells_as_written, check_given, read_separated
from rehearsal_torch.data.tables.header_checks import ReadTable

SEMICOLONS = ["separated by semicolons and written with decimal commas"]
READ = [
    ("t.csv", "a,b\n1.5,2\n", ",", ".", []),
    ("t.csv", "a;b\n1,5;2\n", ";", ",", SEMICOLONS),
    ("t.csv", "a;b\n1.5;2\n", ";", ".", ["separated by semicolons and written with decimal points"]),
    ("t.tsv", "a\tb\n1.5\t2\n", "\t", ".", ["separated by tabs and written with decimal points"]),
    ("t.txt", "a|b\n1,5|2\n", "|", ",", ["separated by vertical bars and written with decimal commas"]),
    ("t.tsv", "a, of all\tb\n1,5\t2\n", "\t", ",", ["separated by tabs and written with decimal commas"]),
    ("t.csv", '"a;b",b\n1.5,2\n', ",", ".", []),
    ("t.csv", "a, of all;b\n1,5;2\n2;3\n", ";", ",", SEMICOLONS),
    ("t.csv", '\n"x";"y"\n"1,5";"2"\n', ";", ",", SEMICOLONS),
    ("t.csv", "P(a|b)\n1.5\n", ",", ".", []),
]


@pytest.mark.parametrize(("name", "text", "separator", "decimal", "told"), READ)
def test_separator_and_decimal_sign_are_detected(tmp_path, name, text, separator, decimal, told):
    (tmp_path / name).write_text(text)
    found = read_separated(tmp_path / name)
    assert float(found.frame.iloc[0, 0]) == 1.5
    assert list(found.notes) == [f"{tmp_path / name} is read as {each}" for each in told]
    again = read_separated(tmp_path / name, separator, decimal)
    assert again.frame.equals(found.frame)
    assert again.notes == (), "what was given is no news"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), st.integers(-99, 99)),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([(",", "."), (";", ","), (";", "."), ("\t", ","), ("|", ".")]),
)
def test_written_numbers_are_read(tmp_path_factory, rows, signs):
    separator, decimal = signs
    file = tmp_path_factory.mktemp("separated") / "t.csv"
    lines = [f"{one:.3f}".replace(".", decimal) + f"{separator}{two}" for one, two in rows]
    file.write_text("\n".join([f"a{separator}b", *lines]) + "\n")
    assert read_separated(file).frame.to_numpy().tolist() == [[one, two] for one, two in rows]


def test_cells_are_known_as_the_file_writes_them(tmp_path):
    (tmp_path / "t.csv").write_text('\na;b\n1,50;"x;y"\n\n007;NA\n')
    found = read_separated(tmp_path / "t.csv")
    assert cells_as_written(found).to_numpy().tolist() == [["1,50", "x;y"], ["007", "NA"]]
    assert cells_as_written(found).index.tolist() == found.frame.index.tolist()
    assert cells_as_written(ReadTable(found.frame, "a sheet")) is None
    (tmp_path / "t.csv").write_text("a;b\n1,50;2\n")
    assert cells_as_written(found) is None, "it has changed"
    (tmp_path / "t.csv").unlink()
    assert cells_as_written(found) is None


def test_lines_that_end_in_cr_alone_are_lines_and_count_as_cells(tmp_path, monkeypatch):
    file = tmp_path / "t.csv"
    file.write_bytes(b"a,b\r" + b"1.5,2\r" * 180_000)
    assert file.stat().st_size > 2**20
    found = read_separated(file).frame
    assert found.shape == (180_000, 2)
    assert found.iloc[-1].tolist() == [1.5, 2.0]
    monkeypatch.setattr("rehearsal_torch.data.tables.header_checks.CELLS", 360_000)
    with pytest.raises(TableError, match="and 360,000 cells; there are more"):
        read_separated(file)


T = Path("t.csv")


@pytest.mark.parametrize(
    ("lines", "separator", "decimal"),
    [
        (["a", "1", "2"], ";", None),
        (['"a,b"', "1", "2"], ";", None),
        (["x;a;y", "0,5;1;2,25", "1.5;2;3"], ";", "."),
        (["a;b;codes", "1;2;1,4", "2;3;2,5"], ";", "."),
        (["a,b", '"1,5","2,5"'], ",", ","),
        (["a,b", "1,2"], ",", ","),
        (["a,b", f"1.5,{'x' * 200_000}"], ",", ","),
    ],
)
def test_signs_that_the_text_does_not_contradict_are_taken(lines, separator, decimal):
    check_given(T, lines, separator, decimal)
