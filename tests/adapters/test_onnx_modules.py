"""Modules of ONNX files, before they are traced: the numbers of their models, and bounds of their sizes."""

import math

import pytest
import torch

from rehearsal_torch.adapters.onnx_modules import LinearSurface, OnnxError, RegressionSurface
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.outcome.outcome_regression import JUDGEMENT, OutcomeRegression
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import chain, managing
from tests.toys.rehearsal_toys import confounded, confounded_table, sequential, sequential_table

WORLD = chain()
TRIANGLE = Polytope(
    ("profit", "customers"),
    torch.tensor([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64),
    torch.tensor([0.5, 2.0, 2.5], dtype=torch.float64),
)


def regression(task, table):
    return fit(OutcomeRegression(task, members=2, frequencies=20, evidence_rows=60, iterations=5), table)


def noted(table, name, bound):
    """The same rows with an outcome that only says whether it is above a bound."""
    values = table.values.clone()
    place = table.names.index(name)
    values[:, place] = (values[:, place] > bound).to(values)
    return Table.observed(table.names, values)


REGRESSED = {
    "one outcome, no covariate": lambda: (WORLD.task, WORLD.table(120), ("a",)),
    "a covariate before": lambda: (WORLD.task, WORLD.table(120), ("m",)),
    "two actions": lambda: (WORLD.task, WORLD.table(120), ("a", "m")),
    "two outcomes, bounded on both sides": lambda: (managing().task, managing().table(120), None),
    "two outcomes, a triangle": lambda: (managing(TRIANGLE).task, managing().table(120), None),
    "a covariate between two actions": lambda: (sequential(), sequential_table(120), None),
    "yes or no": lambda: (
        RehearsalTask.of({**confounded().to_plain(), "region": {"y": [0.5, None]}}),
        noted(confounded_table(200), "y", 0.0),
        None,
    ),
    "no context": lambda: (
        RehearsalTask.of({**confounded().to_plain(), "context": []}),
        confounded_table(120),
        None,
    ),
}


def judged(model, names, context, action, draws, points):
    """The estimates by which the method judges, (n,)."""
    success = model.success(model.task.candidates.index(tuple(names)), draws, points, JUDGEMENT)
    with torch.no_grad():
        return success.once(model.contexts(context), model.scaler.standardised(names, action)).mean(-1)


@pytest.mark.parametrize("name", REGRESSED)
def test_a_regressed_surface_counts_as_the_method_does(name):
    task, table, altered = REGRESSED[name]()
    model, names = regression(task, table), altered or task.candidates[0]
    assert (name == "yes or no") == model.outcome_kind.of_success
    context, action = table.columns(task.context)[:40], table.columns(names)[40:80]
    with torch.no_grad():
        found = RegressionSurface(model, names, 8, 16)(context, action)
    assert torch.equal(found, judged(model, names, context, action, 8, 16))


def test_what_is_counted_is_the_share_of_points_in_the_region():
    task = managing(TRIANGLE).task
    model = regression(task, managing().table(80))
    context, action = managing().table(5, seed=7).columns(task.context), torch.zeros(5, 2).double()
    with torch.no_grad():
        found = RegressionSurface(model, task.candidates[0], 8, 16)(context, action)
        success = model.success(0, 8, 16, JUDGEMENT)
        given = model.contexts(context), model.scaler.standardised(task.candidates[0], action)
        outcomes = success.values(*given) + success.noise
    # Three faces in two outcomes: the coordinates are the outcomes.
    inside = (outcomes @ TRIANGLE.normals.mT <= TRIANGLE.offsets).all(-1)
    assert found == pytest.approx(inside.double().mean((-2, -1)), abs=1e-12)


def test_a_linear_surface_is_the_normal_distribution_between_two_ends():
    class Known(torch.nn.Module):
        def forward(self, context, action):
            mean = 0.5 * context[:, 0] - 2 * action[:, 0] + 0.25
            ends = [0.5 * (1 + torch.erf((end - mean) / (0.3 * math.sqrt(2)))) for end in (2.0, 1.0)]
            return ends[0] - ends[1]

    surface = LinearSurface.__new__(LinearSurface)
    torch.nn.Module.__init__(surface)
    numbers = {
        "context": [[0.5 / 0.3]], "action": [[-2 / 0.3]], "constant": [0.25 / 0.3], "upper": [2 / 0.3],
        "lower": [1 / 0.3],
    }  # fmt: skip
    for name, value in numbers.items():
        surface.register_buffer(name, torch.tensor(value, dtype=torch.float64))
    points = torch.randn(2, 50, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert surface(*points) == pytest.approx(Known()(*points), abs=2e-7)


def test_draws_are_bounded():
    model = regression(WORLD.task, WORLD.table(80))
    with pytest.raises(OnnxError, match="at least two draws and points; got 1 and 128"):
        RegressionSurface(model, ("a",), 1, 128)
    with pytest.raises(OnnxError, match=r"at most 1024 MiB; 1000 x 100000 need about \d+: ask for fewer"):
        RegressionSurface(model, ("m",), 1000, 100_000)
