"""What scikit-learn calls array-like: what passes unchanged, and what is refused, with column and row."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch

from rehearsal_torch.adapters.array_like import CellError, computable, numeric, spoken
from rehearsal_torch.data.reading import TableError

NUMBERS = np.arange(6.0).reshape(3, 2)


def test_arrays_of_numbers_pass_as_they_are():
    for given in (NUMBERS, NUMBERS.astype(int), NUMBERS * 1j, NUMBERS[0], NUMBERS[None], [[1, 2], [3, 4]]):
        assert numeric(given, "X") is given
    made = numeric(torch.tensor(NUMBERS, dtype=torch.bfloat16, requires_grad=True), "X")
    assert made.dtype == np.float64
    assert made.tolist() == NUMBERS.tolist()


@pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: pl.DataFrame(dict(frame.items()))])
def test_of_a_frame_the_numbers_are_read_with_their_names(make):
    frame = pd.DataFrame(NUMBERS.astype(str), columns=["a", "b"])
    found = numeric(make(frame), "X")
    assert (list(found.columns), found.to_numpy().tolist()) == (["a", "b"], NUMBERS.tolist())
    some = numeric(make(frame.assign(c="text")), "X", ["b", "a"])
    assert some.to_numpy().tolist() == NUMBERS[:, ::-1].tolist()


def test_names_that_are_no_texts_are_left_out():
    found = numeric(pd.DataFrame(NUMBERS, columns=[7, 8]), "X")
    assert isinstance(found, np.ndarray)
    assert found.tolist() == NUMBERS.tolist()
    assert numeric(pd.Series([1, 2], name="a"), "y").tolist() == [1, 2]
    assert numeric(np.array(["1", "2.5"]), "y").tolist() == [1, 2.5]
    assert numeric(pd.DataFrame(index=range(3)), "contexts", []).shape == (3, 0)


DAYS = np.array([["2020-01-31"]], "M8[ns]")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pd.DataFrame(NUMBERS, columns=["a", "a"]), "X: several columns are called 'a': rename them"),
        (pd.DataFrame({"a": [1.0, np.inf]}), "- a: 1 of 2 values are missing or infinite in row 1: drop"),
        (pd.DataFrame({"a": ["abc", "d", "e"]}), "X: 1 fault, .*- a: expected numbers; got 'abc' in row 0"),
        (pd.DataFrame({"a": [1, b"3"]}), """- a: expected numbers; got "b'3'" in row 1: write a plain"""),
        (
            pd.Series([pd.Timestamp("2020-01-31")]),
            "- values: expected numbers; got '2020-01-31 .*: write dates",
        ),
        (np.array([[b"3", b"4"]]), """- column 1: expected numbers; got "b'4'" in row 0: write a plain"""),
        (DAYS, "- column 0: expected numbers; got '2020-01-31 .* in row 0: write dates and durations"),
        ([["abc", 1]], "- column 0: expected numbers; got 'abc' in row 0: encode strings"),
        ([[1], [1, 2]], "X: setting an array element with a sequence.*: expected a table of numbers"),
        ("abc", "X: expected a table of numbers, with one row for each observation; got a str: make"),
        (
            scipy.sparse.csr_array(NUMBERS),
            "got a csr_array: make an array of it, such as by .toarray.. of a sp",
        ),
        (pl.DataFrame({"a": [1]}).lazy(), "expected a data frame in memory; got a lazy LazyFrame"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(given, words):
    with pytest.raises(TableError, match=f"(?s){words}"):
        numeric(given, "X")


def test_a_cell_that_is_neither_number_nor_text_is_an_error_of_type_as_well():
    with pytest.raises(
        CellError, match=r"(?s)got \"{'a': 1}\" in row 0: .*argument must be .* string or a number"
    ):
        numeric(np.array([[{"a": 1}]], dtype=object), "X")
    assert issubclass(CellError, TypeError)


def test_numbers_must_be_computable():
    computable(NUMBERS, ["a", "b"], "X", varying=True)
    computable(NUMBERS * 1e-200, ["a", "b"], "X")
    for scale, words in (
        (1e200, "a: 2e.200 in row 1 is too large"),
        (1e-200, "a: .* lie within 4e-200, too close"),
    ):
        with pytest.raises(TableError, match=words):
            computable(NUMBERS * scale, ["a", "b"], "X", varying=True)
    with pytest.raises(TableError, match="b: all 3 values are 1: a constant carries no information"):
        computable(np.ones((3, 2)), ["a", "b"], "X", varying=True)


def test_what_others_refuse_is_said_with_the_argument():
    with (
        pytest.raises(TableError, match=r"\AX and y: no two dimensions: expected a table"),
        spoken("X and y"),
    ):
        raise TypeError("no two dimensions.")
    with pytest.raises(TableError, match=r"\Aown\Z"), spoken("X"):
        raise TableError("own")
