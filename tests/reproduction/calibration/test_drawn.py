"""Decisions in worlds by seed: what the command records, and what tables say of rows checked by hand."""

import json
import math

import pytest
import torch

from rehearsal_torch.files.csv_rows import read_rows
from rehearsal_torch.problems.cases.random_world import DrawnWorld
from rehearsal_torch.problems.world_size import SampleSize
from reproduction.calibration import drawn_claims, drawn_tables
from reproduction.calibration.drawn_claims import COLUMNS, FILE, main, numeric, typed
from reproduction.calibration.drawn_tables import beside, by_trait, sections
from reproduction.calibration.jobs import layouts
from reproduction.plan import jobs, study
from reproduction.run import defaults

SMALL = ("dataset.own_rows=false", "dataset.size.rows=200", "dataset.size.contexts=3", "decision=care")


def row(seed, status, true, nothing=0.4, trait="plain", gain=(0.0, 0.2), trace=None, method="m"):
    chosen = status != "leave"
    return {
        **{"dataset": "drawn", "method": method, "seed": seed, "trait": trait, "status": status},
        **{"auf": true, "no_action": nothing, "oracle": 0.9, "rows": 300.0},
        **{"estimate": 0.5, "estimate_lower": 0.45 if chosen else math.nan, "estimate_upper": 0.55},
        **{"baseline": 0.4, "baseline_lower": 0.3, "baseline_upper": 0.5},
        **{"gain": 0.1, "gain_lower": gain[0], "gain_upper": gain[1]},
        **{"fit_seconds": 2.0, "decision_seconds": 0.5, "trace": trace or {}},
    }


def cells(rows):
    head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in by_trait(rows))
    return {line[0]: dict(zip(head[1:], line[1:], strict=True)) for line in lines}


def test_the_command_records_decisions_with_their_truth_and_does_not_decide_again(tmp_path, capsys):
    typed_words = [str(tmp_path), "seeds=5-6", "workers=1", *SMALL]
    assert main(typed_words) == 0
    told = capsys.readouterr()
    assert "| worlds | 2 | 1 | 1 |" in told.out
    assert "2/2" in told.err
    rows = typed(read_rows(tmp_path / FILE, COLUMNS))
    assert [row["seed"] for row in rows] == [5] * 3 + [6] * 3
    world = DrawnWorld(own_rows=False, size=SampleSize(200, 3), seed=5)
    for index, row in enumerate(rows[:3]):
        context = world.given([world.case(index)])
        nothing = float(world.probability(context, (), context.new_empty(1, 0)))
        alteration = json.loads(row["alteration"])
        true = nothing
        if alteration:
            names = tuple(alteration)
            true = float(
                world.probability(context, names, torch.tensor([[alteration[name] for name in names]]))
            )
        assert (row["auf"], row["no_action"]) == pytest.approx((true, nothing), abs=1e-5)
        assert row["oracle"] >= max(true, nothing) - 0.01
        assert row["trait"] == world.recipe.trait
    assert main(typed_words) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "said"), [(["seeds=0"], "a folder first"), (["x", "seeds=999-1000"], "for reporting alone")]
)
def test_the_command_refuses_seeds_that_are_for_reporting(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_every_number_of_a_trace_is_kept():
    trace = {"search": "s", "beyond": 0.1, "hull": {"gain": [-0.1, 0.3]}, "names": ["a"], "none": []}
    assert numeric(trace) == {"beyond": 0.1, "hull.gain": [-0.1, 0.3]}


def test_harm_and_gain_are_counted_by_status_and_trait():
    rows = [
        *(row(0, "do", 0.6), row(0, "do", 0.37), row(0, "leave", 0.4)),
        *(
            row(1, "may", 0.39, trait="null"),
            row(1, "may", 0.3, trait="null"),
            row(1, "leave", 0.4, trait="null"),
        ),
    ]
    found = cells(rows)
    assert found["worlds"] == {"all": "2", "null": "1", "plain": "1"}
    assert found["harmed among *do*"]["all"].startswith("50.0%")
    assert found["harmed among *do*"]["all"].endswith("(1 of 2)")
    assert found["harmed among *do*"]["null"] == "-"
    assert found["harmed among *may*"]["null"].endswith("(1 of 2)")
    assert found["true gain"]["plain"].startswith(f"{(0.2 - 0.03) / 3:.3f}")
    assert found["true gain"]["all"].startswith(f"{(0.2 - 0.03 - 0.01 - 0.1) / 6:.3f}")
    assert found["true gain, *do* alone"]["all"].startswith(f"{(0.2 - 0.03) / 6:.3f}")
    assert found["*leave*"]["all"].startswith("33.3%")
    assert found["CPU s, decision"]["all"] == "0.167"
    # One world without harm allows any share up to 1 - .05, two up to 1 - .05^(1/2).
    assert cells([row(0, "do", 0.6)])["harmed of all"]["all"] == "0.0% [0.0, 95.0] (0 of 1)"


def test_intervals_of_the_model_and_of_the_hull_are_those_of_the_trace():
    near = {"beyond": 0.01, "model.gain": [0.15, 0.25], "hull.gain": [0.1, 0.3]}
    far = {"beyond": 0.3, "model.gain": [0.3, 0.4], "hull.gain": [-0.2, 0.5]}
    found = cells([row(0, "do", 0.6, trace=near), row(1, "may", 0.6, trace=far), row(2, "leave", 0.4)])
    assert found["gain, printed: holds"]["all"].startswith("100.0%")
    assert found["gain, model: holds"]["all"].startswith("50.0%")
    assert found["gain, model, S <= 0.05: holds"]["all"].startswith("100.0%")
    assert found["gain, model, S <= 0.05: width"]["all"] == "0.100"
    assert found["gain, hull: width"]["all"].startswith("0.450")
    assert found["gain, hull, S <= 0.2: width"]["all"] == "0.200"
    assert "estimate, hull: holds" not in found
    assert found["no action: holds"]["all"].startswith("100.0%")


def test_a_method_is_compared_with_another_one_in_the_worlds_of_both():
    other = [row(0, "do", 0.6), row(1, "do", 0.3), row(2, "do", 0.6)]
    lines = beside([row(0, "do", 0.5), row(1, "leave", 0.4)], other).splitlines()
    assert lines[0].startswith("true gain, all worlds (2): 0.050 beside 0.050, 1.00 of it; difference 0.000")
    assert lines[1].startswith(
        "true gain, where the other one harms nobody (1): 0.100 beside 0.200, 0.50 of it"
    )


def test_the_page_has_a_table_for_each_report():
    assert list(sections([])) == []
    reports = list(sections([row(1000, "do", 0.6), row(1001, "do", 0.6), row(1200, "do", 0.6)]))
    headings = [section.blocks[0] for section in reports]
    assert headings == [
        "## Decisions in worlds by seed",
        "### `m`, seeds 1000 to 1001",
        "### `m`, seeds 1200 to 1200",
    ]
    assert "more than .02 below" in reports[0].blocks[1]


def test_each_report_of_the_study_has_two_hundred_worlds_that_are_not_for_building():
    planned = jobs(study("calibration"), drawn_claims.DRAWN)
    assert sorted({job.seed for job in planned}) == [
        *range(drawn_claims.REPORTED, 1000 + 2 * drawn_tables.REPORT)
    ]
    assert planned[0].overrides[:2] == drawn_claims.WORLD
    assert layouts(defaults("calibration"))[drawn_claims.DRAWN].columns == COLUMNS
