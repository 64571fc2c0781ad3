"""Claims outside the data, and what stands in place of their numbers."""

from rehearsal_torch.data.estimates.outside import bare, further, in_place, outside

NEAR = "support: few rows are like this"
FAR = "range: x is 40; the observations lie between 1 and 9"
TOLD = "gain: not told apart from no action"


def test_what_lies_beyond_its_range_comes_first():
    assert outside([TOLD]) == ("", [])
    assert outside([TOLD, NEAR]) == ("outside the data: few rows are like this", [])
    beyond = "outside the data: x is 40; the observations lie between 1 and 9"
    assert outside((NEAR, FAR, TOLD)) == (beyond, ["few rows are like this"])
    other = FAR.replace("x is", "a is set to")
    assert outside([FAR, other])[0].endswith(
        "between 1 and 9; a is set to 40; the observations lie between 1 and 9"
    )


def test_the_reason_stands_in_place_of_a_number():
    assert in_place([TOLD]) == ""
    assert in_place(iter([TOLD, NEAR])) == "Outside the data: few rows are like this."


def test_what_was_said_is_not_repeated():
    said = in_place([NEAR, FAR])
    assert further([NEAR, FAR, TOLD], said) == [NEAR, TOLD]
    assert further([FAR, TOLD], "") == [FAR, TOLD]
    assert bare(FAR) == "x is 40; the observations lie between 1 and 9"
    assert bare(TOLD) == TOLD
