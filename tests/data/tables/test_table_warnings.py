"""Doubts about tables: what is told, and what looks like it and is not."""

import numpy as np
import pandas as pd
import pytest

from rehearsal_torch.data.tables.table_warnings import (
    alike_classes,
    one_hot,
    rare_codes,
    repeated,
    row_counts,
    stand_ins,
    totals,
)

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


Y = 100 + 20 * np.random.default_rng(0).normal(size=300)
U = np.random.default_rng(1).uniform(0.05, 10, 300)


def put(column, value, rows=45):
    """The column with a value in some of its rows."""
    return np.where(np.arange(len(column)) * 7 % len(column) < rows, value, column)


def told(column, settable=None):
    return [figures["value"] for _, figures in stand_ins(column, settable)]


@pytest.mark.parametrize("rounded", [12, 2])
@pytest.mark.parametrize("count", [300, 30_000])
@pytest.mark.parametrize("value", [-999, -99, -9, -1, 0, 99, 999, 107.3])
def test_a_value_that_repeats_where_nothing_else_does_is_told(value, count, rounded):
    column = 100 + 20 * np.random.default_rng(0).normal(size=count)
    assert told(put(column.round(rounded), value, count * 15 // 100)) == [value]


AGES = np.random.default_rng(0).integers(0, 80, 2000)
PRESSURE = put(72 + 12 * np.random.default_rng(0).normal(size=700), 0.0, 35)


@pytest.mark.parametrize(
    ("column", "settable", "codes"),
    [
        (put(AGES, -1, 400) + 0.0, None, [-1]),
        (put(AGES, 99, 400) + 0.0, None, [99]),
        (put(put(Y, -8.0, 30)[::-1], -9.0, 20), None, [-9, -8]),
        (PRESSURE, None, [0]),
        (PRESSURE, (0, 120), []),
    ],
    ids=["-1", "99", "two", "zero from which others keep away", "zero that may be set"],
)
def test_codes_are_told(column, settable, codes):
    assert told(column, settable) == codes


@pytest.mark.parametrize(
    ("column", "settable"),
    [
        (Y, None),
        (Y.round(), None),
        (np.clip(Y, 80, 130), None),
        (np.clip(Y, 80, None), None),
        (np.maximum(Y - 100, 0), None),
        (put(U, 0.0, 150), None),
        (put(U, 0.0, 150), (0, 10)),
        (put(U + 20, 0.0, 150), (20, 30)),
        (put(U, 5.0, 150), (0, 10)),
        (np.random.default_rng(0).poisson(3, 300) + 0.0, None),
        (np.random.default_rng(0).integers(0, 2, 300) + 0.0, None),
        (np.random.default_rng(0).choice([40.0, 38, 35, 50, 20], 300, p=[0.6, 0.1, 0.1, 0.1, 0.1]), None),
        (put(np.random.default_rng(0).integers(1, 99, 3000), 40, 1400) + 0.0, None),
        (put(np.exp(np.random.default_rng(0).normal(0, 1, 1000)), 0.0, 600), None),
        (np.repeat(np.random.default_rng(0).normal(size=50), 20), None),
        (put(Y, np.nan), None),
        (np.array([]), None),
        (np.full(50, np.nan), None),
    ],
)
def test_what_repeats_by_nature_is_not_told(column, settable):
    assert told(column, settable) == []


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        (put(Y, -999, 2), [-999]),
        (put(Y / 4 + 75, -9, 1), [-9]),
        (put(put(Y / 4 + 75, -999, 2)[::-1], -99, 1), [-999, -99]),
        (put(AGES % 6, 99, 2), [99]),
        (put(AGES, 999, 1), [999]),
        (put(AGES, 99, 1), []),
        (put(Y, -9, 45), []),
        (put(Y, -998, 2), []),
        (put(Y - 100, -99, 1), []),
        (np.exp(np.random.default_rng(0).normal(4, 1, 1000)).round(), []),
    ],
    ids=["-999", "-9", "two", "99", "999", "old", "often", "no code", "both signs", "heavy tail"],
)
def test_a_rare_code_far_from_all_others_is_told_with_its_lines(column, codes):
    sentences = rare_codes(pd.Series(column + 0.0))
    assert [code for _, code in sentences] == codes
    for sentence, code in sentences:
        rows = np.flatnonzero(column == code)
        assert sentence.startswith(f"line{'s' if len(rows) > 1 else ''} {rows[0] + 2}")


def test_winsorised_values_are_rarely_told():
    alarms = 0
    for seed in range(200):
        column = np.exp(np.random.default_rng(seed).normal(size=1000))
        alarms += bool(told(np.minimum(column, np.quantile(column, 0.98))))
    assert alarms <= 4


@pytest.mark.parametrize(
    ("levels", "groups"),
    [
        (["female", "Male", "male"], [["Male", "male"]]),
        (["New York", "New-York", "new_york", "Boston"], [["New York", "New-York", "new_york"]]),
        (["type 1", "Type-1", "type 2"], [["type 1", "Type-1"]]),
        (["St. Louis", "St Louis"], [["St. Louis", "St Louis"]]),
        (["caf\u00e9", "cafe\u0301"], [["caf\u00e9", "cafe\u0301"]]),
        (["A", "B", "AB", "A+", "A-", "A/B"], []),
        (["1-5", "15", "1.5", "<5", ">5", "-1", "1"], []),
    ],
)
def test_names_that_differ_in_case_blanks_or_hyphens_alone_are_alike(levels, groups):
    assert alike_classes(levels) == groups


GRID = pd.DataFrame([[c, s, a] for c in "abc" for s in (0, 1) for a in (20, 30, 40)], columns=["c", "s", "a"])


@pytest.mark.parametrize("name", ["n", "Freq", "count", "weights"])
def test_a_column_may_say_how_many_rows_a_row_stands_for(name):
    counted = GRID.assign(**{name: 1 + np.arange(18) % 7})
    assert row_counts(counted, ["c", "s", "a"]) == [(name, int(counted[name].sum()))]
    assert row_counts(counted, ["c", "s", "a", name]) == [(name, int(counted[name].sum()))]


@pytest.mark.parametrize(
    "frame",
    [
        GRID.assign(dose=1 + np.arange(18) % 7),
        GRID.assign(n=np.arange(18) % 7),
        GRID.assign(n=np.arange(18) + 1),
        GRID.assign(n=1),
        GRID.assign(n=1.5 + np.arange(18) % 7),
        pd.concat([GRID, GRID]).assign(n=1 + np.arange(36) % 7),
        GRID.assign(n=1 + np.arange(18) % 7, a=Y[:18]),
        pd.DataFrame({"weight": 60 + np.arange(300) % 41, "a": np.arange(300) % 97, "c": 0, "s": 1}),
    ],
    ids=["name", "zero", "numbered", "one", "fractions", "repeated", "continuous", "persons"],
)
def test_other_columns_say_nothing_of_the_kind(frame):
    assert row_counts(frame, ["c", "s", "a"]) == []


YEAR = np.random.default_rng(0).integers(0, 5, 400)
FLAG = np.random.default_rng(1).integers(0, 2, 400)


def dummies(names, drop=0):
    return {name: (place == YEAR) + 0.0 for place, name in enumerate(names)}


RARE = {f"dx_{place}": (np.arange(400) == 7 * place) + 0.0 for place in range(6)}
YEARS = [f"year_{y}" for y in range(2019, 2024)]


@pytest.mark.parametrize(
    ("columns", "groups"),
    [
        *(({"x": Y, "flag": FLAG + 0.0, **dummies(names)}, [names]) for names in (YEARS, [*"pqrst"])),
        (dict([*dummies(["d1", "d2", "d3", "d4", "d5"]).items()][1:]), [["d2", "d3", "d4", "d5"]]),
        (dict([*dummies("pqrst").items()][1:]), []),
        ({"male": FLAG + 0.0, "x": Y, "female": 1.0 - FLAG}, [["male", "female"]]),
        (RARE, []),
        ({"one": np.ones(50), "x": Y[:50]}, []),
        ({}, []),
    ],
    ids=["named", "of any name", "without a reference", "of no stem", "complement", "rare", "one", "none"],
)
def test_columns_of_classes_are_told(columns, groups):
    assert one_hot(columns) == groups


def test_rows_that_are_totals_are_told_and_classes_are_not():
    parts = pd.DataFrame(
        {"part": ["x", "y", "Subtotal", "z", "u", "v", "Total:"], "n": [1, 2, 3, 4, 5, 6, 18]}
    )
    assert totals(parts).startswith("lines 4, 8 may be totals")
    assert totals(parts.head(6)).startswith("line 4 may be a total")
    assert totals(pd.DataFrame({"kind": ["total", "part"] * 10})) == ""
