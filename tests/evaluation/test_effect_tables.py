"""Mean effects as rows of a file, and the sentence that a report makes of them."""

import pytest

from rehearsal_torch.data.estimate import DIFFERENCE, Estimate
from rehearsal_torch.evaluation.effect_tables import COLUMNS, NUMBERS, AverageEffect, rows_of, sentence
from rehearsal_torch.files.csv_rows import as_csv, read_rows

GAIN, CHECK = Estimate(0.12, DIFFERENCE, 0.07, 0.17, 0.95), Estimate(0.11, DIFFERENCE, 0.05, 0.17, 0.95)

ZERO = Estimate(0.02, DIFFERENCE, -0.02, 0.06, 0.95)


def effect(value="yes", check=CHECK, **rest):
    parts = {"against": {}, "gain": GAIN, "beyond": 0.0, "told": True, "contradicted": False, "levels": True}
    return AverageEffect({"quit": value}, **(parts | {"check": check} | rest))


def test_a_report_says_few_levels_against_no_action(tmp_path):
    effects = [effect(), effect("no", told=False, gain=ZERO), effect(against={"quit": "no"})]
    (tmp_path / "average.csv").write_text(as_csv(rows_of(effects), "nan"))
    rows = read_rows(tmp_path / "average.csv", COLUMNS, NUMBERS)
    assert sentence(rows) == (
        "On average over the rows, against no action: quit yes +12 percentage points (95% interval 7 to 17), "
        "by a second estimate 5 to 17; quit no +2 percentage points (-2 to 6), by a second estimate 5 to 17, "
        "not told from zero but by the second estimate."
    )
    assert sentence(rows[2:]) == ""
    assert sentence([{**rows[0], "levels": "no"}]) == ""


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (effect(), "quit yes against no action: +12 percentage points (95% interval 7 to 17), doubly robust"),
        (effect(2.5, None, told=False), "quit 2.5 against no action: +12 percentage points (95% interval"),
        (effect(contradicted=True), "the two contradict each other"),
        (effect("no", None, told=False, gain=ZERO), "(95% interval -2 to 6); not told from zero"),
    ],
)
def test_an_effect_is_printed_as_a_sentence(one, text):
    assert text in str(one)
    assert ("not told from zero" in str(one)) == (not one.told)
