import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.files.bounded_yaml import (
    PlainFileError,
    is_a,
    json_of,
    opened,
    read_json,
    repeated,
    sealed,
    shown,
    yaml_of,
)

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)
HOSTILE = {
    "alias bomb": BOMB,
    "merged bomb": "a0: &a0 {x: 1}\n"
    + "".join(f"a{i}: &a{i} {{p: *a{i - 1}, q: *a{i - 1}, r: *a{i - 1}}}\n" for i in range(1, 40)),
    "nested": "[" * 3000 + "]" * 3000,
    "deep mapping": "".join(" " * i + "a:\n" for i in range(300)),
    "names itself": "&a [*a]",
    "unknown alias": "[*nobody]",
    "twice": "graph: 1\nbox: 2\ngraph: 3\n",
    "python": "!!python/object/apply:os.system [echo]",
    "unhashable": "? [a, b]\n: 1\n? {c: d}\n: 2",
    "digits": "1" * 6000,
    "long": "x" * 20_000,
    "date": "2021-99-99",
    "torn": "a: [1, 2",
    "bell": "a: \x07",
    "two": "a: 1\n---\nb: 2\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_yaml_is_refused_at_once_and_by_name(text):
    began = time.perf_counter()
    with pytest.raises(PlainFileError, match=r"^task\.yaml"):
        yaml_of(text, "task.yaml")
    assert time.perf_counter() - began < 2


def test_what_people_write_is_read():
    text = "bounds: &one [0, 1]\nbox: {a: *one, b: *one}\nmore: {<<: {c: 1}, d: .inf}\n"
    assert yaml_of(text, "t") == {
        "bounds": [0, 1],
        "box": {"a": [0, 1], "b": [0, 1]},
        "more": {"c": 1, "d": float("inf")},
    }
    assert yaml_of("", "t") is None
    assert json_of('{"a": [1, 2.5, null, true]}', "t") == {"a": [1, 2.5, None, True]}


def test_what_occurs_more_than_once_is_told_once_in_its_order():
    assert repeated(["b", "a", "c", "a", "b", "a"]) == ["b", "a"]
    assert repeated(str(place) for place in range(50_000)) == []


def test_a_file_says_what_is_wrong_with_it(tmp_path):
    large, wide, marked = tmp_path / "large.yaml", tmp_path / "wide.yaml", tmp_path / "marked.json"
    large.write_bytes(b"a" * 2000)
    wide.write_bytes("a: 1".encode("utf-16"))
    marked.write_bytes(b"\xef\xbb\xbf{}")
    assert read_json(marked) == {}


@pytest.mark.parametrize(
    ("value", "form", "right"),
    [
        ("a", "a string", True),
        (None, "a string", False),
        (None, "a string or null", True),
        (True, "a number", False),
        (1, "a number", True),
        (float("nan"), "a number", False),
        (float("inf"), "a number or null", False),
        (10**400, "a number", False),
        (1.0, "a whole number", False),
        (2**63, "a whole number", False),
        (-1, "a whole number", True),
        (0, "true, false or null", False),
        (False, "true, false or null", True),
        (["a"], "a list of strings", True),
        (["a", 1], "a list of strings", False),
        ("ab", "a list of strings", False),
        ({}, "a mapping", True),
        ([], "a mapping", False),
        ({"a": 1, "b": None}, "a mapping of numbers", True),
        ({"a": "1"}, "a mapping of numbers or null", False),
        (None, "a mapping of numbers or null", True),
    ],
)
def test_kinds(value, form, right):
    assert is_a(value, form) is right


def test_values_are_shown_on_one_short_line():
    assert shown("a\0\nb") == "'a\\x00\\nb'"
    assert len(shown("x" * 500)) == 80
    assert shown("") == "''"


LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("abc> 7\n", max_size=4)
)
PLAIN = st.recursive(
    LEAVES, lambda each: st.lists(each) | st.dictionaries(st.text("xyz"), each), max_leaves=8
)


@pytest.mark.slow
@given(st.dictionaries(st.text("klm"), PLAIN, max_size=4))
def test_what_was_sealed_is_opened_alike_after_yaml(plain):
    written = yaml.safe_dump(sealed(plain), sort_keys=False)
    assert opened(yaml.safe_load(written), "card.yaml") == plain
