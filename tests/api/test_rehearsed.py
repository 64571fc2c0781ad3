"""The held-out score that comes with the decisions of `rehearse`."""

import pandas as pd
import pytest

import rehearsal_torch as rt
from rehearsal_torch.api.rehearse import NONE, Rehearsed
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.world_size import SampleSize
from tests.api.test_rehearse import CASES, TASK


@pytest.fixture(scope="module")
def frame():
    table = Loan(size=SampleSize(rows=80)).observations()
    return pd.DataFrame(table.values.numpy(), columns=list(table.names))


def test_decisions_are_a_list_that_says_when_no_row_was_held_out(frame):
    found = rt.rehearse(frame, TASK, CASES, method="care")
    assert isinstance(found, list)
    assert (len(found), found.untouched, found.held_out()) == (2, None, NONE)
    assert Rehearsed(found) == found


@pytest.mark.slow
def test_held_out_rows_are_scored_by_their_unit(frame):
    found = rt.rehearse(frame, TASK, CASES, method="care", **{"dataset.validation": 0.25})
    assert found.untouched is not None
    assert found.untouched.rows == 20
    assert found.held_out() == found.untouched.line()
    task = TASK | {"unit": "who"}
    together = rt.rehearse(
        frame.assign(who=[row // 20 for row in range(80)]), task, CASES, method="care",
        **{"dataset.validation": 0.5},
    )  # fmt: skip
    assert together.untouched is not None
    assert together.untouched.rows == 40
