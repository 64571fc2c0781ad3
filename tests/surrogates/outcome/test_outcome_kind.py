"""Whether the slack or success is modelled: by the number of values, and by held-out scores between."""

from functools import partial

import pytest
import torch

from rehearsal_torch.estimators.feature_classifier import FeatureClassifier
from rehearsal_torch.estimators.feature_regression import FeatureRegression
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.outcome.face_coordinates import FaceCoordinates
from rehearsal_torch.surrogates.outcome.outcome_kind import OutcomeKind, latent_face, values_of

SETTINGS = {"frequencies": 20, "evidence_rows": 80, "iterations": 6}


def model(classified):
    return (FeatureClassifier if classified else FeatureRegression)(**SETTINGS)


def kind(bounds):
    return OutcomeKind(model, FaceCoordinates.of(Polytope.of({"y": bounds})), 0)


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([torch.arange(100) % 2], "binary"),
        ([torch.arange(100) % 3], "few"),
        ([torch.arange(300) % 50], "few"),
        ([torch.arange(300) % 51], "many"),
        ([torch.arange(100) % 21], "many"),
        ([torch.arange(14) % 3], "many"),
        ([torch.arange(10) % 2], "binary"),
        ([torch.arange(100), torch.arange(100) % 4], "few"),
        ([torch.arange(100), torch.arange(100) % 2], "binary"),
        ([torch.arange(100)], "many"),
    ],
)
def test_the_outcome_with_the_fewest_values_counts(columns, expected):
    assert values_of(torch.stack(columns, -1).double()) == expected


def test_the_latent_sum_is_desired_from_zero():
    assert latent_face().desired(torch.tensor([[-1e-9], [0.0], [1.0]]).double()).tolist() == [
        False,
        True,
        True,
    ]


def test_a_yes_no_outcome_is_classified_and_a_continuous_one_is_not():
    inputs = drawn(100, 2)
    for outcomes, expected in (((inputs[:, :1] > 0).double(), True), (inputs[:, :1], False)):
        made = kind((0.5, None))
        assert not made.of_success
        made.solve(inputs, outcomes)
        assert made.of_success is expected
        assert made.faults() == []
        assert made.targets(outcomes).shape == (100, 1)
    made = kind((0.5, None))
    made.solve(inputs, (inputs[:, :1] > 0).double())
    assert torch.equal(made.targets(inputs[:, :1]), (inputs[:, :1] >= 0.5).double())


def test_marks_on_a_line_keep_their_slack_and_classes_without_an_order_do_not():
    inputs = drawn(600, 1)
    line = (2 * inputs + 0.5 * drawn(600, 1, seed=2)).round()
    made = kind((5.0, None))
    made.solve(inputs, line)
    assert not made.of_success, "few rows reach the last mark, and all show how far off they are"
    classes = torch.where(line == 0, 3.0, torch.where(line > 0, 1.0, 2.0))
    made = kind((2.5, 3.5))
    made.solve(inputs, classes)
    assert made.of_success


@pytest.mark.parametrize(("bounds", "word"), [((0.5, None), "every one"), ((2.0, None), "none")])
def test_two_values_of_which_all_or_none_are_desired_are_refused(bounds, word):
    outcomes = 1 + (torch.arange(40) % 2).double().unsqueeze(-1) / 2
    with pytest.raises(ValueError, match=f"two values only, and {word} of the 40 rows is desired"):
        kind(bounds).solve(drawn(40, 1), outcomes)


def test_few_values_of_which_none_is_desired_have_a_slack():
    made = kind((9.0, None))
    made.solve(drawn(100, 1), (torch.arange(100) % 4).double().unsqueeze(-1))
    assert not made.of_success


def test_a_choice_that_is_none_is_a_fault():
    made = OutcomeKind(partial(model), FaceCoordinates.of(Polytope.of({"y": (0, 1)})), 0)
    made.classified = torch.tensor([0.5]).double()
    assert made.faults() == ["classified: expected 0 or 1; got 0.5"]
