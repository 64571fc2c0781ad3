"""Tables of texts read as numbers."""

import numpy as np
import pandas as pd

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.codings.columns import coded, lost_classes, rare_classes, unseen

CODINGS = {"smoker": Coding("smoker", ("no", "yes")), "ward": Coding("ward", ("A", "B", "C"), "A")}


def rows(**columns):
    return pd.DataFrame(
        {"smoker": ["no", "yes", None], "ward": ["C", "A", "B"], "age": [1.0, 2, 3], **columns}
    )


def test_codes_take_the_place_of_texts():
    found = coded(rows(), CODINGS)
    assert found.faults == ()
    np.testing.assert_array_equal(found.frame["smoker"], [0, 1, np.nan])
    np.testing.assert_array_equal(found.frame[["ward=B", "ward=C"]], [[0, 1], [0, 0], [1, 0]])
    assert list(found.frame["ward"]) == ["C", "A", "B"]
    assert coded(rows(), {}).frame.equals(rows())


def test_a_column_of_the_name_of_an_indicator_is_a_fault():
    found = coded(rows(**{"ward=B": [0, 0, 1]}), CODINGS)
    assert found.faults == ("ward=B: there is a column of this name beside the column of classes: rename it",)


def test_rare_lost_and_unseen_classes():
    table = pd.DataFrame({"ward": ["A"] * 9 + ["B"] * 4})
    assert rare_classes(table, CODINGS) == {
        "ward": "has classes that few rows have (B in 4 of 13 rows), so that little is known of them: join "
        "them with others, or add rows"
    }
    assert unseen(CODINGS["ward"], table["ward"]) == ["C"]
    (told,) = lost_classes(coded(table, CODINGS).frame, CODINGS.values())
    assert told.startswith("ward: none of 13 rows has the class C;")
