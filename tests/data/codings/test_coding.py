"""Codings of texts as numbers, and back."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.data.codings.coding import (
    Coding,
    alternatives,
    coded,
    lost_classes,
    rare_classes,
    text_of,
    unseen_levels,
)

TEXTS = st.lists(
    st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=6)
    .map(str.strip)
    .filter(lambda text: text and "${" not in text and text != "???"),
    min_size=2,
    max_size=8,
    unique=True,
)


@given(TEXTS, st.booleans(), st.data())
def test_what_is_encoded_is_decoded(levels, classes, data):
    reference = data.draw(st.sampled_from(levels)) if classes else None
    coding = Coding("v", tuple(levels), reference)
    cells = data.draw(st.lists(st.sampled_from([*levels, None]), min_size=1, max_size=20))
    rows = coding.encoded(coding.places(pd.Series(cells, dtype=object)))
    assert rows.shape == (len(cells), len(coding.columns))
    said = [None if np.isnan(row).any() else coding.text(row) for row in rows]
    assert said == cells
    assert Coding.of("v", coding.to_plain()) == coding


def test_levels_are_codes_and_classes_are_indicators():
    levels, classes = Coding("s", ("low", "medium", "high")), Coding("ward", ("A", "B", "C"), "B")
    column = pd.Series(["high", None, "low"])
    np.testing.assert_array_equal(levels.encoded(levels.places(column)), [[2.0], [np.nan], [0.0]])
    assert classes.columns == ("ward=A", "ward=C")
    found = classes.encoded(classes.places(pd.Series(["A", "B", "C"])))
    np.testing.assert_array_equal(found, [[1, 0], [0, 0], [0, 1]])
    assert (levels.words, classes.words) == (
        "low = 0, medium = 1, high = 2",
        "A, B, C, with B as the reference",
    )


def test_of_an_outcome_only_whether_its_class_is_desired_is_kept():
    coding = Coding("status", ("well", "mild", "ill"), None, ("mild", "well"))
    assert (coding.columns, coding.desired, coding.of_classes) == (("status",), ("well", "mild"), True)
    found = coding.encoded(coding.places(pd.Series(["ill", None, "mild", "well"])))
    np.testing.assert_array_equal(found, [[0.0], [np.nan], [1.0], [1.0]])
    assert [coding.text([each]) for each in (1.0, 0.0, 2.0)] == ["well or mild", "ill", None]
    assert coding.words == "well or mild = 1, ill = 0"
    assert coding.to_plain() == {"classes": ["well", "mild", "ill"], "desired": ["well", "mild"]}
    assert Coding.of("status", coding.to_plain()) == coding
    assert not Coding("s", ("a", "b")).of_classes
    assert alternatives(["a", "b", "c"]) == "a, b or c"
    assert alternatives([str(each) for each in range(12)]).endswith("9, ... (12 in all)")


def test_a_number_states_the_level_that_is_written_like_it():
    coding = Coding("v", ("1", "2", "3+"))
    assert [coding.place(cell) for cell in (1, 2.0, "3+", np.int64(1), 3, float("nan"))] == [
        0,
        1,
        2,
        0,
        None,
        None,
    ]
    assert [text_of(each) for each in (0.1, -0.0, True, None, 10**400)] == ["0.1", "0", None, None, None]


def test_what_is_no_code_has_no_text():
    coding = Coding("v", ("no", "yes"))
    assert [coding.text([each]) for each in (1.0, 1 + 1e-12, 0.5, 2.0, "x", float("inf"))] == [
        "yes",
        "yes",
        None,
        None,
        None,
        None,
    ]
    assert Coding("w", ("A", "B", "C"), "A").text([1.0, 1.0]) is None


CODINGS = {"smoker": Coding("smoker", ("no", "yes")), "ward": Coding("ward", ("A", "B", "C"), "A")}


def rows(**columns):
    return pd.DataFrame(
        {"smoker": ["no", "yes", None], "ward": ["C", "A", "B"], "age": [1.0, 2, 3], **columns}
    )


def test_a_column_of_the_name_of_an_indicator_is_a_fault():
    found = coded(rows(**{"ward=B": [0, 0, 1]}), CODINGS)
    assert found.faults == ("ward=B: there is a column of this name beside the column of classes: rename it",)


def test_rare_lost_and_unseen_classes():
    table = pd.DataFrame({"ward": ["A"] * 9 + ["B"] * 4})
    assert rare_classes(table, CODINGS) == {
        "ward": "has classes that few rows have (B in 4 of 13 rows), so that little is known of them: join "
        "them with others, or add rows"
    }
    assert unseen_levels(CODINGS["ward"], table["ward"]) == ["C"]
    (told,) = lost_classes(coded(table, CODINGS).frame, CODINGS.values())
    assert told.startswith("ward: none of 13 rows has the class C;")
