"""Rows that stand in a table twice are told; those that agree by chance are not."""

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.data.tables.repeated_rows import repeated

RANDOM = np.random.default_rng(3)
ROWS = pd.DataFrame({"x": RANDOM.normal(size=100), "group": RANDOM.choice(["a", "b"], 100), "n": range(100)})


def twice(frame, count):
    return pd.concat([frame, frame.head(count)], ignore_index=True)


@pytest.mark.parametrize(
    "frame",
    [
        ROWS,
        twice(ROWS, 5),
        twice(ROWS, 10).assign(entry=range(110)),
        pd.DataFrame({"yes": RANDOM.integers(0, 2, 500), "class": RANDOM.choice(list("abc"), 500)}),
        pd.DataFrame({"age": RANDOM.integers(20, 80, 500), "yes": RANDOM.integers(0, 2, 500)}),
        pd.DataFrame({"warm": RANDOM.normal(20, 3, 800).round(1), "yes": RANDOM.integers(0, 2, 800)}),
        pd.DataFrame(columns=["x"], dtype=float),
    ],
    ids=["none", "few", "other", "discrete", "ages", "rounded", "empty"],
)
def test_what_is_no_repetition_is_not_told(frame):
    assert repeated(frame) == ""


def test_missing_cells_agree_with_each_other():
    frame = twice(ROWS.assign(x=ROWS["x"].where(ROWS.index % 9 > 0)), 20)
    assert repeated(frame).startswith("20 of 120 rows (17%)")
