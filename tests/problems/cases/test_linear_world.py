import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.problems.cases.linear_world import LinearEquations, LinearWorld

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
