import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.problems.cases.equation_world import std
from rehearsal_torch.problems.cases.linear_world import Drift, LinearEquations, LinearWorld

NAMES = ("x", "z", "w", "y")
WEIGHTS = {"z": {"x": 2.0}, "w": {"z": -1.0, "x": 0.5}, "y": {"w": 3.0, "z": 1.0}}
EYE = torch.eye(4, dtype=torch.float64)


def system(**changes):
    return LinearEquations(
        **{
            "names": NAMES,
            "weights": WEIGHTS,
            "covariance": 0.1 * EYE,
            "intercepts": {"z": 1.0, "y": -0.3},
            **changes,
        }
    )


def test_the_response_is_what_solving_gives():
    noise = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rounds = torch.zeros(6, dtype=torch.float64)
    x, z = torch.tensor(0.7, dtype=torch.float64), torch.tensor(-0.2, dtype=torch.float64)
    for altered, fixed in (((), {"x": x}), (("z",), {"x": x, "z": z}), (("w",), {"x": x, "w": z})):
        found = system().response(("x",), altered, ("y",))
        values = torch.stack([fixed[name] for name in altered]) if altered else x.new_empty(0)
        expected = (
            found.context @ x.reshape(1) + found.action @ values + found.constant + noise @ found.noise.mT
        )
        torch.testing.assert_close(system().solve(noise, fixed, rounds)[:, 3:], expected)


def test_altering_cuts_the_paths_into_a_variable():
    found = system().response(("x",), ("w",), ("y",))
    assert found.context.tolist() == [[2.0]]  # x -> z -> y is left
    assert found.action.tolist() == [[3.0]]
    assert found.constant.tolist() == pytest.approx([0.7])
    assert found.noise.tolist() == [[0.0, 1.0, 0.0, 1.0]]


def test_wrong_equations_are_refused():
    with pytest.raises(ValueError, match="must come before"):
        system(names=("z", "x", "w", "y"))
    with pytest.raises(ValueError, match="positive definite"):
        system(covariance=torch.zeros(4, 4, dtype=torch.float64))
    with pytest.raises(ValueError, match="may have no causes"):
        system(uniform={"z": (0.0, 1.0)})


def test_context_noise_must_be_its_own():
    task = RehearsalTask.of(
        {
            "graph": {"parents": {"y": ["x", "z"]}},
            "context": ["x"],
            "box": {"z": [0, 1]},
            "region": {"y": [0, None]},
        }
    )
    covariance = torch.eye(3, dtype=torch.float64)
    covariance[0, 2] = covariance[2, 0] = 0.5
    weights = {"y": {"x": 1.0, "z": 1.0}}
    with pytest.raises(ValueError, match="independent of the noise of the other"):
        LinearWorld(task, LinearEquations(("x", "z", "y"), weights, covariance), "a test")
    with pytest.raises(ValueError, match="expected equations for"):
        LinearWorld(task, LinearEquations.of({}, dict.fromkeys("xvy", 1.0), names="xvy"), "a test")
    # An open side: the more the better, up to the box.
    values, best = LinearWorld(
        task, LinearEquations.of(weights, dict.fromkeys("xzy", 1.0), names="xzy"), "a test"
    ).optimal(torch.zeros(1, 1, dtype=torch.float64), ["z"])
    assert values.tolist() == [[1.0]]
    assert float(best) == pytest.approx(0.8413, abs=1e-4)


def test_coefficients_drift_with_the_round():
    moving = system(drift=(Drift("w", "y", 0.5, 8.0, 1.0),))
    assert moving.coefficients(1.0)[3, 2] == pytest.approx(3.5)
    rows = moving.solve(
        torch.zeros(2, 4, dtype=torch.float64),
        {"w": torch.tensor(1.0, dtype=torch.float64)},
        torch.tensor([1.0, 5.0], dtype=torch.float64),
    )
    assert rows[:, 3].tolist() == pytest.approx([3.5 + 1.0 - 0.3, 2.5 + 1.0 - 0.3])


def test_two_readings_of_printed_noise():
    assert std(0.25, "std") == 0.25
    assert std(0.25, "variance") == 0.5
    with pytest.raises(ValueError, match=r'"std" or "variance"'):
        std(0.25, "sd")


def test_uniform_roots_keep_to_their_range():
    noise = system(uniform={"x": (-1.0, 3.0)}).noises(
        torch.randn(5000, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    )
    assert noise[:, 0].aminmax().min >= -1
    assert noise[:, 0].aminmax().max <= 3
    assert noise[:, 0].mean().item() == pytest.approx(1.0, abs=0.06)
    assert noise[:, 1].var().item() == pytest.approx(0.1, rel=0.08)
