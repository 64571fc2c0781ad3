import csv
import io
import math

import pytest

from rehearsal_torch.evaluation.rehearsal_rows import row, truth_bounds
from rehearsal_torch.evaluation.summaries import summed
from rehearsal_torch.files.rows import as_csv
from rehearsal_torch.reporting import decision_table

ACTED = {
    "identity": "7",
    "kind": "rehearse",
    "status": "may",
    "given": {"x": 0.5},
    "alteration": {"a": 1.25},
    "estimate": {"point": 0.8, "lower": 0.7, "upper": 0.9},
    "baseline": {"point": 0.3},
    "trace": {"support": 0.95},
    "score": {"probability": 0.75, "oracle": 0.9, "no_action": 0.25, "share": 0.77},
    "seconds": 0.5,
    "findings": [{"kind": "note", "text": "little support"}],
}
REFUSED = ACTED | {
    "identity": "8",
    "status": "leave",
    "alteration": None,
    "trace": {"would_set": {"a": 2.0}},
    "reason": {"kind": "invalid", "text": "too far from the rows"},
    "findings": [],
    "score": {"probability": 0.25, "oracle": 0.9, "no_action": 0.25, "share": 0.0},
}


def test_what_would_overturn_a_case_stands_beside_it_and_below():
    known = ACTED | {
        "sensitivity": {"tipping": 1.5, "basis": "interval", "yardstick": 1.7, "covariate": "age"}
    }
    lines = decision_table.cases([known, REFUSED], "Decisions").splitlines()
    acted, refused = (next(line for line in lines if f"│ {n} " in line) for n in "78")
    assert [cell.strip() for cell in acted.strip("│").split("│")][5] == "1.50"
    assert [cell.strip() for cell in refused.strip("│").split("│")][5] == "-"
    assert lines[-1].startswith("A hidden common cause would have to make this action 1.50 times as likely")
    assert lines[-1].endswith("age, makes the action 1.70 times as likely, or as unlikely.")
    doubtful = ACTED | {"sensitivity": known["sensitivity"] | {"tipping": 1.0}}
    assert decision_table.tipping(doubtful) == "none", "its interval contains no action already"
    first, second = decision_table.per_decision([known, REFUSED], "bank", "cme", 0)
    assert (first["tipping"], first["yardstick"]) == (1.5, 1.7)
    assert "tipping" not in second


BOTH = ACTED | {
    "estimate": {"point": 0.8},
    "certificate": {
        "lower": 0.75,
        "upper": 0.85,
        "truth_lower": 0.5,
        "truth_upper": 0.95,
        "truth_least": 0.55,
    },
}


def test_each_interval_names_what_it_bounds():
    text = decision_table.cases([BOTH, REFUSED], "Decisions")
    column = [line.strip("│┃").replace("┃", "│").split("│")[4:5] for line in text.splitlines()]
    assert [cell.strip() for cells in column for cell in cells if cell.strip()][:7] == [
        "intervals:",
        "posterior mean,",
        "truth",
        "0.750 to 0.850",
        "0.500 to 0.950",
        "-",
        "-",
    ]
    assert "intervals:" not in decision_table.cases([ACTED], "Decisions")
    rows = [row("w", "m", 0, BOTH) | truth_bounds(BOTH)]
    summary = decision_table.methods({"m": summed(rows, 0)}, "Methods")
    found = {
        cells[1].strip(): cells[2].strip()
        for cells in (line.split("│") for line in summary.splitlines())
        if len(cells) == 4
    }
    assert found["intervals of the posterior mean that contain the truth"] == "100% of 1"
    assert found["intervals of the truth that contain it"] == "100% of 1"
    assert found["one-sided lower bounds that it reaches"] == "100%"
    (line,) = decision_table.per_decision([BOTH], "w", "m", 0)
    assert [line[key] for key in ("lower", "truth_lower", "truth_upper")] == [0.75, 0.5, 0.95]


def test_what_the_estimates_of_decisions_that_set_nothing_are_of_is_said():
    kept = REFUSED | {"status": "leave", "unchanged": {"point": 0.7}}
    rows = [row("w", "m", 0, one) for one in (ACTED, kept)]
    head = "  where nothing is set, that of"
    counts = ((1, 1), (2, 1), (1, 0), (0, 0))
    found = {str(each): summed(rows, *each) for each in counts}
    cells = {line[0]: line[1:] for line in decision_table.method_rows(found)}
    assert cells[head] == ["the present values", "the present values, or no action", "no action", "-"]
    assert head not in {line[0] for line in decision_table.method_rows({"m": found["(1, 0)"]})}


def test_a_stack_has_a_column_that_says_which_of_its_estimators_spoke():
    stacked = {**ACTED, "trace": {**ACTED["trace"], "indicator_weight": 0.4}}
    lines = decision_table.per_decision([stacked, REFUSED], "w", "m", 3)
    first, second = csv.DictReader(io.StringIO(as_csv(lines)))
    assert (first["indicator_weight"], second["indicator_weight"]) == ("0.4", "")
    assert "indicator_weight" not in decision_table.per_decision([ACTED], "w", "m", 3)[0]


@pytest.mark.parametrize(
    ("value", "shown"), [(0.12345, "0.123"), (None, "-"), ("", "-"), ("0.5", "0.500"), (math.nan, "-")]
)
def test_probabilities_have_three_decimals(value, shown):
    assert decision_table.figure(value) == shown
