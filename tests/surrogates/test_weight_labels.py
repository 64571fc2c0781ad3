"""Labels of weights: what a file says of itself, and which labels are another surrogate's."""

import hashlib
import subprocess
import sys
from importlib.metadata import version

import pytest
import torch
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load, save

from rehearsal_torch.data.task_compatibility import fingerprint
from rehearsal_torch.surrogates.state_file import (
    FORMAT,
    LONGEST,
    labelled,
    labels_in,
    odd_label,
    weight_labels,
)
from tests.toys.linear_truth import chain
from tests.toys.rehearsal_methods import plain

WORLD = chain()
CLASS = "rehearsal_torch.surrogates.structural.linear_scm.LinearStructural"


@pytest.fixture(scope="module")
def surrogate():
    return instantiate(plain("linear_structural", WORLD.task))


def test_what_is_known_is_said_and_nothing_else(surrogate):
    own = {
        "checkpoint_format": FORMAT,
        "class": CLASS,
        "format": "pt",
        "library": "rehearsal_torch",
        "question_fingerprint": fingerprint(WORLD.task),
        "version": version("rehearsal-torch"),
    }
    assert weight_labels(surrogate, {"commit": None, "data": {"rows": 3}}) == own
    card = {"commit": "abc", "data_fingerprint": "0f", "seed": 0}
    assert weight_labels(surrogate, card) == own | {"commit": "abc", "data_fingerprint": "0f", "seed": "0"}


def test_ones_own_labels_and_none_are_in_order(surrogate):
    labels = weight_labels(surrogate, {})
    assert odd_label(surrogate, labels) == ""
    assert odd_label(surrogate, {}) == odd_label(surrogate, {"format": "pt"}) == ""
    assert odd_label(surrogate, labels | {"seed": "7", "version": "9.9", "more": "x"}) == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"checkpoint_format": "2", "version": "0.9"}, "got format '2', of version 0.9 of rehearsal_torch"),
        ({"class": CLASS + "Other"}, f"expected the class that config.yaml builds, {CLASS}; its label says"),
        ({"question_fingerprint": "00"}, "expected the question_fingerprint that config.yaml builds"),
    ],
)
def test_labels_of_something_else_are_named(surrogate, changed, said):
    assert said in odd_label(surrogate, weight_labels(surrogate, {}) | changed)


def test_a_missing_label_of_a_format_that_has_it_is_odd(surrogate):
    labels = weight_labels(surrogate, {})
    del labels["question_fingerprint"]
    assert "its label says None" in odd_label(surrogate, labels)


TENSORS = {
    "b": torch.arange(6, dtype=torch.float64).reshape(2, 3) / 7,
    "a": torch.tensor([True, False, True]),
    "empty": torch.zeros(0, 2),
}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(labels=st.dictionaries(TEXTS, TEXTS, max_size=5), before=st.none() | st.just({"x": "y"}))
def test_labels_are_read_by_the_library_and_every_number_stays(tmp_path_factory, labels, before):
    content = labelled(save(TENSORS, metadata=before), labels)
    found = load(content)
    assert set(found) == set(TENSORS)
    assert all(torch.equal(found[name], TENSORS[name]) for name in TENSORS)
    assert labels_in(content) == labels
    path = tmp_path_factory.mktemp("labels") / "w.safetensors"
    path.write_bytes(content)
    with safe_open(str(path), framework="pt") as file:
        assert (file.metadata() or {}) == labels
    # Numbers begin at a multiple of 8 bytes, as the format asks for.
    assert int.from_bytes(content[:8], "little") % 8 == 0


@pytest.mark.slow
def test_the_same_content_is_the_same_to_the_last_byte_in_every_process():
    code = (
        "import hashlib, torch; from safetensors.torch import save;"
        "from rehearsal_torch.surrogates.state_file import labelled;"
        "names = [f'label {i}' for i in range(20)];"
        "content = labelled(save({'a': torch.ones(3)}), dict.fromkeys(names, 'x'));"
        "print(hashlib.sha256(content).hexdigest())"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    here = labelled(
        save({"a": torch.ones(3)}), dict.fromkeys((f"label {one}" for one in reversed(range(20))), "x")
    )
    assert found == {hashlib.sha256(here).hexdigest() + "\n"}


def test_long_texts_are_cut():
    assert labels_in(labelled(save(TENSORS), {"a": "x" * 10_000})) == {"a": "x" * LONGEST}
