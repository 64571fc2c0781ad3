"""What the page of claims says of trials, from rows that can be checked by hand."""

import math

from reproduction.calibration.network_tables import (
    EQUAL,
    NETWORK,
    chances_table,
    claims_table,
    losses_table,
    sections,
    tables,
)

NAN = math.nan


def row(seed, done, claimed, true, *, half=1.96, traits="", silent=NAN, tried=5.0, **further):
    return {
        **{"dataset": NETWORK, "method": "m", "seed": seed, "round": done, "rounds": 10, "traits": traits},
        **{"claimed": claimed, "low": claimed - half, "high": claimed + half, "true": true},
        **{"held": float(abs(claimed - true) <= half), "chance": NAN, "better": NAN, "exact": NAN},
        **{"tried": tried, "optimum": 10.0, "reach": 20.0, "silent": silent, "seconds": 0.5 if done else NAN},
        **further,
    }


ROWS = [
    row(0, 0, 5.0, 4.0, silent=1.0),
    row(0, 10, 6.0, 6.0, tried=7.0, silent=0.0),
    row(1, 0, 5.0, 2.0, traits="noise far"),
    row(1, 10, 5.0, 1.0, traits="noise far"),
]


def cells(lines):
    head, _, *rest = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {line[0]: dict(zip(head[1:], line[1:], strict=True)) for line in rest}


def test_coverage_is_counted_by_round_trait_and_residuals():
    found = cells(claims_table(ROWS))
    assert found["networks"] == {"start": "2", "round 10": "2", "all rounds": "2"}
    assert found["holds, all"]["start"].startswith("50.0%")
    assert found["holds, no trait"]["all rounds"].startswith("100.0%")
    assert found["holds, noise"]["round 10"].startswith("0.0%")
    assert found["holds, far"] == found["holds, noise"]
    assert "holds, levels" not in found
    assert found["holds, residuals silent"]["start"].startswith("100.0%")
    assert found["holds, residuals silent"]["round 10"] == "-"
    # Errors 1 and 3 in standard deviations of 1; widths 3.92 of a range of 20.
    assert found["rms z, all"]["start"] == f"{math.sqrt(5):.2f}"
    assert found["median width"]["all rounds"] == "19.6%"


def test_losses_are_against_the_best_tried_and_gains_against_the_round_before():
    found = cells(losses_table(ROWS))
    # Against 5 at the start 1 and 3 are lost, then 7 - 6 and 5 - 1, of 20.
    assert found["lost, mean"]["start"].startswith("10.0%")
    assert found["lost, mean"]["round 10"].startswith("12.5%")
    assert found["lost, worst"]["all rounds"] == "20.0%"
    assert found["below the optimum"]["start"].startswith("35.0%")
    assert found["claimed - true"]["start"].startswith("10.0%")
    assert found["gained since"]["start"] == "-"
    assert found["gained since"]["round 10"].startswith("2.5%")
    assert found["worse by 1%"]["round 10"].startswith("50.0%")
    assert found["CPU s, round"] == {"start": "-", "round 10": "0.50", "all rounds": "0.50"}


def test_chances_are_in_groups_beside_what_came_true():
    some = [
        row(0, 0, 1.0, 1.0, chance=0.92, better=1.0),
        row(1, 0, 1.0, 1.0, chance=0.94, better=0.0),
        row(2, 0, 1.0, 1.0, dataset=EQUAL, chance=1.0, exact=0.8),
    ]
    head, _, *lines = chances_table([*ROWS, *some])
    assert head == "|  | claimed chance | claims | mean | closed form | better |"
    assert lines[0] == "| drawn network | no runner-up | 4 | - | - | - |"
    assert lines[1].startswith("| drawn network | 0.9 to 0.95 | 2 | 93.0% | - | 50.0%")
    assert lines[2] == "| equal settings | 0.99 to 1 | 1 | 100.0% | 80.0% | - |"


def test_the_page_has_tables_for_each_report():
    assert list(sections([])) == []
    reports = list(sections([row(1000, 0, 1.0, 1.0), row(1059, 0, 1.0, 1.0), row(1060, 0, 1.0, 1.0)]))
    headings = [section.blocks[0] for section in reports]
    assert headings == [
        "## Trials in networks by seed",
        "### `m`, seeds 1000 to 1059",
        "### `m`, seeds 1060 to 1060",
    ]
    assert len(tables([row(1, 0, 1.0, 1.0, dataset=EQUAL, chance=0.5)])) == 1
