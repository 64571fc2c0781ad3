"""Cases from files and lists, and the bounds of each."""

import pandas as pd
import pytest

from rehearsal_torch.data.problem_file.cases import ranges_of
from rehearsal_torch.data.problem_file.findings import Findings
from rehearsal_torch.data.reading import ReadTable
from rehearsal_torch.spaces.box import Box

BOX = Box.of({"bmi": [20, 35], "drug": {"values": [0, 1]}})
ROWS = ReadTable(pd.DataFrame({"bmi": [22.0, 34.0], "text": ["a", "b"]}), "cases.csv")


def test_bounds_are_cut_to_the_range_of_all_cases():
    found = Findings("p")
    made = ranges_of({"bmi": ["current - 3", "1.1*current"]}, BOX, ROWS, found)
    assert made["bmi"] == [(20.0, pytest.approx(24.2)), (31.0, 35.0)]
    assert ranges_of({"bmi": ["25", "30"]}, BOX, ROWS, found) == {"bmi": [(25.0, 30.0)] * 2}
    assert found.faults == []


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"drug": ["0", "1"]}, "bounds.drug: drug is set to some values only"),
        ({"bmi": ["current -", "1"]}, "bounds.bmi: at character 10 of 'current -'"),
        (
            {"bmi": ["current + 5", "current + 9"]},
            "line 3 of cases.csv: [39, 43] has nothing in common with the range [20, 35]: widen one",
        ),
    ],
)
def test_bounds_that_cannot_be_used(bounds, words):
    found = Findings("p")
    ranges_of(bounds, BOX, ROWS, found)
    assert words in found.faults[0]


def test_bounds_that_meet_in_one_value_are_kept():
    found = Findings("p")
    made = ranges_of({"bmi": ["current", "current"]}, BOX, ROWS, found)
    assert made["bmi"] == [(22.0, 22.0), (34.0, 34.0)]
    assert ranges_of({"bmi": ["10", "20"]}, BOX, ROWS, found)["bmi"] == [(20.0, 20.0)] * 2
    assert found.faults == []
