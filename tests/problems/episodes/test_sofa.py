"""SOFA: each organ's limits, and sums within 0 ... 24."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rehearsal_torch.problems.episodes.simulator import sofa

HEALTHY = {
    "oxygen": 0.21,
    "arterial": 95.0,
    "platelets": 250.0,
    "bilirubin": 0.5,
    "glasgow": 15.0,
    "pressure": 90.0,
    "creatinine": 0.8,
    "urine": 400.0,
}


def score(vasopressor: float = 0.0, **changed: float) -> float:
    states = torch.tensor(list((HEALTHY | changed).values()), dtype=torch.float64)
    return float(sofa(states, torch.tensor(vasopressor, dtype=torch.float64)))


def test_the_healthy_score_nothing() -> None:
    assert score() == 0


@pytest.mark.parametrize(
    ("organ", "values"),
    [
        ("arterial", {401 * 0.21: 0, 399 * 0.21: 1, 299 * 0.21: 2, 199 * 0.21: 3, 99 * 0.21: 4}),
        ("platelets", {151: 0, 150: 1, 99.9: 2, 49.9: 3, 19.9: 4}),
        ("bilirubin", {1.19: 0, 1.2: 1, 2.0: 2, 6.0: 3, 12.0: 3, 12.1: 4}),
        ("pressure", {70: 0, 69.9: 1, 64.9: 2}),
        ("glasgow", {15: 0, 14: 1, 13: 1, 12: 2, 10: 2, 9: 3, 6: 3, 5: 4, 3: 4}),
        ("creatinine", {1.19: 0, 1.2: 1, 2.0: 2, 3.5: 3, 5.0: 3, 5.1: 4}),
        ("urine", {84: 0, 83.9: 3, 33.9: 4}),
    ],
)
def test_each_organ_has_its_limits(organ: str, values: dict[float, int]) -> None:
    assert {value: score(**{organ: value}) for value in values} == values


@pytest.mark.parametrize(
    ("organ", "values"),
    [
        ("arterial", {200.0: 1, 150.0: 1, 100.0: 2, 50.0: 3}),
        ("platelets", {100.0: 1, 50.0: 2, 20.0: 3}),
        ("pressure", {65.0: 1}),
        ("urine", {34.0: 3}),
    ],
)
def test_a_limit_that_is_just_reached_keeps_the_lower_score(organ: str, values: dict[float, int]) -> None:
    """Half oxygen, so that the ratios 400, 300, 200 and 100 are met exactly."""
    assert {
        value: score(**({"oxygen": 0.5, "arterial": 300.0} | {organ: value})) for value in values
    } == values


@pytest.mark.parametrize(("dose", "points"), [(0.0, 0), (0.001, 3), (0.1, 3), (0.101, 4)])
def test_the_vasopressor_of_the_step_counts(dose: float, points: int) -> None:
    assert score(dose) == points


def test_pressure_and_vasopressor_are_one_organ_and_so_are_creatinine_and_urine() -> None:
    assert score(0.2, pressure=60.0) == 4
    assert score(creatinine=2.5, urine=50.0) == 3


@given(st.lists(st.floats(0.01, 500), min_size=8, max_size=8), st.floats(0, 2))
def test_scores_are_whole_and_within_range(values: list[float], dose: float) -> None:
    found = float(
        sofa(torch.tensor([values, values], dtype=torch.float64), torch.tensor(dose, dtype=torch.float64))[1]
    )
    assert found == round(found)
    assert 0 <= found <= 24
