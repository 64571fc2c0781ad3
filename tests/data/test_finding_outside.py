"""Claims outside the data, and what stands in place of their numbers."""

from dataclasses import replace

from rehearsal_torch.data.finding import Finding, further, in_place, outside

NEAR = Finding("support", "few rows are like this")
FAR = Finding("range", "x is 40; the observations lie between 1 and 9")
GAIN = Finding("gain", "not told apart from no action")


def test_what_lies_beyond_its_range_comes_first():
    assert outside([GAIN]) == ("", [])
    assert outside([GAIN, NEAR]) == ("outside the data: few rows are like this", [])
    beyond = "outside the data: x is 40; the observations lie between 1 and 9"
    assert outside((NEAR, FAR, GAIN)) == (beyond, ["few rows are like this"])
    other = replace(FAR, text=FAR.text.replace("x is", "a is set to"))
    assert outside([FAR, other])[0].endswith(
        "between 1 and 9; a is set to 40; the observations lie between 1 and 9"
    )


def test_the_reason_stands_in_place_of_a_number():
    assert in_place([GAIN]) == ""
    assert in_place(iter([GAIN, NEAR])) == "Outside the data: few rows are like this."


def test_what_was_said_is_not_repeated():
    sentence = in_place([NEAR, FAR])
    assert further([NEAR, FAR, GAIN], sentence) == [NEAR.text, GAIN.text]
    assert further([FAR, GAIN], "") == [FAR.text, GAIN.text]
