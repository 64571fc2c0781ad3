"""Columns as a first draft sees them: missing names, dates, and copies of other columns."""

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.data.reading import ReadTable, TableError
from rehearsal_torch.problems.written.draft_columns import check_names, copies, numbering, of_dates

RANDOM = np.random.default_rng(0)


def test_a_first_row_of_numbers_is_refused():
    frame = pd.DataFrame([[1.0, 2.0, 3.0, 4.0]], columns=["59.0", "2.0", "59.0.1", "1e-3"])
    with pytest.raises(TableError) as refused:
        check_names(ReadTable(frame, "t.csv", ()))
    assert "in the first row; got numbers alone (59.0, 2.0, 59.0.1, ...): write a row" in str(refused.value)
    check_names(ReadTable(frame.rename(columns={"2.0": "y2020"}), "t.csv", ()))


def test_dates_are_told_from_texts_and_numbers():
    assert of_dates(pd.Series(["2024-01-01", None, "2024-02-01"]))
    assert of_dates(pd.to_datetime(pd.Series(["2024-01-01"])))
    assert not of_dates(pd.Series(["2024-01-01", "soon"]))
    assert not of_dates(pd.Series([20240101, 20240102]))
    assert not of_dates(pd.Series([None, None], dtype=object))


def test_copies_are_named_with_what_gives_them():
    x, z, w = RANDOM.normal(3, 1, (3, 50))
    columns = {"x": x, "z": z, "same": x, "linear": 5 - 2 * z, "xz": x * z, "xzw": x * z * w, "w": w}
    given = {"same": "x", "linear": "z", "xz": "x times z", "xzw": "xz times w"}
    assert copies(columns) == given
    assert copies({**columns, "square": x**2})["square"] == "x times x"
    assert copies({"x": x, "y": x}, frozenset("y")) == {"x": "y"}, "what is kept is no copy"
    assert copies({"x": x, "y": x}, frozenset("xy")) == {}
    assert copies({"x": x[:5], "y": x[:5]}) == {}, "too few rows"
    assert copies({}) == {}


def test_whole_numbers_without_gaps_number_the_rows():
    assert numbering(np.array([3.0, 1.0, 2.0]))
    assert not any(numbering(np.array(each)) for each in ([1.0, 2.0], [1.0, 2.0, 4.0], [0.5, 1.5, 2.5]))
    assert not numbering(np.array([1.0, 2.0, np.nan]))
