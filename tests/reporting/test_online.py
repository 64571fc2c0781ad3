"""Rounds that learn from each other: their rows, sums, figure and record."""

import math

import numpy as np
import pytest

from rehearsal_torch.evaluation.online_rows import COLUMNS, online, online_row, online_typed
from rehearsal_torch.evaluation.rehearsal_rows import written
from rehearsal_torch.evaluation.summaries import online_summary
from rehearsal_torch.files.rows import read_rows
from rehearsal_torch.reporting.figures.online_panels import by_round, draw
from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.studies.rounds_record import Repeat, RoundsRecord

DECIDED = {
    "index": 4,
    "given": {"x": 1.0},
    "kind": "rehearse",
    "status": "recommended",
    "trace": {"search": "informative"},
    "alteration": {"a": 0.25, "b": -1.0},
    "value": 0.5,
    "success": True,
    "answer": {"rows": {}, "altered": []},
    "certificate": {"lower": 0.6, "upper": 0.7},
    "score": {"probability": 0.65, "oracle": 0.8, "no_action": 0.1},
    "seconds": 0.1,
}


def rows(repeats=3, rounds=30, method="m", bound=0.05):
    """Truth rises to .7 of .8; one success in two rounds; information halves."""
    found = []
    for repeat in range(repeats):
        for index in range(rounds):
            true = 0.7 - 0.4 / (1 + index) + 0.01 * repeat
            told = {
                "success": index % 2,
                "p_true": true,
                "oracle": 0.8,
                "information": 2.0**-index,
                "lower": true - bound,
                "upper": true + 0.05,
            }
            found.append(
                {
                    "world": "w",
                    "method": method,
                    "tau": "0.7",
                    "repeat": repeat,
                    "round": index + 1,
                    "target": "a" if index else "",
                    "value": "1",
                    **told,
                }
            )
    return [{**row, "seconds": 0.1} for row in found]


def test_a_row_says_what_was_done_and_what_came_of_it():
    row = online_row("w", "m", "0.7", 2, DECIDED)
    assert tuple(row) == COLUMNS
    assert (row["round"], row["target"], row["value"], row["success"], row["p_true"]) == (
        5,
        "a+b",
        "0.25+-1",
        1,
        0.65,
    )
    assert (row["oracle"], row["information"], row["lower"], row["upper"]) == (0.8, 0.5, 0.6, 0.7)
    assert online(DECIDED)
    assert not online({**DECIDED, "answer": None})


def test_what_is_not_known_is_left_empty():
    row = online_row(
        "w",
        "m",
        "",
        0,
        {
            "index": 0,
            "alteration": None,
            "trace": {"search": "mixed_integer"},
            "value": 0.9,
            "success": None,
            "answer": {},
        },
    )
    assert written([row], COLUMNS, head=False) == "w,m,,0,1,,,,,,,,,\n"
    refused = online_row("w", "m", "0.7", 0, {**DECIDED, "alteration": None})
    assert written([refused], COLUMNS, head=False) == "w,m,0.7,0,5,,,1,0.65,0.8,,,,0.1\n"
    assert math.isnan(row["information"]), "the value of another search is no information"


def test_rows_come_back_from_csv(tmp_path):
    (tmp_path / "rounds.csv").write_text(written(rows(), COLUMNS))
    found = online_typed(read_rows(tmp_path / "rounds.csv"))
    assert [row["round"] for row in found] == [row["round"] for row in rows()]
    np.testing.assert_allclose([row["p_true"] for row in found], [row["p_true"] for row in rows()], rtol=1e-5)


def test_sums_are_over_repeats():
    one = online_summary(rows())
    true = [np.mean([row["p_true"] for row in rows() if row["repeat"] == repeat]) for repeat in range(3)]
    assert (one.repeats, one.rounds, one.successes) == (3, 30, 15)
    assert one.probability.mean == pytest.approx(np.mean(true))
    assert one.deviation == pytest.approx(0.01)
    late = [row["p_true"] for row in rows() if row["round"] > 10]
    assert (one.late, one.left) == (pytest.approx(np.mean(late)), pytest.approx(0.8 - np.mean(late)))
    assert one.targets == {"a": pytest.approx(29 / 30), "-": pytest.approx(1 / 30)}
    assert (one.covered, one.width) == (1.0, pytest.approx(0.1))
    assert online_summary(rows(bound=-0.01)).covered == 0.0
    assert math.isnan(online_summary(rows(1)).deviation)


def test_curves_are_means_with_deviations():
    rounds, means, deviations = by_round(rows(), "p_true")
    assert rounds.tolist() == list(range(1, 31))
    assert means[-1] == pytest.approx(0.7 - 0.4 / 30 + 0.01)
    np.testing.assert_allclose(deviations, 0.01)
    assert by_round(rows(), "success", summed=True)[1][-1] == 15
    assert by_round([*rows(1, 30), *({**row, "repeat": 1} for row in rows(1, 12))], "p_true")[0][-1] == 12, (
        "as far as all repeats go"
    )


def test_a_figure_has_a_line_of_panels_a_world():
    without = [
        {**row, "information": math.nan, "lower": math.nan, "upper": math.nan} for row in rows(method="other")
    ]
    with drawing():
        figure = draw({"w": {"m": rows(), "other": without}, "v": {"other": without}})
    seen = [axes.get_visible() for axes in figure.axes]
    assert seen == [True, True, True, True, True, True, False, False], "nothing is drawn of what nobody told"
    assert [len(axes.lines) for axes in figure.axes[:4]] == [3, 3, 1, 1]
    assert figure.axes[3].get_title() == "Bounds, m"


def test_the_record_keeps_what_is_done_and_drops_what_is_not(tmp_path):
    record = RoundsRecord(tmp_path)
    one, other, bad = (Repeat("w", "m", "0.7", number) for number in range(3))
    record.add(
        one,
        [row for row in rows() if row["repeat"] == 0],
        {"state": "ok", "rounds": 30, "seconds": 1.0, "commit": "c", "message": ""},
    )
    record.add(bad, [], {"state": "failed", "rounds": 0, "seconds": 1.0, "commit": "c", "message": "why"})
    with record.rows_file.open("a") as file:
        file.write(
            written([row for row in rows() if row["repeat"] == 1][:3], COLUMNS, head=False) + "w,m,0.7,1,4,a"
        )
    torn = record.rows_file.read_text()
    again = RoundsRecord(tmp_path)
    assert len(again.rows()) == 30
    assert record.rows_file.read_text() == torn, "reading changes nothing"
    again.mend()
    assert again.todo([one, other, bad]) == [other, bad]
    assert len(read_rows(record.rows_file)) == 30
    assert record.rows_file.read_text().endswith("\n")
    assert len(read_rows(record.jobs_file)) == 1
