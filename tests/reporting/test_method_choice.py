"""Why a run used its method, for a terminal and for the page."""

import json

import pytest

from rehearsal_torch.cli.settled import record
from rehearsal_torch.evaluation.recorded_run import read
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.method_choice.rule import SIMPLEST_FIRST, chosen
from rehearsal_torch.methods.applicable import with_method
from rehearsal_torch.reporting.method_choice import reasons
from rehearsal_torch.reporting.run_report import report
from rehearsal_torch.run_folder import RunFolder
from tests.method_choice.test_rule import NOTHING, found
from tests.methods.test_run import configured
from tests.reporting.test_untouched_score import run

VALUES = {"care": [0.61, 0.61, 0.62, 0.60], "cme_stack": [0.60, 0.64, 0.62, 0.62]}


@pytest.fixture
def path(tmp_path):
    config = with_method(configured("dataset=bank", "decision=auto"), "care")
    made = run(tmp_path / "run", [None])
    record(chosen(found(VALUES, NOTHING), 200, SIMPLEST_FIRST), config, RunFolder(made))
    return made


def test_the_report_shows_the_table_and_says_why(path):
    assert "auto took care: its value 61.0 %" in report(path)
    shown = report(path, tables=True)
    assert (
        "auto took care: its value 61.0 % lies within one standard error (2.0 percentage points) of the best"
        in shown
    )
    (line,) = (each for each in shown.splitlines() if "care " in each and "taken" in each)
    cells = [cell.strip() for cell in line.strip("│").split("│")]
    assert cells == [
        "care",
        "0.610",
        "[0.26, 0.36]",
        "0.010 ± 0.020",
        "0.1225",
        "0.2500",
        "0.2500",
        "0.50",
        "taken",
    ]


def test_a_damaged_record_is_refused(path):
    (path / "method_choice.json").write_text(json.dumps({"sentences": "care"}))
    with pytest.raises(PlainFileError, match="sentences: expected a list of strings; got care"):
        reasons(read(path))
