"""What the page of claims says of trials, from rows that can be checked by hand."""

import math

from rehearsal_torch.reporting.style import drawing
from rehearsal_torch.run_folder import RunFolder
from reproduction.calibration import trial_tables
from reproduction.calibration.documents import parts
from reproduction.calibration.trial_tables import (
    chances_table,
    latest,
    levels,
    mean_gap,
    points_table,
    recommendations_table,
    totals_table,
)
from reproduction.page import write_page
from reproduction.plan import jobs, study
from reproduction.run import defaults
from tests.reproduction.kept import record_in

NAN = math.nan


def claim(seed, claimed, std, true, *, world="w", done=40, point="near 1", method="excbo", **further):
    return {
        "dataset": world,
        "method": method,
        "seed": seed,
        "round": done,
        "point": point,
        "claimed": claimed,
        "std": std,
        "true": true,
        "held": float(abs(claimed - true) <= 2 * std),
        **{"chance": NAN, "runner_up": NAN, "start": NAN, "optimum": NAN},
        **further,
    }


def best(seed, claimed=8.0, true=9.0, start=0.0, **further):
    known = {"chance": 0.8, "runner_up": 7.0, "start": start, "optimum": 10.0}
    return claim(seed, claimed, 1.0, true, point="recommended", **(known | further))


# The gaps are 10 and 6, in the mean 8: errors 1, 3 and 0, 4.
ROWS = [
    claim(0, 5.0, 1.0, 6.0),
    claim(0, 5.0, 1.0, 8.0),
    best(0),
    claim(1, 5.0, 2.0, 5.0),
    claim(1, 5.0, 2.0, 9.0),
    best(1, claimed=8.0, true=4.0, start=4.0),
]


def cells(lines):
    head, _, *body = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines)
    return [dict(zip(head, line, strict=True)) for line in body]


def test_errors_are_shares_of_the_mean_gap():
    assert mean_gap(ROWS) == 8
    (line,) = cells(points_table(ROWS))
    assert (line["seeds"], line["points"], line["rounds"]) == ("2", "4", "40")
    # Half of the claims of seed 0 hold and all of seed 1; the t interval is far wider than [0, 1].
    assert line["interval holds"] == "75% [0%, 100%]"
    # Ratios 1, 3, 0 and 2; standard deviations 1, 1, 2, 2 and errors 1, 3, 0, 4, over 8.
    assert (line["error / std"], line["claimed std"], line["error"]) == ("1.50", "18.8%", "25.0%")


def test_worlds_count_the_same_over_the_seeds_that_all_have():
    other = [claim(0, 1.0, 0.1, 3.0, world="v"), best(0, world="v")]
    (line,) = cells(totals_table([*ROWS, *other]))
    assert (line["worlds"], line["seeds"], line["points"]) == ("2", "1", "3")
    # w has one half in seed 0, v nothing; errors of 2 in a gap of 10, in both.
    assert (line["interval holds"], line["error"]) == ("25%", "20.0%")
    # Standard deviations of 1 and .1 in gaps of 10; ratios 1, 3 and 20.
    assert (line["claimed std"], line["error / std"]) == ("5.5%", "3.00")
    assert len(cells(totals_table([*ROWS, *(row | {"round": 25} for row in ROWS)]))) == 2
    assert cells(totals_table([*ROWS[:3], *(row | {"seed": 5} for row in other)])) == []


def test_the_last_round_is_that_of_each_run():
    early = [row | {"round": 25} for row in ROWS]
    assert latest([*early, *ROWS]) == ROWS
    assert latest([*early[:3], *ROWS[3:]]) == [*early[:3], *ROWS[3:]]


def test_levels_are_those_of_a_normal_belief():
    # |error| / std of 0, .6, 1 and 2.5: intervals of 50, 70 and 99 percent reach to .674, 1.036 and 2.576.
    found = levels([claim(0, 0.0, 1.0, error) for error in (0.0, -0.6, 1.0, -2.5)])
    assert [found[level] for level in (10, 50, 70, 95, 99)] == [0.25, 0.5, 0.75, 0.75, 1.0]


def test_what_a_recommendation_is_worth():
    (line,) = cells(recommendations_table(ROWS))
    # 9 and 4, over starts of 0 and 4: 4.5 of 8. The claims of 8 are 1 and 4 away, with deviations of 1.
    assert (line["claimed"], line["true"], line["share of gain"]) == ("8", "6.5", "56%")
    assert line["interval holds"] == "1 of 2"


def test_chances_stand_beside_how_often_they_come_true():
    rows = [*ROWS, best(2, chance=0.95, true=7.0), best(3, chance=0.5, true=8.0), best(4, chance=NAN)]
    found = cells(chances_table(rows))
    assert [line["claimed chance"] for line in found] == ["0.5 to 0.7", "0.7 to 0.9", "0.9 to 1.0"]
    assert [line["recommendations"] for line in found] == ["1", "2", "1"]
    assert [line["truly better"] for line in found] == ["100%", "50%", "0%"]
    # Gains of 2 and -3 in mean gaps of (10 + 6 + 10 + 10 + 10) / 5.
    assert (found[1]["mean chance"], found[1]["gain"]) == ("80%", "-5.4%")


def test_without_rows_there_is_no_section():
    assert list(trial_tables.sections([])) == []


def test_every_method_of_trials_has_a_text_which_stands_where_it_has_rows():
    (block,) = study("calibration")["stages"]["trials"]["jobs"]
    assert all(f"trials by {method}" in trial_tables.TEXTS for method in block["methods"])
    with drawing():
        first = next(iter(trial_tables.sections(ROWS)))
    assert first.blocks[1].endswith(trial_tables.TEXTS["trials by excbo"])
    assert "`ucb`" not in first.blocks[1]


def test_the_page_has_tables_and_figures_of_trials(tmp_path):
    (job,) = jobs(study("calibration"), "trials", [750], worlds=["branin"], methods=["excbo"])
    line = {"state": "ok", "seconds": 1.0, "commit": "abc", "message": ""}
    named = {"dataset": "branin", "seed": 750}
    rows = [row | named for row in ROWS[:3]]
    record_in("calibration", tmp_path, "trials").add(job, rows, line)
    out = RunFolder(tmp_path)
    write_page(out, parts(out, defaults("calibration")))
    text = (tmp_path / "README.md").read_text()
    assert "| branin | `excbo` | 40 | 1 | 2 | 50% | 2.00 | 10.0% | 20.0% |" in text
    assert "| branin | `excbo` | 40 | 1 | 8 | 1 | 9 | 0 | 10 | 90% | 1 of 1 |" in text
    for name in ("trials", "trials_by_world"):
        assert f"(figures/{name}.svg)" in text
        assert (tmp_path / "figures" / f"{name}.svg").is_file()
    assert (tmp_path / "claims.csv").read_text().count("\n") == 1
