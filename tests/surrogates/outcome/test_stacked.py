"""The stack: what weight follows from which held-out predictions, and what it is made of."""

import itertools
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.table import Table
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.kernel.nested_ridge import NestedRidge
from rehearsal_torch.surrogates.kernel.product_ridge import ProductRidge
from rehearsal_torch.surrogates.kernel.spectral_ensemble import SpectralEnsemble
from rehearsal_torch.surrogates.outcome import stacked
from rehearsal_torch.surrogates.outcome.outcome_regression import OutcomeRegression
from rehearsal_torch.surrogates.outcome.stacked import StackedRegression, StackWeight
from rehearsal_torch.training.fit import fit
from tests.toys.rehearsal_toys import confounded, confounded_table

small = partial(
    NestedRidge,
    estimator=partial(
        SpectralEnsemble, members=2, features=40, direction_rows=60, width_rows=60, iterations=4
    ),
)
little = partial(OutcomeRegression, members=2, frequencies=20, evidence_rows=60, iterations=4)


def solved(first, second, desired, **constants):
    made = StackWeight()
    predictions = torch.stack((torch.as_tensor(first), torch.as_tensor(second)), -1).double().unsqueeze(1)
    with pytest.MonkeyPatch.context() as patch:
        for name, rows in constants.items():
            patch.setattr(stacked, name, rows)
        made.solve(predictions, torch.as_tensor(desired).double())
    return made


def drawn(count, share, seed=0):
    stream = torch.Generator().manual_seed(seed)
    return (torch.rand(count, generator=stream, dtype=torch.float64) < share).double()


def test_the_better_one_gets_the_larger_weight_and_more_of_it_with_more_rows():
    weights = []
    for count in (100, 1000, 10_000):
        desired = drawn(count, 0.4)
        good, bad = 0.7 * desired + 0.12, torch.full_like(desired, 0.5)
        made, turned = solved(good, bad, desired), solved(bad, good, desired)
        weights.append(float(made.weight))
        assert float(made.scores[0]) < float(made.scores[2]) < float(made.scores[1])
        assert float(turned.weight) < float(made.weight)
        equal = solved(good, bad, desired, EQUAL_ROWS=0), solved(bad, good, desired, EQUAL_ROWS=0)
        assert float(sum(each.weight for each in equal)) == pytest.approx(1)
    assert 0.2 < weights[0] < weights[1] < weights[2] < 1


def test_the_weight_grows_with_the_number_of_desired_rows_without_a_jump():
    # Equal held-out scores say nothing, so that the weight is nearly the one expected beforehand.
    weights = []
    for rows in range(30, 400):
        desired = torch.zeros(1000).double()
        desired[:rows] = 1
        flat = torch.full_like(desired, 0.3)
        turned = flat + 0.1 * torch.tensor([1.0, -1.0]).double().repeat(500)
        weights.append(float(solved(turned, 2 * flat - turned, desired, PRIOR_ROWS=1e12).weight))
    steps = [later - one for one, later in itertools.pairwise(weights)]
    assert weights[0] == pytest.approx(0.5 * 30 / 330, abs=1e-6)
    assert all(0 < step < 0.002 for step in steps)


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_where_too_few_rows_are_desired_or_not_the_outcomes_decide_alone(share):
    desired = drawn(1000, share)
    made = solved(desired, torch.full_like(desired, 0.5), desired)
    assert min(float(desired.sum()), float((1 - desired).sum())) < 30
    assert float(made.weight) == 0
    assert float(solved(desired, 1 - desired, desired, FEWEST_ROWS=1).weight) > 0.1
    assert made.counts.tolist() == [float(desired.sum()), 1000]


PROBABILITIES = st.lists(
    st.tuples(st.floats(-1, 2), st.floats(-1, 2), st.booleans()), min_size=2, max_size=30
)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(PROBABILITIES)
def test_a_weight_lies_between_the_best_one_and_the_one_expected_beforehand(rows):
    first, second, desired = (torch.tensor(each, dtype=torch.float64) for each in zip(*rows, strict=True))
    made = solved(first, second, desired, FEWEST_ROWS=0)
    alone = solved(first, second, desired, FEWEST_ROWS=0, PRIOR_ROWS=0)
    few = min(float(desired.sum()), float((1 - desired).sum()))
    ends = sorted((0.5 * few / (few + 300), float(alone.weight)))
    # Without a desired row (or an undesired one) there is nothing to score.
    assert ends[0] - 1e-12 <= float(made.weight) <= ends[1] + 1e-12 or not few
    assert made.faults() == []


def test_predictions_outside_the_unit_interval_count_as_its_ends():
    desired = drawn(100, 0.5)
    assert float(solved(desired, 1 - desired, desired).scores[0]) == 0
    assert float(solved(3 * desired - 1, 1 - desired, desired).scores[0]) == 0


def test_a_weight_that_is_none_is_noticed():
    made = solved([0.1, 0.2], [0.2, 0.1], [0.0, 1.0])
    made.weight = torch.tensor([2.0], dtype=torch.float64)
    assert made.faults() == ["weight: expected a number in [0, 1]; got 2.0"]


@pytest.fixture(scope="module")
def model():
    return fit(StackedRegression(confounded(), small, little), confounded_table(200))


def test_it_holds_both_as_they_are_fitted_alone(model):
    table = confounded_table(200)
    one, other = fit(small(confounded()), table), fit(little(confounded()), table)
    for name, alone in (("indicator", one), ("outcome", other)):
        inside = getattr(model, name).state_dict()
        for key, value in alone.state_dict().items():
            assert torch.equal(inside[key], value), key
    assert 0 < model.weight < 1
    assert model.faults() == []


def test_another_box_is_taken_over_by_both(model):
    asked = confounded().to_plain()
    asked["box"]["a"] = [-0.5, 0.5]
    model.adopt(asked)
    for each in (model, model.indicator, model.outcome):
        assert each.task.box.bounds()["a"] == (-0.5, 0.5)
    asked["region"] = {"names": ["y"], "normals": [[-1.0]], "offsets": [5.0]}
    with pytest.raises(ValueError, match="another question"):
        model.adopt(asked)
    assert Polytope.of({"y": (2.0, None)}).offsets.tolist() == model.task.region.offsets.tolist()


def test_an_estimator_that_cannot_leave_rows_out_is_refused():
    with pytest.raises(ValueError, match=r"expected a SpectralEnsemble.*got GramRidge"):
        StackedRegression(
            confounded(), partial(NestedRidge, estimator=ProductRidge, sequential=False), little
        )


def test_yes_no_outcomes_are_stacked():
    table = confounded_table(200)
    values = table.values.clone()
    values[:, -1] = (values[:, -1] > 0).double()
    task = type(confounded()).of(confounded().to_plain() | {"region": {"y": [0.5, None]}})
    model = fit(StackedRegression(task, small, little), Table.observed(table.names, values))
    assert model.outcome.outcome_kind.of_success
    assert 0 < model.weight < 1
    assert (model.stack.scores[:2] < 0.6 * model.stack.scores[2]).all()
