"""Which columns of texts are variables in a first draft."""

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.problems.written.text_columns import TextColumn, text_column


@pytest.mark.parametrize(
    ("cells", "kind", "levels"),
    [
        (["yes", "no", None, "yes "], "binary", ("no", "yes")),
        (["High", "Low", "Medium"], "ordinal", ("Low", "Medium", "High")),
        (["severe", "mild", "none "], "ordinal", ("none", "mild", "severe")),
        (["high", "low"], "binary", ("low", "high")),
        (["C", "A", "B"], "categorical", ("A", "B", "C")),
    ],
)
def test_few_texts_are_levels_or_classes(cells, kind, levels):
    cells = [*cells, *cells]
    found = text_column(pd.DataFrame({"t": cells}), "t")
    assert isinstance(found, TextColumn)
    assert (found.kind, found.levels) == (kind, levels)
    wanted = [np.nan if each is None else levels.index(each.strip()) for each in cells]
    np.testing.assert_array_equal(found.places, wanted)


@pytest.mark.parametrize("cells", [[1, 2], ["1", "2", "3+"], ["a", "a"], [None, None]])
def test_numbers_and_constants_are_no_columns_of_texts(cells):
    assert text_column(pd.DataFrame({"t": cells}), "t") is None


def test_many_texts_are_no_variable_and_are_not_shown():
    told = text_column(pd.DataFrame({"t": [f"Jane {place}" for place in range(13)]}), "t")
    assert isinstance(told, str)
    assert told.startswith("13 different texts")
    assert "Jane" not in told
