"""The data card."""

from rehearsal_torch.reporting.page.data_card import data_card
from rehearsal_torch.reporting.page.material import material
from tests.toys import recorded_runs
from tests.toys.read_page import Page


def shown(tmp_path, **more):
    run = recorded_runs.alterations(tmp_path, card=recorded_runs.CARD | more)
    return Page(f'<html lang="en"><h1>t</h1><h2>s</h2>{data_card(material(run))}</html>')


def test_sizes_ranges_and_fingerprint_are_shown_and_cautions_are_not(tmp_path):
    page = shown(tmp_path)
    assert page.faults == []
    for words in (
        "source table.csv",
        "rows 400",
        "fingerprint abc123",
        "rate -0.5 1.5",
        "desired region repaid ≥ 0.6",
    ):
        assert words in page.said
    assert "observational" not in page.said
    assert "cliques" not in page.said


def test_units_and_nested_values(tmp_path):
    said = shown(
        tmp_path,
        features={"GCS": {"min": 3.0, "median": 13.0, "max": 15.0, "unit": "points"}, "odd": 3},
        splits={"train": {"patients": 5}, "test": {"patients": 2}},
        levels={"a": [1, 2], "b": 3},
        candidates=[["bmi"], ["bp"], ["bmi", "bp"]],
        kept_aside=0,
    ).said
    assert "GCS 3 13 15 points" in said
    assert "splits patients train 5 test 2" in said
    assert "levels a (1, 2), b (3)" in said
    assert "sets of variables that may be set together bmi; bp; bmi and bp" in said
    assert "rows held out to score the method 0" in said


def test_long_values_are_cut(tmp_path):
    assert "x" * 300 + " ..." in shown(tmp_path, note="x" * 400).said


def test_no_card_is_told(tmp_path):
    run = recorded_runs.alterations(tmp_path, card={})
    assert data_card(material(run)) == "<p>The run recorded no data card.</p>"
