"""Inequalities of variables that have texts."""

import pytest

from rehearsal_torch.spaces.inequalities import InequalityError, inequalities
from rehearsal_torch.spaces.worded_inequalities import desired_classes, worded_inequalities

LEVELS = {"sev": ["low", "medium", "high"], "rep": ["no", "yes"], "blood type": ["0", "A b", "B"]}


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        ("rep = yes", "rep >= 0.5"),
        ("rep == no", "rep <= 0.5"),
        ("sev <= medium", "sev <= 1.5"),
        ("sev ≥ medium", "sev >= 0.5"),
        ("medium <= sev", "sev >= 0.5"),
        ("medium >= sev", "sev <= 1.5"),
        ("sev in {low, medium}", "sev <= 1.5"),
        ("sev in {medium, low}", "sev <= 1.5"),
        ("sev = medium", "sev <= 1.5 and sev >= 0.5"),
        ("sev in {medium}", "sev <= 1.5 and sev >= 0.5"),
        ("sev >= 1", "sev >= 1"),
        ("1 <= sev <= 2", "1 <= sev <= 2"),
        ("rep = yes and 2*x + y <= 3", "rep >= 0.5 and 2*x + y <= 3"),
        ('`blood type` = "A b"', "`blood type` <= 1.5 and `blood type` >= 0.5"),
        ("`blood type` = 0", "`blood type` <= 0.5"),
        ("0.6 <= x + rep", "0.6 <= x + rep"),
    ],
)
def test_a_bound_lies_half_way_to_the_next_level(words, numbers):
    assert worded_inequalities(words, LEVELS) == inequalities(numbers)


def test_several_texts_must_all_hold():
    found = worded_inequalities(["rep = yes", "sev = low"], LEVELS)
    assert found == inequalities("rep >= 0.5 and sev <= 0.5")


GRADES = {"grade": ["1", "2", "3+"], "dose": ["0.5", "1", "2"], "x": ["low", "high"]}


@pytest.mark.parametrize("name", ["grade", "dose", "x"])
def test_both_sides_may_stand_in_either_order(name):
    for place, level in enumerate(GRADES[name]):
        for sign, turned, all_of_them in (
            ("<=", ">=", place == len(GRADES[name]) - 1),
            (">=", "<=", place == 0),
        ):
            texts = (f'{name} {sign} "{level}"', f'"{level}" {turned} {name}')
            if all_of_them:
                for text in texts:
                    with pytest.raises(InequalityError, match="every level of"):
                        worded_inequalities(text, GRADES)
                continue
            one, other = (worded_inequalities(text, GRADES) for text in texts)
            assert one == other == inequalities(f"{name} {sign} {place + (0.5 if sign == '<=' else -0.5)}")


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ("grade <= 2", "grade in {1, 2}"),
        ("grade <= 2.0", "grade in {1, 2}"),
        ("2 >= grade", "grade in {1, 2}"),
        ("2 <= grade", 'grade in {2, "3+"}'),
        ("dose >= 1", "dose in {1, 2}"),
        ("dose = 0.5", "dose in {0.5}"),
        ("1.0 <= dose", "dose in {1, 2}"),
    ],
)
def test_levels_that_are_written_as_numbers_are_never_codes(words, same):
    assert worded_inequalities(words, GRADES) == worded_inequalities(same, GRADES)


CLASSES = {"status": ["well", "mild", "ill"], "site": ["1", "2", "3 b"], "sex": ["f", "m"]}


@pytest.mark.parametrize(
    ("words", "wished"),
    [
        ("status = well", {"status": ("well",)}),
        ("status in {mild, well, mild}", {"status": ("well", "mild")}),
        ('x <= 3 and site in {"3 b", 1} and status == ill', {"site": ("1", "3 b"), "status": ("ill",)}),
        (["site = 2", "x <= 3"], {"site": ("2",)}),
        ("x <= 3", {}),
    ],
)
def test_of_classes_one_set_is_desired(words, wished):
    assert desired_classes(words, LEVELS, CLASSES) == wished
    found = worded_inequalities(words, LEVELS, CLASSES)
    for name in wished:
        place = found.names.index(name)
        (face,) = [each for each in zip(found.normals, found.offsets, strict=True) if each[0][place]]
        assert (face[0][place], face[1]) == (-1.0, -0.5)
    assert ("x" in found.names) == ("x" in " ".join(words) or "x <=" in str(words))
