"""What the page of claims says of trials, from rows that can be checked by hand."""

import math

from reproduction.calibration.trial_tables import (
    mean_gap,
    points_table,
    recommendations_table,
    totals_table,
)

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


def test_what_a_recommendation_is_worth():
    (line,) = cells(recommendations_table(ROWS))
    # 9 and 4, over starts of 0 and 4: 4.5 of 8. The claims of 8 are 1 and 4 away, with deviations of 1.
    assert (line["claimed"], line["true"], line["share of gain"]) == ("8", "6.5", "56%")
    assert line["interval holds"] == "1 of 2"
