"""Draws that all numbers share: their distribution functions, and the truth where it is known."""

import pytest
import torch

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.outcome.case_draws import CaseDraws
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.outcome.shared_draws import _Tables, mean_success
from rehearsal_torch.training.surrogate_fit import fit
from tests.surrogates.outcome.test_outcome_regression import SMALL
from tests.toys.rehearsal_toys import (
    confounded,
    confounded_table,
    confounded_truth,
    sequential,
    sequential_table,
    sequential_truth,
)


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def model():
    return fit(OutcomeRegression(confounded(), **SMALL), confounded_table(200))


def test_a_tabulated_distribution_is_the_weighted_share_of_the_pool():
    pool, stream = drawn(60), torch.Generator().manual_seed(1)
    weights = torch.empty(2, 3, 60, dtype=torch.float64).exponential_(generator=stream)
    weights = weights / weights.sum(-1, keepdim=True)
    table = _Tables(pool, weights)
    points = drawn(2, 5, 3, seed=2)
    below = (pool <= points.unsqueeze(-1)).double()
    counted = (below * weights.unsqueeze(1)).sum(-1)
    # Steps of a single row are interpolated.
    assert (table(points) - counted).abs().max() <= weights.max()
    assert float((table(points) - counted).abs().mean()) < 0.02
    ends = torch.tensor([-1e9, 1e9], dtype=torch.float64)[:, None, None, None].expand(2, 2, 1, 3)
    assert torch.equal(table(ends)[0], torch.zeros(2, 1, 3, dtype=torch.float64))
    assert torch.allclose(table(ends)[1], torch.ones(2, 1, 3, dtype=torch.float64), atol=1e-6)
    rising = table(torch.linspace(-3, 3, 50, dtype=torch.float64)[:, None, None, None].expand(-1, 2, 1, 3))
    assert (rising.diff(dim=0) >= -1e-12).all()


def test_a_pool_of_equal_residuals_is_a_step():
    table = _Tables(torch.full((4,), 0.7).double(), torch.full((1, 1, 4), 0.25).double())
    points = torch.tensor([0.69, 0.71], dtype=torch.float64).reshape(1, 2, 1)
    assert table(points).flatten().tolist() == pytest.approx([0.0, 1.0], abs=1e-6)


def test_points_have_weights_that_sum_to_one(model):
    draws = model.draws(0, 3, 8, 4, 0)
    ones = torch.ones(4, 8, 3, dtype=torch.float64)
    torch.testing.assert_close(draws.mean(ones), ones[:, 0])
    torch.testing.assert_close(draws.mean(ones[:, :4]), ones[:, 0])
    numbers = drawn(2, 4, 8, 3)
    expected = (numbers * draws.shares[:, :, None]).sum(-2)
    torch.testing.assert_close(draws.mean(numbers), expected)


def two_outcomes():
    """The confounded world with a second outcome, of u alone."""
    table = confounded_table(200)
    values = torch.cat((table.values, table.values[:, 1:2] + 0.5 * drawn(200, 1, seed=4)), -1)
    plain = confounded().to_plain()
    plain["graph"] = {"parents": {"u": [], "a": ["x", "u"], "c": ["x"], "y": ["x", "a", "u"], "z": ["u"]}}
    plain["region"] = {"y": [0.0, 4.0], "z": [None, 1.0]}
    return RehearsalTask.of(plain), type(table).observed((*table.names, "z"), values)


@pytest.mark.parametrize("several", [False, True])
def test_many_actions_have_the_values_of_each_at_every_point(model, several):
    made = fit(OutcomeRegression(two_outcomes()[0], **SMALL), two_outcomes()[1]) if several else model
    draws, actions = made.draws(0, 3, 8, 4, 0), drawn(5, 3, 1, seed=2)
    assert bool(draws.counted) == several, "residuals are counted where a region has several coordinates"
    known = draws.known(drawn(3, 1))
    assert known.shape == (3, 4, 8, 2)
    many = draws.success_around(draws.around(known), known, actions)
    wide = actions[:, :, None, None].expand(5, 3, 4, 8, 1)
    single = draws.success(torch.cat((known.expand(5, *known.shape), wide), -1))
    assert many.shape == single.shape == (5, 3, 4, 8, 3)
    # Counts may differ where a sum lies on a face.
    close = (many - single).abs() <= 1e-9
    assert close.double().mean() > (0.995 if several else 0.99999)
    assert ((single >= 0) & (single <= 1)).all()


def test_the_probability_is_the_one_after_the_alteration_not_the_one_observed():
    model = fit(OutcomeRegression(confounded(), **{**SMALL, "frequencies": 40}), confounded_table(600))
    x, a = torch.zeros(3, 1, dtype=torch.float64), torch.tensor([[-0.5], [0.8], [1.4]], dtype=torch.float64)
    cases = CaseDraws(model.draws(0, 3, 128, 1, 0), model.contexts(x))
    found = cases.values(model.scaler.standardised(("a",), a).unsqueeze(0))
    truth = confounded_truth(x[:, 0], a[:, 0])
    assert found.success[0].mean(-1).tolist() == pytest.approx(truth.tolist(), abs=0.06)
    # y = -2 u + e of variance 4 + 1 + .09 where nothing is set.
    nothing = float(torch.special.ndtr(torch.tensor(-2 / (4 + 1 + 0.09) ** 0.5)))
    assert float(found.none.mean()) == pytest.approx(nothing, abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("actions", [(1.0, 1.0), (-0.5, 1.0), (0.5, -0.5)])
def test_what_follows_the_first_alteration_is_accounted_for(actions):
    model = fit(OutcomeRegression(sequential()), sequential_table(600))
    x, a = torch.tensor([[0.4]], dtype=torch.float64), torch.tensor([[actions]], dtype=torch.float64)
    cases = CaseDraws(model.draws(0, 12, 64, 1, 0), model.contexts(x))
    found = cases.values(model.scaler.standardised(("a", "b"), a)).success
    truth = float(sequential_truth(torch.tensor(0.4), torch.tensor(actions)))
    assert float(found.mean()) == pytest.approx(truth, abs=0.05)
    rows = sequential_table(20_000, 5, x=0.4).columns(["y"]).abs() < 1
    assert float(cases.none.mean()) == pytest.approx(float(rows.double().mean()), abs=0.05)


def test_success_by_the_mean_function_is_that_of_the_rows(model):
    table = confounded_table(200)
    member, inputs = model.models(0).outcomes[0], model.inputs(table, 0)
    found = mean_success(member, model.outcome_kind.faces, inputs)
    desired = model.task.region.contains(table.columns(("y",))).double()
    assert ((found >= 0) & (found <= 1)).all()
    assert float(found.mean()) == pytest.approx(float(desired.mean()), abs=0.03)
    assert float((found - desired).square().mean()) < 0.05


def test_a_covariate_of_two_values_is_drawn_as_one_of_them_as_often_as_in_such_cases():
    """It was once a number between them, where no row is, and doing nothing looked worse than it is."""
    x, noise, chance = drawn(1000), drawn(2, 1000, seed=1), torch.rand(1000, generator=torch.manual_seed(0))
    u = (chance < torch.sigmoid(x)).double()
    a = 2 * u - 1 + 0.7 * noise[0]
    y = -((a - 2 * u + 1) ** 2) + 0.2 * noise[1]
    task = RehearsalTask.of(
        {
            "graph": ["x -> u -> {a y}", "a -> y"],
            "context": ["x"],
            "box": {"a": [-2, 2]},
            "region": {"y": [-1, None]},
        }
    )
    table = Table.observed(("x", "u", "a", "y"), torch.stack((x, u, a, y), -1))
    model = fit(OutcomeRegression(task, **SMALL), table)
    draws = model.draws(0, 3, 64, 4, 0)
    contexts = model.contexts(torch.tensor([[-1.0], [1.0]], dtype=torch.float64))
    values = draws.known(contexts)[..., 1]
    assert len(values.unique()) == 2
    higher = (draws.mean((values > 0).double().unsqueeze(-1)).mean((-2, -1))).tolist()
    assert higher == pytest.approx(torch.sigmoid(torch.tensor([-1.0, 1.0])).tolist(), abs=0.06)
    # P(.49 e^2 <= 1 + .2 f), by two million draws.
    assert CaseDraws(draws, contexts).none.mean((1, 2, 3)).tolist() == pytest.approx([0.841] * 2, abs=0.05)
