"""Columns as a first draft sees them: missing names, dates, and copies of other columns."""

import numpy as np
import pandas as pd
import pytest
import yaml

from rehearsal_torch.data.tables.reader import ReadTable, TableError
from rehearsal_torch.graphs.graph_notation import graph_of
from rehearsal_torch.problems.drafts.draft_yaml import node, scalar, term, value
from rehearsal_torch.problems.drafts.role_guesses import (
    BACKGROUND,
    CALENDAR,
    check_names,
    columns_of,
    copies,
    has_word,
)
from rehearsal_torch.spaces.inequalities import linear

RANDOM = np.random.default_rng(0)


def test_a_first_row_of_numbers_is_refused():
    frame = pd.DataFrame([[1.0, 2.0, 3.0, 4.0]], columns=["59.0", "2.0", "59.0.1", "1e-3"])
    with pytest.raises(TableError) as refused:
        check_names(ReadTable(frame, "t.csv", ()))
    assert "in the first row; got numbers alone (59.0, 2.0, 59.0.1, ...): write a row" in str(refused.value)
    check_names(ReadTable(frame.rename(columns={"2.0": "y2020"}), "t.csv", ()))


NAMES = ["x", "blood pressure", "and", "a:b", "yes", "1st", "größe", "a`b", "#1: {x}"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_back(name):
    assert yaml.safe_load(f"{{{scalar(name)}: 1}}") == {name: 1}
    assert list(linear(f"2*{term(name)}").weights) == [name]
    assert set(graph_of({"graph": [f"{node(name)} -> z"]}).names) == {name, "z"}
    assert yaml.safe_load(f"limits: {value(f'{term(name)} <= 1')}") == {"limits": f"{term(name)} <= 1"}
    assert node("low") == "low"
    assert value("status in {a, b}") == "status in {a, b}", "no quotes where YAML needs none"
    assert node("very low") == '"very low"'


@pytest.mark.parametrize(
    "name", ["Cigarettes a day", "cigs_per_day", "Sleep (h/day)", "km/year", "visits each month"]
)
def test_a_rate_is_no_part_of_the_calendar(name):
    assert not has_word(name, BACKGROUND[CALENDAR])
    assert has_word(f"day of {name}", BACKGROUND[CALENDAR])


def test_some_columns_cannot_be_variables():
    names = ["a", "", " ", "a\nb", "x" * 201, "Unnamed: 3", 'a "b"']
    found = columns_of(pd.DataFrame(RANDOM.normal(size=(9, len(names))), columns=names))
    assert [bool(each.left_out) for each in found] == [False, *[True] * 6]


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
    (found,) = columns_of(pd.DataFrame({"t": cells}))
    assert (found.kind, found.levels) == (kind, levels)
    wanted = [np.nan if each is None else levels.index(each.strip()) for each in cells]
    np.testing.assert_array_equal(found.cells, wanted)


def test_copies_are_named_with_what_gives_them():
    x, z, w = RANDOM.normal(3, 1, (3, 50))
    columns = {"x": x, "z": z, "same": x, "linear": 5 - 2 * z, "w": w}
    assert copies(columns) == {"same": "x", "linear": "z"}
    assert copies({"z": z, "log": np.log(z - z.min() + 0.1)}) == {"log": "z"}, "in the same order"
    assert copies({"x": x, "y": np.where(np.arange(50) < 9, np.nan, x)}) == {"y": "x"}, "where both are known"
    assert copies({"x": x, "y": x}, "y") == {"x": "y"}, "what is kept is no copy"
    assert copies({"x": x, "y": x}, "xy") == {}
    assert copies({"x": x[:5], "y": x[:5]}) == {}, "too few rows"
    assert copies({}) == {}
