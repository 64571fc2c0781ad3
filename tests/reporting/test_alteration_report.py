"""Reports of decisions in foresight, on a run whose numbers are known by hand."""

import csv
import json
import math

import pytest

from rehearsal_torch.evaluation.rehearsal_rows import COLUMNS, NUMBERS, row, typed, written
from rehearsal_torch.evaluation.summaries import summed
from rehearsal_torch.reporting.decision_table import change, methods, percent
from rehearsal_torch.reporting.run_report import report
from rehearsal_torch.run_folder import SECONDS, RunFolder

SCORES = [(0.8, 0.4, 0.9), (0.6, 0.5, 0.7), (0.3, 0.3, 0.8)]


def line(index, score=True):
    acted = index < 2
    one = {"index": index, "kind": "rehearse", "identity": str(index), "given": {"x": 0.25 * index}}
    one |= {
        "status": "may" if acted else "leave",
        "alteration": {"a": 1.5} if acted else None,
        "value": 0.1,
    }
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


@pytest.mark.slow
def test_the_terminal_shows_what_to_set_and_from_which_chance_to_which(tmp_path):
    shown = report(run(tmp_path), tables=True)
    first, _, third = (
        next(text for text in shown.splitlines() if text.startswith(f"│ {case} ")) for case in "012"
    )
    for text in ("x=0", "a=1.5", "0.450 -> 0.700", "0.650 to 0.850", "0.400 -> 0.800 (0.900)"):
        assert text in first
    assert [cell.strip() for cell in third.strip("│").split("│")][2:5] == ["refused", "0.450", "-"]
    assert "0.450 -> " not in third
    joined = " ".join(shown.replace("│", " ").split())
    assert "no row comes near" in joined
    assert "would have set a=9" in joined
    told = {
        text.split("│")[1].strip(): text.split("│")[2].strip()
        for text in shown.splitlines()
        if text.count("│") == 3
    }
    assert told["cases"] == "3"
    assert told["cases without action"] == "1"
    assert told["true probability of a desired outcome"] == f"{1.7 / 3:.3f}"
    assert told["with no action"] == "0.400"
    assert told["best possible"] == "0.800"
    assert told["share of the possible gain"] == "42%"
    assert told["estimated probability"] == f"{(0.7 + 0.7 + 0.45) / 3:.3f}"
    # .8 lies in [.65, .85]; .6 does not lie in [.65, .75]; what is declined has no interval.
    assert told["intervals that contain the truth"] == "50% of 2"
    assert told["median seconds per decision"] == "0.02"


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
        f"{name}.{end}" for name in ("probability", "calibration", "decisions") for end in ("png", "svg")
    }
    assert "decision without alteration" in (tmp_path / "figures/probability.svg").read_text()
    drawn = (tmp_path / "figures/calibration.svg").read_text()
    assert "estimated 0.700, true 0.700" in drawn
    assert "interval holds for 50%" in drawn


def test_the_claims_over_each_action_are_drawn_where_they_were_recorded(tmp_path):
    path = run(tmp_path, score=False)
    points = [f"0,dose,claim,{x},{0.4 + x / 10},0.3,0.6,0.95" for x in range(3)]
    (path / "claims.csv").write_text("\n".join(["case,along,series,x,point,lower,upper,level", *points, ""]))
    assert "Figures (.png and .svg in figures): decisions, claims" in report(path)
    assert 'alt="' in (path / "report.html").read_text()
    assert "The claimed probability over each action" in (path / "report.html").read_text()


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


def test_long_lists_are_cut_and_say_so():
    one = {"alteration": {f"a{place}": 1.0 for place in range(9)}}
    assert change(one) == "a0=1, a1=1, a2=1, a3=1, a4=1, +4 more"
    assert change({"alteration": None}) == "no action"
    assert percent(-0.001) == "0%"


def test_seconds_that_nobody_measured_are_a_dash():
    one = summed(
        [{"dataset": "bank", "method": "cme", "seed": 0, "context": "0"} | dict.fromkeys(NUMBERS, math.nan)],
        0,
    )
    assert "nan" not in methods({"cme": one}, "Summary")
