"""Reports of decisions in foresight, on a run whose numbers are known by hand."""

import csv
import io
import json
import math

import pytest

from rehearsal_torch.cli.method_of_problem import record
from rehearsal_torch.evaluation.claim_rows import COLUMNS, row, truth_bounds, typed, written
from rehearsal_torch.evaluation.method_summaries import summed
from rehearsal_torch.files.csv_rows import as_csv
from rehearsal_torch.methods.method_choice import chosen, with_method
from rehearsal_torch.reporting import alteration_report, run_report
from rehearsal_torch.reporting.alteration_report import method_rows
from rehearsal_torch.reporting.run_report import report
from rehearsal_torch.reporting.text_table import text_table
from rehearsal_torch.run_folder import SECONDS, RunFolder
from tests.methods.test_method_choice import NOTHING, found
from tests.methods.test_run_parts import configured
from tests.reporting.test_no_action_score import run as untouched_run

SCORES = [(0.8, 0.4, 0.9), (0.6, 0.5, 0.7), (0.3, 0.3, 0.8)]


def line(index, score=True):
    acted = index < 2
    one = {"index": index, "kind": "rehearse", "identity": str(index), "given": {"x": 0.25 * index}}
    one |= {"status": "may" if acted else "leave", "alteration": {"a": 1.5} if acted else None, "value": 0.1}
    one |= {
        "estimate": {
            "point": 0.7,
            "of": "chance",
            "lower": 0.65,
            "upper": 0.75 + 0.1 * (index == 0),
            "level": 0.95,
        }
    }
    one |= {
        "baseline": {"point": 0.45, "of": "chance"},
        "findings": [],
        "reason": None if acted else {"kind": "no_support", "text": "no row comes near"},
    }
    one |= {"trace": {"search": "toy", "altered": ["a"]} | ({} if acted else {"would_set": {"a": 9.0}})}
    return one | {
        "score": dict(zip(("probability", "no_action", "oracle"), SCORES[index], strict=True))
        | {"share": None}
        if score
        else {}
    }


def run(path, score=True):
    folder = RunFolder(path)
    folder.write_yaml("config.yaml", {"seed": 3, "name": "auf"})
    folder.write_json("run.json", {"kind": "rehearse", "choices": {"decision": "cme", "dataset": "bank"}})
    folder.write_metrics([(index, SECONDS, 0.01 * (index + 1)) for index in range(3)])
    folder.write("decisions.jsonl", "".join(json.dumps(line(index, score)) + "\n" for index in range(3)))
    return path


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_asked_for_tables_the_terminal_shows_those_of_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(run_report, "figures", lambda run, words: {})
    shown = report(run(tmp_path), tables=True)
    cells = [[cell.strip() for cell in text.split("│")[1:-1]] for text in shown.splitlines() if "│" in text]
    acted, refused = (next(row for row in cells if row[0] == case) for case in "02")
    assert acted[:5] == ["0", "may help", "set a to 1.5", "0.45", "0.7"]
    assert refused[1] == "cannot tell"
    told = {row[0]: row[1] for row in cells if len(row) == 2}
    assert (told["cases"], told["cases without action"]) == ("3", "1")
    assert told["true probability of a desired outcome"] == f"{1.7 / 3:.3f}"
    assert (told["with no action"], told["best possible"]) == ("0.400", "0.800")
    assert told["share of the possible gain"] == "42%"
    assert told["estimated probability"] == f"{(0.7 + 0.7 + 0.45) / 3:.3f}"
    # .8 lies in [.65, .85]; .6 does not lie in [.65, .75]; what is declined has no interval.
    assert told["intervals that contain the truth"] == "50% of 2"
    assert told["median seconds per decision"] == "0.02"
    truth = (
        "The truth, which this simulated world knows: 57 % after the decisions, 40 % with no action, 80 % at"
    )
    assert truth in shown


@pytest.mark.slow
def test_the_files_hold_a_row_a_decision_and_a_row_a_method(tmp_path):
    report(run(tmp_path))
    rows = read(tmp_path / "table.csv")
    assert tuple(rows[0])[: len(COLUMNS)] == COLUMNS
    assert [(each["dataset"], each["method"], each["seed"], each["set/a"]) for each in rows] == [
        ("bank", "cme", "3", value) for value in ("1.5", "1.5", "")
    ]
    assert rows[2]["lower"] == ""
    assert float(rows[2]["estimate"]) == 0.45
    assert rows[2]["declined"] == "True"
    (summary,) = read(tmp_path / "summary.csv")
    assert float(summary["coverage"]) == 0.5
    assert float(summary["share"]) == pytest.approx((1.7 / 3 - 0.4) / 0.4)
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        f"{name}.{end}" for name in ("answer", "probability", "calibration") for end in ("png", "svg")
    }
    assert "decision without alteration" in (tmp_path / "figures/probability.svg").read_text()
    drawn = (tmp_path / "figures/calibration.svg").read_text()
    assert "estimated 0.700, true 0.700" in drawn
    assert "interval holds for 50%" in drawn


def test_the_claims_over_each_action_are_drawn_where_they_were_recorded(tmp_path):
    path = run(tmp_path, score=False)
    points = [f"0,dose,claim,{x},{0.4 + x / 10},0.3,0.6,0.95" for x in range(3)]
    (path / "claims.csv").write_text("\n".join(["case,along,series,x,point,lower,upper,level", *points, ""]))
    assert "Figures (.png and .svg in figures): answer, claims" in report(path)
    assert 'alt="' in (path / "report.html").read_text()
    assert "The estimated chance over each action" in (path / "report.html").read_text()


def test_rows_survive_the_disk_and_unknown_numbers_stay_unknown():
    rows = [row("bank", "cme", 3, line(index) | {"seconds": 0.5}) for index in (0, 2)]
    again = typed(list(csv.DictReader(written(rows, COLUMNS).splitlines())))
    for before, after in zip(rows, again, strict=True):
        assert set(after) == set(COLUMNS)
        assert all(
            after[key] == before[key] or (math.isnan(after[key]) and math.isnan(before[key]))
            for key in COLUMNS[4:]
        )
        assert [after[key] for key in COLUMNS[:4]] == [before[key] for key in COLUMNS[:4]]


def test_the_deviation_is_that_of_the_means_of_seeds():
    rows = [
        {**row("w", "m", seed, line(0)), "auf": value}
        for seed, values in enumerate([(0.2, 0.4), (0.5, 0.7)])
        for value in values
    ]
    found = summed(rows, 0)
    assert found.auf.mean == pytest.approx(0.45)
    assert found.std == pytest.approx(0.3 / math.sqrt(2))
    assert found.seeds == 2
    assert math.isnan(summed(rows[:2], 0).std)


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
    rows = [row("w", "m", 0, BOTH) | truth_bounds(BOTH)]
    summary = text_table(["", "m"], method_rows({"m": summed(rows, 0)}), "Methods")
    found = {
        cells[1].strip(): cells[2].strip()
        for cells in (line.split("│") for line in summary.splitlines())
        if len(cells) == 4
    }
    assert found["intervals of the posterior mean that contain the truth"] == "100% of 1"
    assert found["intervals of the truth that contain it"] == "100% of 1"
    assert found["one-sided lower bounds that it reaches"] == "100%"
    (line,) = alteration_report.per_decision([BOTH], "w", "m", 0)
    assert [line[key] for key in ("lower", "truth_lower", "truth_upper")] == [0.75, 0.5, 0.95]


def test_what_the_estimates_of_decisions_that_set_nothing_are_of_is_said():
    kept = REFUSED | {"status": "leave", "unchanged": {"point": 0.7}}
    rows = [row("w", "m", 0, one) for one in (ACTED, kept)]
    head = "  where nothing is set, that of"
    counts = ((1, 1), (2, 1), (1, 0), (0, 0))
    found = {str(each): summed(rows, *each) for each in counts}
    cells = {line[0]: line[1:] for line in alteration_report.method_rows(found)}
    assert cells[head] == ["the present values", "the present values, or no action", "no action", "-"]
    assert head not in {line[0] for line in alteration_report.method_rows({"m": found["(1, 0)"]})}


def test_a_share_of_cases_without_a_row_nearby_has_a_column():
    told = {**ACTED, "trace": {**ACTED["trace"], "beyond": 0.4}}
    lines = alteration_report.per_decision([told, REFUSED], "w", "m", 3)
    first, second = csv.DictReader(io.StringIO(as_csv(lines)))
    assert (first["beyond"], second["beyond"]) == ("0.4", "")


VALUES = {"care": [0.61, 0.61, 0.62, 0.60], "outcome_regression": [0.60, 0.64, 0.62, 0.62]}


@pytest.fixture
def path(tmp_path):
    config = with_method(configured("dataset=bank", "decision=auto"), "care")
    made = untouched_run(tmp_path / "run", [None])
    record(chosen(found(VALUES, NOTHING), 200), config, RunFolder(made))
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
