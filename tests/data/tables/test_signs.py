"""Separators and decimal signs: what is detected, and given ones that the text speaks against."""

from pathlib import Path

import pytest

from rehearsal_torch.data.tables.frame import TableError
from rehearsal_torch.data.tables.signs import check_given, decimal_of, separator_of

T = Path("t.csv")
DOTTED, COMMAS = ["x,a,y", "0.5,1,2.25", "1,2,3.5"], ["x;a;y", "0,5;1;2,25", "1;2,5;3,5"]


@pytest.mark.parametrize(
    ("lines", "separator", "decimal"),
    [
        (DOTTED, ",", "."),
        (COMMAS, ";", ","),
        (["a\tb", "1.5\t2"], "\t", "."),
        (["a|b", "1|2"], "|", "."),
        (["a", "1"], ",", "."),
        (["name, first;age", "Jo, A;40", "B;41"], ";", "."),
        (["a;b,c", "x;1,2"], ",", "."),
    ],
)
def test_signs_are_detected_in_the_first_lines(lines, separator, decimal):
    assert separator_of(T, lines) == separator
    assert decimal_of(lines[1:], separator) == decimal
    check_given(T, lines, separator, None)
    check_given(T, lines, None, None)


@pytest.mark.parametrize(
    ("lines", "separator", "words"),
    [
        (
            DOTTED,
            ";",
            "separated by commas, which make 3 columns: write separator: ',', or leave separator out",
        ),
        (COMMAS, ",", "separated by semicolons, which make 3 columns: write separator: ';'"),
        (["a\tb", "1\t2"], ",", 'separated by tabs, which make 2 columns: write separator: "\\t"'),
        (
            ["a|b", "1|2"],
            "\t",
            "with separator: \"\\t\" the whole header was read as one column, 'a|b'; the file",
        ),
    ],
)
def test_a_separator_that_leaves_one_column_is_one_fault(lines, separator, words):
    with pytest.raises(TableError) as caught:
        check_given(T, lines, separator, None)
    assert str(caught.value).startswith("t.csv: with separator: ")
    assert words in str(caught.value)


def test_a_table_of_one_column_has_any_separator():
    check_given(T, ["a", "1", "2"], ";", None)
    check_given(T, ['"a,b"', "1", "2"], ";", None)


@pytest.mark.parametrize(
    ("lines", "separator", "decimal", "words"),
    [
        (
            DOTTED,
            None,
            ",",
            "has decimal commas, and 3 have points, such as 0.5: write decimal: '.', or leave",
        ),
        (
            COMMAS,
            ";",
            ".",
            "has decimal points, and 4 have commas, such as 0,5: write decimal: ',', or leave",
        ),
        (["a,b", '"1,5","2,5"'], None, ".", "and 2 have commas, such as 1,5"),
    ],
)
def test_a_decimal_sign_that_no_number_has_is_one_fault(lines, separator, decimal, words):
    with pytest.raises(TableError) as caught:
        check_given(T, lines, separator, decimal)
    assert words in str(caught.value)


def test_a_decimal_sign_that_some_number_has_or_that_most_numbers_need_not_have_is_taken():
    check_given(T, [*COMMAS, "1.5;2;3"], ";", ".")
    check_given(T, ["a;b;codes", "1;2;1,4", "2;3;2,5"], ";", ".")
    check_given(T, ["a,b", '"1,5","2,5"'], ",", ",")
    check_given(T, ["a,b", "1,2"], ",", ",")
    check_given(T, ["a,b", f"1.5,{'x' * 200_000}"], ",", ",")
