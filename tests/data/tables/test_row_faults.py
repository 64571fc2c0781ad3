"""Faults of the columns beside the variables of a task."""

import pandas as pd

from rehearsal_torch.data.tables.row_faults import unit_faults


def test_units_are_known_for_every_row_and_differ():
    frame = pd.DataFrame({"shop": ["n", None], "one": ["a", "a"], "two": ["a", "b"]})
    assert unit_faults(frame, None) == unit_faults(frame, "two") == []
    assert unit_faults(frame, "shop") == ["unit: 'shop' is missing in line 3: name the unit of every row"]
    assert unit_faults(frame, "one")[0].startswith("unit: 'one' is the same in all rows")
    assert unit_faults(frame, "shops")[0].startswith("unit: no column 'shops'; did you mean 'shop'?")
