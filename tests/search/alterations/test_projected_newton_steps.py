"""The steps of projected Newton, against a plain loop over cases and coordinates."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rehearsal_torch.search.alterations import projected_newton
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton, _middle
from rehearsal_torch.search.budget import Budget

MIX = torch.tensor([[1.0, 0.3], [-0.4, 2.0]], dtype=torch.float64)


class Ridges:
    """Minus the log cosh of two mixed coordinates, in boxes of any unit: full steps overshoot."""

    def __init__(self, tops, unit=1.0):
        self.unit, self.tops = torch.tensor([1.0, unit], dtype=torch.float64), torch.tensor(tops).double()
        self.lower, self.upper = (torch.tensor([[end, end]] * len(tops)) * self.unit for end in (-1.0, 2.0))
        self.seen = []

    def _mixed(self, z, which):
        return 0.8 * (z / self.unit - self.tops[which]) @ MIX.T

    def values(self, z, which):
        mixed = self._mixed(z, which)
        return -(mixed.abs() + torch.log1p((-2 * mixed.abs()).exp())).sum(-1)

    def expansion(self, z, which):
        self.seen.append((z.clone(), which.tolist()))
        bend, slope = 0.64 * (1 - self._mixed(z, which).tanh().square()), 0.8 * self._mixed(z, which).tanh()
        curvature = torch.einsum("no,oi,oj->nij", bend, MIX / self.unit, MIX / self.unit)
        return SimpleNamespace(
            value=self.values(z, which), gradient=-slope @ (MIX / self.unit), curvature=-curvature
        )


def plain_steps(ridges, case, start, steps):
    """Bertsekas' steps of one case in units of its ranges, from a start."""
    which, path, z = torch.tensor([case]), [start], start
    lower, upper = ridges.lower[case].numpy(), ridges.upper[case].numpy()
    unit = upper - lower

    def value(at):
        return float(ridges.values(torch.from_numpy(at)[None], which))

    for _ in range(steps):
        found = Ridges.expansion(ridges, torch.from_numpy(z)[None], which)
        ridges.seen.pop()
        gradient = found.gradient[0].numpy() * unit
        curvature = -found.curvature[0].numpy() * np.outer(unit, unit)
        near = min(np.abs((np.clip(z + gradient * unit, lower, upper) - z) / unit).max(), 1e-3) * unit
        active = ((z <= lower + near) & (gradient < 0)) | ((z >= upper - near) & (gradient > 0))
        matrix = curvature.copy()
        for i in np.flatnonzero(active):
            matrix[i, :] = matrix[:, i] = 0.0
            matrix[i, i] = curvature[i, i]
        ridge = 1e-9 * curvature.diagonal().max() + 1e-14
        step = np.linalg.solve(matrix + ridge * np.eye(len(z)), gradient)
        size, before = 1.0, value(z)
        while True:
            trial = np.clip(z + size * step * unit, lower, upper)
            least = size * (gradient * step)[~active].sum() + (gradient * (trial - z) / unit)[active].sum()
            if value(trial) - before >= 0.2 * least - 1e-14 * (1 + abs(before)):
                break
            size *= 0.5
        z = trial
        path.append(z)
        if np.abs((path[-1] - path[-2]) / unit).max() < 1e-7:
            break
    return path


TOPS = [[0.2, 0.4], [3.0, 0.1], [0.5, -2.0], [1.95, 1.9], [-0.9995, 3.0]]


@pytest.mark.parametrize("unit", [1.0, 1e-4, 1e5])
def test_steps_are_those_of_a_plain_loop(unit, monkeypatch):
    monkeypatch.setattr(projected_newton, "SUFFICIENT_DECREASE", 0.2)
    ridges, search = Ridges(TOPS, unit), ProjectionNewton()
    for share in (0.5, 0.02, 0.9995, 0.0):
        ridges.seen.clear()
        start = ridges.lower + share * (ridges.upper - ridges.lower)
        found = search.ascend(ridges, start)
        for case in range(len(TOPS)):
            path = plain_steps(ridges, case, start[case].numpy(), 100)
            seen = [z[which.index(case)] for z, which in ridges.seen if case in which]
            assert len(seen) == len(path) - 1, "a case leaves once it has converged"
            for mine, theirs in zip([*seen, found[case]], path, strict=True):
                assert np.allclose(mine / ridges.unit, theirs / ridges.unit.numpy(), rtol=0, atol=1e-6)


def test_steps_and_a_budget_end_it():
    for steps, budget, count in ((2, Budget(), 2), (9, Budget(1e-9), 1)):
        ridges = Ridges([[1.5, -0.7]])
        ProjectionNewton(steps=steps).ascend(ridges, ridges.lower + 0.5, budget)
        assert len(ridges.seen) == count


def test_a_step_that_only_loses_is_not_taken():
    class Wrong(Ridges):
        def expansion(self, z, which):
            found = super().expansion(z, which)
            return SimpleNamespace(value=found.value, gradient=-found.gradient, curvature=found.curvature)

    wrong = Wrong([[0.2, 0.4]])
    start = wrong.lower + 1.0
    assert torch.equal(ProjectionNewton().ascend(wrong, start), start)
    assert len(wrong.seen) == 1


def test_open_intervals_have_an_infinite_middle():
    two, far = torch.tensor(2.0).double(), torch.tensor(torch.inf).double()
    middles = [_middle(-two, 3 * two), _middle(-two, far), _middle(-far, two)]
    assert [float(each) for each in middles] == [2.0, torch.inf, -torch.inf]


def test_settings_have_their_defaults_and_ranges():
    given = inspect.signature(ProjectionNewton).parameters
    assert [each.default for each in given.values()] == [100, 1e-7, 1000, True, True, None]
    ProjectionNewton(steps=1)
    for name, value in [
        ("steps", 0),
        ("tolerance", 0.0),
    ]:
        with pytest.raises(ValueError, match="expected steps >= 1"):
            ProjectionNewton(**{name: value})
