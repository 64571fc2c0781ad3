"""The sepsis study's tables and figures."""

import pandas as pd
import pytest

from rehearsal_torch.reporting.style import drawing, save
from rehearsal_torch.studies.sepsis import figures as sepsis_figures
from rehearsal_torch.studies.sepsis.episode_rows import COLUMNS, Case
from tests.toys.drawn import texts


@pytest.fixture
def frame():
    rows = [
        (
            "7",
            12,
            k,
            "branch_and_bound",
            "",
            0,
            1.0,
            -76.0,
            -80.0,
            0.01 * k + 0.02 * e,
            5,
            5,
            1.0 + 0.1 * e,
            10,
            0.1,
            True,
        )
        for k in (1, 2, 3)
        for e in range(3)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def test_the_study_s_tables_and_figures_hold_the_means_of_its_rows(frame, tmp_path):
    cases = [Case(12, k, "branch_and_bound", "", 0, 1.0) for k in (1, 2, 3)]
    stages = {"lipschitz": [cases[2]], "samples": [], "changes": cases, "anchors": []}
    with drawing():
        found = sepsis_figures.figures(frame, stages)
        assert set(found) == {"efficiency", "improvement_by_changes", "improvement"}
        assert "k = 3: median 5.00% (n = 3)" in texts(save(found["improvement"], tmp_path, "improvement")[1])
    line = next(
        line for line in sepsis_figures.tables(frame, stages) if line.startswith("| branch and bound | 2 |")
    )
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[2] == "3"
    assert cells[3].startswith("1.1 [")
    assert cells[5].startswith("4 [")
    assert cells[6] == "100"


def test_unproven_means_are_marked_as_lower_bounds(frame):
    frame.loc[0, "proven"] = False
    lines = sepsis_figures.tables(frame, {"changes": [Case(12, 1, "branch_and_bound", "", 0, 1.0)]})
    assert lines[-1].count("≥ ") == 3
    assert lines[-1].endswith("| 67 |")
