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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "sev in {low, high}",
            "at character 9 .* expected levels that are neighbours in the order low, medium",
        ),
        ("sev = hig", "at character 7 .* expected one of low, medium, high"),
        ("sev < high", "at character 5 .* expected <=, >=, = or in, and one of low"),
        ("sev <= high", "every level of sev is desired then"),
        ("low <= sev <= high", "expected one sign beside a level"),
        ("sev in low", "expected { after in"),
        ("sev in {low", "expected , or }"),
        ("x = 3", "a region has an interior"),
        ("x <= yes}", "got '}'"),
    ],
)
def test_what_cannot_be_read(words, told):
    with pytest.raises(InequalityError, match=told):
        worded_inequalities(words, LEVELS)


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


@pytest.mark.parametrize(
    "words", ["grade <= 1.5", "grade <= 0", "0 <= grade", "2*grade <= 4", "1 <= grade <= 2", "z + grade <= 3"]
)
def test_codes_of_such_levels_are_refused(words):
    with pytest.raises(InequalityError, match=r"1, 2, 3\+|one sign beside a level"):
        worded_inequalities(words, GRADES)


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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("status >= mild", "at character 8 .* classes of status have no order: .* status in {well, mild}"),
        ("site = 4", "expected one of 1, 2, 3 b"),
        ("site <= 2", "classes of site have no order"),
        ("sex >= f", r"at character 5 .* classes of sex have no order: .* sex in \{f\}"),
        ("status + x <= 2", "at character 1 .* classes of status have no order"),
        ("x <= status", "expected the variable first"),
        ("status in {well, mild, ill}", "every class of status is desired then"),
        ("status in {well} and status in {mild}", "status is named before"),
        ("status in {well", "expected , or }"),
        ("status in", "expected { after in"),
        ("status = ", "expected one of well, mild, ill"),
        ("status", "expected <= or >=|no order"),
    ],
)
def test_what_of_classes_cannot_be_read(words, told):
    with pytest.raises(InequalityError, match=told):
        worded_inequalities(words, LEVELS, CLASSES)
