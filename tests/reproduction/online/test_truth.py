"""The section on how often the bounds hold, from rows whose shares are known."""

from rehearsal_torch.reporting.figure_style import drawing
from reproduction.online.truth import kept, truth
from reproduction.page import Section
from tests.toys.online_rows import bounded, rows


def test_shares_are_over_repeats_in_each_part_of_a_run():
    some = bounded(rows(repeats=4, rounds=60, bound=0.05), reach=0.05)
    with drawing():
        section = truth(some)
    assert section.blocks[0] == "## Bounds for the mean and for the truth"
    assert "Seeds 0 to 3 were used for nothing else" in section.blocks[1]
    lines = [line.split(" | ") for line in section.blocks[-1][2:]]
    assert [line[1] for line in lines] == ["1-60", "1-20", "21-50", "51-100"]
    assert lines[0][2:4] == ["1.000 [1.000, 1.000]", "0.100 [0.100, 0.100]"]
    assert lines[0][4] == "0.500 [0.500, 0.500]"
    assert lines[0][5:] == ["1.000 [1.000, 1.000]", "0.100 [0.100, 0.100]", "4 |"]
    assert set(section.figures) == {"truth"}


def test_the_rule_is_stated_with_what_was_reached():
    holds = [row for row in bounded(rows(rounds=60), reach=0.05) if row["round"] % 2]
    text = kept("w", holds)
    assert text == (
        "- w: truth inside 1.000 (at least .92: kept), lower bound reached 1.000 (at least .95: kept), mean "
        "width after round 50 0.100 (at most .16: kept)."
    )
    fails = kept("w", bounded(rows(rounds=60), reach=0.1))
    assert "inside 0.500 (at least .92: not kept)" in fails
    assert "round 50 0.200 (at most .16: not kept)" in fails
    assert "round 50 - (at most .16: no such rounds)" in kept("w", bounded(rows(rounds=10)))


def test_rounds_without_an_alteration_have_no_bounds_and_are_left_out():
    nothing = dict.fromkeys(("lower", "upper", "truth_lower", "truth_upper", "truth_least"), float("nan"))
    some = [row | (nothing if row["round"] == 2 else {}) for row in bounded(rows(rounds=3), reach=0.05)]
    with drawing():
        section = truth(some)
    assert "inside 1.000" in section.blocks[2][0], "the second round of three is the one that misses"
    assert truth([row | nothing for row in some]) == Section()
    assert truth([]) == Section()
