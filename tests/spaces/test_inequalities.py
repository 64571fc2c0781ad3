"""Inequalities as text: faces, round trips, the same truth as the inequalities, and errors at their place."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rehearsal_torch.spaces.inequalities import FACES as MOST_FACES
from rehearsal_torch.spaces.inequalities import (
    LONGEST,
    InequalityError,
    desired_classes,
    faces_of,
    inequalities,
)
from rehearsal_torch.spaces.polytope import Polytope

READ = [
    ("0.6 <= repayment", ("repayment",), [[-1.0]], [-0.6]),
    ("65 <= map <= 100", ("map",), [[-1.0], [1.0]], [-65.0, 100.0]),
    ("100 >= map ≥ 65", ("map",), [[1.0], [-1.0]], [100.0, -65.0]),
    ("sales - 2*cost >= 10", ("sales", "cost"), [[-1.0, 2.0]], [-10.0]),
    ("sales/2 + 1 <= 3*(cost - 2) and cost<=4", ("sales", "cost"), [[0.5, -3.0], [0.0, 1.0]], [-7.0, 4.0]),
    ("a + a - b*2 <= -1e1 + a", ("a", "b"), [[1.0, -2.0]], [-10.0]),
    (
        '`blood pressure` <= 5 and "and" <= .5',
        ("blood pressure", "and"),
        [[1.0, 0.0], [0.0, 1.0]],
        [5.0, 0.5],
    ),
    ("-größe.2 <= -3", ("größe.2",), [[-1.0]], [-3.0]),
]


@pytest.mark.parametrize(("text", "names", "normals", "offsets"), READ, ids=[each[0] for each in READ])
def test_faces(text, names, normals, offsets):
    found = inequalities(text)
    assert found.names == names
    assert [list(normal) for normal in found.normals] == normals
    assert list(found.offsets) == offsets


def test_an_error_shows_twenty_characters_before_its_place_and_forty_from_it_on():
    near = "x" * 19 + "+"
    text = f"{'a' * 50} + {near}*{'b' * 39}cccc <= 1"
    with pytest.raises(InequalityError) as told:
        inequalities(text)
    assert told.value.place == text.index("*") + 1
    assert f" of ...'{near}*{'b' * 39}': expected a number" in str(told.value)
    assert inequalities('"a gain" <= 3') == inequalities("`a gain` <= 3")


NAMES = st.sampled_from(["a", "b c", "and", "größe", "x.1", 'say "y"'])
NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)
WEIGHTS = NUMBERS.filter(lambda each: abs(each) > 1e-9)
FACES = st.lists(
    st.tuples(st.dictionaries(NAMES, WEIGHTS, min_size=1, max_size=3), NUMBERS), min_size=1, max_size=4
)


def typed(name):
    return f"`{name}`"


@settings(max_examples=40, deadline=None)
@example([({"a": 0.5, 'say "y"': 35356.0}, 1.0), ({'say "y"': 2.0}, 1.0)], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
@given(FACES, st.lists(st.floats(-1e3, 1e3), min_size=6, max_size=6))
def test_a_text_means_what_its_inequalities_mean(faces, values):
    point = dict(zip(["a", "b c", "and", "größe", "x.1", 'say "y"'], values, strict=True))
    texts, truth = [], []
    for weights, offset in faces:
        total = " + ".join(f"{weight!r}*{typed(name)}" for name, weight in weights.items()).replace(
            "+ -", "- "
        )
        texts.append(f"{total} >= {offset!r}")
        truth.append(sum(weight * point[name] for name, weight in weights.items()) - offset)
    found = inequalities(" and ".join(texts))
    at = torch.tensor([point[name] for name in found.names], dtype=torch.float64)
    normals = torch.tensor(found.normals, dtype=torch.float64)
    slack = torch.tensor(found.offsets, dtype=torch.float64) - normals @ at
    torch.testing.assert_close(slack, torch.tensor(truth, dtype=torch.float64), rtol=1e-9, atol=1e-6)
    assert inequalities(found.text()) == found
    if all(value > 0 for value in truth):
        region = Polytope(found.names, normals, torch.tensor(found.offsets, dtype=torch.float64))
        assert bool(region.contains(at))


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet='ab1.<>=+-*/() and`"', max_size=30))
def test_any_text_is_read_or_refused_with_a_place_in_it(text):
    found, place = None, 1
    try:
        found = inequalities(text)
    except InequalityError as error:
        place = error.place
    assert 1 <= place <= len(text) + 1
    assert found is None or inequalities(found.text()) == found


def test_no_inequality_is_no_region():
    with pytest.raises(InequalityError, match="at character 1 of '': expected an inequality") as told:
        faces_of([])
    assert told.value.place == 1


def test_as_many_inequalities_as_are_allowed_are_read_and_one_more_is_not():
    text = " and ".join(["y<=1"] * MOST_FACES)
    assert len(inequalities(text).offsets) == MOST_FACES
    with pytest.raises(InequalityError, match="expected at most 1000 inequalities"):
        inequalities(f"{text} and y<=1")


def test_a_text_of_the_greatest_length_is_read_and_a_longer_one_is_not():
    text = "y <= 1".ljust(LONGEST)
    assert inequalities(text) == inequalities("y <= 1")
    with pytest.raises(InequalityError, match="expected at most 10000 characters; got 10001"):
        inequalities(f"{text} ")


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
    assert inequalities(words, LEVELS) == inequalities(numbers)


def test_several_texts_must_all_hold():
    found = inequalities(["rep = yes", "sev = low"], LEVELS)
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
                        inequalities(text, GRADES)
                continue
            one, other = (inequalities(text, GRADES) for text in texts)
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
    assert inequalities(words, GRADES) == inequalities(same, GRADES)


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
    found = inequalities(words, LEVELS, CLASSES)
    for name in wished:
        place = found.names.index(name)
        (face,) = [each for each in zip(found.normals, found.offsets, strict=True) if each[0][place]]
        assert (face[0][place], face[1]) == (-1.0, -0.5)
    assert ("x" in found.names) == ("x" in " ".join(words) or "x <=" in str(words))
