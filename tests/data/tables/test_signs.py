"""Separators and decimal signs: what is detected, and given ones that the text speaks against."""

from pathlib import Path

import pytest

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


def test_a_table_of_one_column_has_any_separator():
    check_given(T, ["a", "1", "2"], ";", None)
    check_given(T, ['"a,b"', "1", "2"], ";", None)


def test_a_decimal_sign_that_some_number_has_or_that_most_numbers_need_not_have_is_taken():
    check_given(T, [*COMMAS, "1.5;2;3"], ";", ".")
    check_given(T, ["a;b;codes", "1;2;1,4", "2;3;2,5"], ";", ".")
    check_given(T, ["a,b", '"1,5","2,5"'], ",", ",")
    check_given(T, ["a,b", "1,2"], ",", ",")
    check_given(T, ["a,b", f"1.5,{'x' * 200_000}"], ",", ",")
