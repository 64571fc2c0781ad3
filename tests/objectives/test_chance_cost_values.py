"""What changes cost, from where, and within which bounds."""

from dataclasses import replace

import pytest
import torch

from rehearsal_torch.objectives.chance_cost import ChanceCost
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import chain

WORLD = chain()
AT = torch.tensor([[0.3, 1.0], [-0.5, 0.25]], dtype=torch.float64)


@pytest.fixture(scope="module")
def surrogate():
    return fit(LinearStructural(WORLD.task), WORLD.table(200))


def test_a_change_by_one_standard_deviation_costs_one_unless_weights_are_given(surrogate) -> None:
    cases = WORLD.cases(2)
    cases[1] = replace(cases[1], present={"a": 0.5, "m": -1.0})
    linear = surrogate.linear_model()
    mean, spread = linear.moments()
    usual = {name: float(mean[linear.names.index(name)]) for name in ("a", "m")}
    variance = {name: float(spread.diagonal()[linear.names.index(name)]) for name in ("a", "m")}
    for given, reference in (({}, {}), ({"m": 3.0}, {"a": 0.125})):
        *_, both = ChanceCost.for_sets(surrogate, cases, 0.5, given, reference)
        weights = {name: given.get(name, 1 / variance[name]) for name in ("a", "m")}
        starts = [usual | reference, cases[1].present | reference]
        expected = [
            sum(
                weights[name] * (float(value) - start[name]) ** 2
                for name, value in zip("am", row, strict=True)
            )
            for row, start in zip(AT, starts, strict=True)
        ]
        assert both.cost(AT).tolist() == pytest.approx(expected)
        assert both.cost(AT.expand(3, 2, 2)).shape == (3, 2)
        origin = torch.tensor([[start[name] for name in "am"] for start in starts], dtype=torch.float64)
        assert torch.allclose(both.starts(4)[0], both.project(origin))
        assert torch.equal(both.starts(4)[1:], both.success.starts(3))
        assert torch.equal(both.starts(1), both.starts(4)[:1])
    assert both.enumerable is False


def test_what_qualifies_lies_in_the_box_and_narrower_bounds_are_those_of_both(surrogate) -> None:
    one, *_ = ChanceCost.for_sets(surrogate, WORLD.cases(2), 0.05)
    found = one.cheapest()
    assert found.feasible.all()
    narrow = one.within(found.points - 0.25, found.points + 0.5, {})
    assert torch.equal(narrow.success.lower, found.points - 0.25)
    assert torch.equal(narrow.success.upper, found.points + 0.5)
    assert torch.allclose(narrow(found.points), -one.cost(found.points))
    for beyond in (found.points - 0.26, found.points + 0.51):
        assert narrow(beyond).tolist() == [-torch.inf] * 2
    edge = one.within(found.points, found.points, {})
    assert edge(found.points).isfinite().all()


def test_levels_and_weights_out_of_range_are_refused(surrogate) -> None:
    for level in (0.0, 1.0):
        with pytest.raises(ValueError, match=r"expected a level in \(0, 1\)"):
            ChanceCost.for_sets(surrogate, WORLD.cases(1), level)
    for wrong in ({"weights": {"a": 0.0}}, {"weights": {"y": 1.0}}, {"reference": {"x": 1.0}}):
        with pytest.raises(ValueError, match=r"expected positive weights and references of \['a', 'm'\]"):
            ChanceCost.for_sets(surrogate, WORLD.cases(1), 0.5, **wrong)
