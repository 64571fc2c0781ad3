"""Labels of weights: what a file says of itself, and which labels are another surrogate's."""

from importlib.metadata import version

import pytest
from hydra.utils import instantiate

from rehearsal_torch.data.question import fingerprint
from rehearsal_torch.surrogates.weight_labels import FORMAT, odd_label, weight_labels
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
        ({"checkpoint_format": "3", "version": "0.9"}, "got format '3', of version 0.9 of rehearsal_torch"),
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
