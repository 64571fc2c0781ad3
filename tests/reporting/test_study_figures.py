from xml.etree import ElementTree

import pandas as pd
import pytest

from rehearsal_torch.evaluation.bootstrap import Interval
from rehearsal_torch.reporting.figures import lipschitz_grid, truth_errors
from rehearsal_torch.reporting.style import drawing, save
from rehearsal_torch.studies.sepsis import efficiency
from rehearsal_torch.studies.sepsis import figures as sepsis_figures
from rehearsal_torch.studies.sepsis.efficiency import Setting
from rehearsal_torch.studies.sepsis.episode_rows import COLUMNS, Case, Point


def texts(path):
    return " | ".join(
        "".join(node.itertext()).strip()
        for node in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    )


def point(x, mean, proven=1.0):
    interval = Interval(mean, 0.9 * mean, 1.1 * mean, 5)
    return Point(x, interval, interval, interval, proven)


def test_censored_settings_are_drawn_open_and_say_how_much_is_proven(tmp_path):
    lines = {"A*": [point(1, 1.2), point(2, 1.4, 0.75)], "other": [point(1, 1.1), point(2, 1.1)]}
    with drawing():
        figure = efficiency.draw([Setting("k", lines)])
        shown = texts(save(figure, tmp_path, "x")[1])
    assert shown.count("75% proven") == 2
    assert "Effective branching factor" in shown
    assert "Runtime (s an episode)" in shown
    faces = [line.get_markerfacecolor() for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 1]
    assert faces == ["white"]


def test_the_lipschitz_grid_writes_its_numbers_into_the_cells(tmp_path):
    with drawing():
        shown = texts(
            save(
                lipschitz_grid.draw({(0.1, 0.01): 123.4, (1.0, 0.01): 6.04, (1.0, 0.5): 2.0}),
                tmp_path,
                "grid",
            )[1]
        )
    for number in ("123", "6.0", "2.0", "0.01", "0.5", "0.1"):
        assert number in shown
    assert "Decrease of held-out log-likelihood (%)" in shown


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


def test_truth_errors_are_shares_of_the_error_without_abduction(tmp_path):
    rows = [
        {
            "k": "3",
            "episode": str(e),
            "sequence": "recommended",
            "quantity": "rmse",
            "feature": feature,
            "estimator": estimator,
            "value": str(value),
        }
        for e in range(2)
        for feature in ("SOFA", "GCS")
        for estimator, value in (("learnt", 1.0 + e), ("observed course", 3.0), ("fresh noise", 6.0))
    ]
    with drawing():
        figure = truth_errors.draw(rows)
        shown = texts(save(figure, tmp_path, "truth")[1])
    learnt, unchanged = figure.axes[0].get_lines()
    assert learnt.get_xdata() == pytest.approx([25.0, 25.0])
    assert unchanged.get_xdata() == pytest.approx([50.0, 50.0])
    assert "Treatment: recommended" in shown
    assert "learnt model" in shown
    table = truth_errors.markdown(rows)
    assert any(line.startswith("| recommended | rmse | SOFA | learnt | 1.5 [") for line in table)
