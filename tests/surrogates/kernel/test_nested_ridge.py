"""The nested surrogate: what it adjusts for, and that this is what makes its decisions right."""

import pytest
import torch

from rehearsal_torch.data.table import Table
from rehearsal_torch.objectives.kernel_value import KernelValue
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.kernel.nested_ridge import Desirability, NestedRidge
from rehearsal_torch.surrogates.kernel.product_kernel_ridge import ProductRidge
from tests.toys.rehearsal_toys import (
    confounded,
    confounded_table,
    confounded_truth,
    fitted,
    sequential,
    sequential_table,
    sequential_truth,
    small,
    some_cases,
)


def decisions(model, count=5):
    return ProjectedAscent(starts=5, steps=40).batch_search(
        KernelValue.for_cases(model, some_cases(model.task, count))
    )


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [small, ProductRidge])
def test_adjusting_turns_the_decision_around(estimator):
    table, cases = confounded_table(500), some_cases(confounded(), 5)
    reached = {}
    for adjusted in (True, False):
        model = fitted(confounded(adjusted), table, estimator)
        found = decisions(model)
        # A recommendation that is taken back still names what it would have set.
        values = [
            each.trace["would_set"]["a"] if each.alteration is None else float(each.alteration.values)
            for each in found
        ]
        reached[adjusted] = [
            float(confounded_truth(case.given["x"], value)) for case, value in zip(cases, values, strict=True)
        ]
        signs = [value > 0 for value in values]
        assert all(signs) if adjusted else not any(signs), (
            "a high value of the action helps; rows that have it do badly"
        )
    # Doing nothing reaches about .2.
    assert min(reached[True]) > (0.45 if estimator is small else 0.3)
    assert max(reached[False]) < 0.2


@pytest.mark.slow
def test_the_estimated_probability_is_near_the_truth():
    model = fitted(confounded(), confounded_table(1000))
    (value,) = KernelValue.for_cases(model, cases := some_cases(confounded(), 20)).sets
    actions = torch.linspace(-1.2, 1.2, 20, dtype=torch.float64).unsqueeze(-1)
    found = torch.tensor([one.estimate.point for one in value.appraise(actions)])
    truth = torch.stack(
        [confounded_truth(case.given["x"], action[0]) for case, action in zip(cases, actions, strict=True)]
    )
    assert float((found - truth).abs().mean()) < 0.1
    inside = [
        one.estimate.lower - 0.02 <= float(true) <= one.estimate.upper + 0.02
        for one, true in zip(value.appraise(actions), truth, strict=True)
    ]
    assert sum(inside) >= 14


def test_each_set_is_adjusted_for_by_the_graph():
    model = NestedRidge(confounded(candidates=[["a"], ["c"], ["a", "c"]]), small)
    assert [set(each.before) for each in model.adjustments] == [{"u"}, {"u", "a"}, {"u"}]
    assert all(each.reasons == () for each in model.adjustments)
    assert len(model.values()) == 3
    (found,) = NestedRidge(sequential(), small).adjustments
    assert (found.before, found.between, found.first) == ((), ("v",), ("a",))
    (single,) = NestedRidge(sequential(), small, sequential=False).adjustments
    assert single.between == ()
    assert single.reasons


def test_an_arrow_beside_a_hidden_common_cause_is_adjusted_for_or_named():
    plain = confounded().to_plain()
    bowed = {
        "parents": {"u": [], "a": ["x", "u"], "c": ["x"], "y": ["x", "a", "u"]},
        "bidirected": [["a", "y"]],
    }
    (found,) = NestedRidge({**plain, "graph": bowed}, small).adjustments
    (reason,) = found.reasons
    assert reason.startswith(
        "a and y have a common cause that is not blocked by x, u (a -> y accompanies a <-> y)"
    )
    (found,) = NestedRidge({**plain, "graph": {**bowed, "bidirected": [["u", "a"]]}}, small).adjustments
    assert (found.before, found.reasons) == (("u",), ())


@pytest.mark.slow
def test_the_sequential_formula_beats_the_single_one_where_it_is_needed():
    table, cases = sequential_table(800), some_cases(sequential(), 4)
    actions = torch.tensor([[-1.0, -1.5], [1.0, 1.5], [-0.8, 1.0], [0.8, -1.0]], dtype=torch.float64)
    truth = torch.stack(
        [sequential_truth(case.given["x"], each) for case, each in zip(cases, actions, strict=True)]
    )
    errors = {}
    for flag in (True, False):
        (value,) = KernelValue.for_cases(fitted(sequential(), table, sequential=flag), cases).sets
        found = torch.tensor([one.estimate.point for one in value.appraise(actions)])
        errors[flag] = float((found - truth).abs().mean())
    assert errors[True] < 0.1
    assert errors[True] < 0.7 * errors[False]


def test_outcomes_that_are_never_desired_do_not_break_it():
    table = confounded_table(150)
    low = Table.observed(table.names, torch.cat([table.values[:, :4], table.values[:, 4:] - 100], -1))
    for each in decisions(fitted(confounded(), low), 2):
        assert each.estimate.point == pytest.approx(0, abs=0.02)


def outcomes(count=2000, width=2, seed=0):
    return 3 + 2 * torch.randn(
        count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def made(bounds, values=None, **settings):
    found = Desirability(Polytope.of(bounds), **settings)
    found.solve(outcomes(width=len(bounds)) if values is None else values)
    return found


def test_in_a_narrow_region_the_centre_still_counts_as_desired():
    found = made({"y": (2.9, 3.1), "z": (None, None)})
    assert float(found.sharpness) > 20
    centre, edge = found.targets(torch.tensor([[3.0, 0.0], [3.1, 0.0]], dtype=torch.float64))[:, 0].tolist()
    assert centre == pytest.approx(float(torch.special.ndtr(torch.tensor(2.0)) ** 2), abs=1e-3)
    assert edge == pytest.approx(0.5, abs=1e-3)
    wider = made({"y": (2.9, 3.1), "z": (None, None)}, clearance=4.0)
    assert float(wider.sharpness) == pytest.approx(2 * float(found.sharpness))


def test_targets_are_the_desirability_in_standard_deviations_and_the_indicator():
    values = outcomes()
    found = made({"y": (2, 5), "z": (None, 4)}, values, sharpness=8.0)
    smooth, indicator = found.targets(values).T
    inside = ((values >= values.new_tensor([2, -torch.inf])) & (values <= values.new_tensor([5, 4]))).all(-1)
    assert torch.equal(indicator, inside.double())
    spread = values.std(0)
    by_hand = torch.special.ndtr(8 * (values[:, 0] - 2) / spread[0]) * torch.special.ndtr(
        8 * (5 - values[:, 0]) / spread[0]
    )
    assert torch.allclose(smooth, by_hand * torch.special.ndtr(8 * (4 - values[:, 1]) / spread[1]))


def test_scores_are_normal_and_faces_that_say_the_same_count_once():
    values = outcomes()
    found = made({"y": (2, 5), "z": (None, 4)}, values)
    scores = found.scores(values)
    assert scores.shape == (2000, 2), "two sides of one outcome order the rows alike"
    assert scores.mean(0).abs().max() < 1e-6
    assert (scores.std(0) - 1).abs().max() < 0.01
    assert torch.equal(scores[:, 0].argsort(), (-values[:, 0]).argsort())
    heavy = found.scores(values**3 * 1e6)
    assert torch.allclose(heavy[:, 0].sort().values, scores[:, 0].sort().values), (
        "outliers have no more say than others"
    )
