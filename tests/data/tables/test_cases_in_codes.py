"""Cases of texts."""

import pandas as pd
import pytest

from rehearsal_torch.data.reading import TableError
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.tables.cases import cases_in_codes
from tests.data.codings.test_written import TASK


def test_the_context_is_needed_and_present_values_are_not():
    task = RehearsalTask.of(TASK)
    found = cases_in_codes(pd.DataFrame({"ward": ["C", "A"], "age": [1, 2]}), "the cases", task)
    assert found[["ward=B", "ward=C"]].to_numpy().tolist() == [[0, 1], [0, 0]]
    with pytest.raises(TableError) as told:
        cases_in_codes(pd.DataFrame({"smoker": ["no", "maybe"]}), "the cases", task)
    assert str(told.value).splitlines() == [
        "the cases: 2 faults, nothing was decided",
        "- smoker: expected one of no, yes; got 'maybe' in line 3: no row to learn from has it, so that "
        "nothing is known of it: correct it, or leave the case out",
        "- no column 'ward'; there are smoker",
    ]
