"""Inequalities as text: faces, round trips, the same truth as the inequalities, and errors at their place."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rehearsal_torch.spaces.inequalities import (
    FACES as MOST_FACES,
)
from rehearsal_torch.spaces.inequalities import (
    LARGEST,
    LONGEST,
    InequalityError,
    faces_of,
    inequalities,
    linear,
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


def test_several_texts_hold_jointly():
    assert inequalities(["a <= 1", "b >= 2 and a >= 0"]) == inequalities("a <= 1 and b >= 2 and a >= 0")


def test_an_error_shows_twenty_characters_before_its_place_and_forty_from_it_on():
    near = "x" * 19 + "+"
    text = f"{'a' * 50} + {near}*{'b' * 39}cccc <= 1"
    with pytest.raises(InequalityError) as told:
        inequalities(text)
    assert told.value.place == text.index("*") + 1
    assert f" of ...'{near}*{'b' * 39}': expected a number" in str(told.value)
    with pytest.raises(InequalityError, match=r"^at character 3 of 'a < 3': "):
        inequalities("a < 3")


def test_one_sum_is_read_for_bounds():
    assert linear("current - 3") == linear("-3 + 1*current")
    assert linear("0.9*current").weights == {"current": 0.9}
    with pytest.raises(InequalityError, match=r"at character 9 .*: expected the end"):
        linear("current <= 3")


NAMES = st.sampled_from(["a", "b c", "and", "größe", "x.1", 'say "y"'])
NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)
WEIGHTS = NUMBERS.filter(lambda each: abs(each) > 1e-9)
FACES = st.lists(
    st.tuples(st.dictionaries(NAMES, WEIGHTS, min_size=1, max_size=3), NUMBERS),
    min_size=1,
    max_size=4,
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


def test_weights_of_the_largest_and_the_smallest_size_are_read():
    assert inequalities(f"{LARGEST!r} * y <= 1").normals == ((LARGEST,),)
    assert inequalities(f"{1 / LARGEST!r} * y <= 1").normals == ((1 / LARGEST,),)
    with pytest.raises(InequalityError, match="expected numbers up to"):
        inequalities(f"{1.001 * LARGEST!r} * y <= 1")
    with pytest.raises(InequalityError, match="that of 'y' is smaller: use another unit"):
        inequalities(f"{0.999 / LARGEST!r} * y <= 1")
