"""Costs under a chance constraint, and the cheapest alteration."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import chi2

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives import chance_cost
from rehearsal_torch.objectives.chance_cost import ChanceCost, best_level
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.search.alterations.chance_projection import CheapestAlteration
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain, managing

SINGLE_OR_BOTH = (("raw_cost",), ("self_pricing",), ("raw_cost", "self_pricing"))


def costs(world, count=12, rows=300, **more):
    return ChanceCost.for_cases(
        fit(LinearStructural(world.task), world.table(rows)), world.cases(count), **more
    )


@pytest.mark.parametrize("level", [0.3, 0.7, 0.9])
@pytest.mark.parametrize(
    "world", [managing(candidates=SINGLE_OR_BOTH), chain()], ids=["two outcomes", "one outcome"]
)
def test_a_qualifying_alteration_keeps_its_promise_under_the_model(world, level):
    made = costs(world, level=level)
    qualified = 0
    for one in made.sets:
        found = one.cheapest()
        assert (one.success(found.points)[found.feasible].exp() >= level - 1e-7).all()
        assert torch.equal(one(found.points).isfinite(), found.feasible)
        assert torch.equal(found.points, one.project(found.points))
        qualified += int(found.feasible.sum())
    assert qualified > 0


def test_the_cheapest_is_scipys():
    made = costs(managing(candidates=SINGLE_OR_BOTH), level=0.7)
    one = made.sets[2]
    found = one.cheapest()
    task, response = managing().task, one.success.model.response
    radius = chi2.ppf(0.7, 2) ** 0.5
    margins = radius * (task.region.normals @ one.success.model.root).norm(dim=-1)
    base = response.base(one.success.contexts)
    for index in range(4):
        room = (task.region.offsets - base[index] @ task.region.normals.mT - margins).numpy()
        normals = (task.region.normals @ response.action).numpy()
        constraint = {
            "type": "ineq",
            "fun": lambda z, n=normals, r=room: r - n @ z,
            "jac": lambda z, n=normals: -n,
        }
        reference, weights = one.usual.numpy(), one.weights.numpy()
        start = ProjectionNewton().best(one.success)[index].numpy()
        expected = minimize(
            lambda z, w=weights, r=reference: w @ (z - r) ** 2,
            start,
            bounds=[(-6, 6)] * 2,
            constraints=[constraint],
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 300},
        )
        assert bool(found.feasible[index])
        assert float(one.cost(found.points)[index]) == pytest.approx(expected.fun, abs=1e-5)


@pytest.mark.slow
def test_an_open_level_is_the_best_of_the_grid_for_the_contexts_seen():
    world = chain(noise=0.4)
    made = costs(world)
    surrogate = fit(LinearStructural(world.task, draws=0), world.table(300))
    contexts = surrogate.contexts.values
    seen = [RehearsalCase(str(i), {"x": row[0]}, world.task.box.bounds()) for i, row in enumerate(contexts)]

    def mean(level):
        decisions = CheapestAlteration(None).batch_search(ChanceCost.for_cases(surrogate, seen, level=level))
        return np.mean(
            [
                each.trace["plug_in"] if each.trace["qualifies"] else _before(surrogate, seen)[i]
                for i, each in enumerate(decisions)
            ]
        )

    assert best_level(surrogate, [(one.weights, one.usual) for one in made.sets]) == max(
        chance_cost.LEVELS, key=mean
    )
    assert len({one.tau for one in made.sets}) == 1


def _before(surrogate, some_cases):
    return GaussianSuccess.for_sets(surrogate, some_cases)[0].nothing.tolist()


def test_a_present_value_is_what_a_change_starts_from():
    world = chain()
    surrogate = fit(LinearStructural(world.task), world.table(300))
    (case,) = world.cases(1)
    known = [replace(case, present={"a": value}) for value in (-0.4, 0.9)]
    usual = ChanceCost.for_cases(surrogate, [case], level=0.7).sets[0]
    one = ChanceCost.for_cases(surrogate, [case, *known], level=0.7).sets[0]
    free = usual.usual.expand(3, -1).clone()
    free[1:, 0] = torch.tensor([-0.4, 0.9])
    torch.testing.assert_close(one.reference, free)
    lower, upper = one.cheapest().points.min(), one.cheapest().points.max()
    # In one dimension, what qualifies is an interval: the nearest of its ends to where the case is.
    ends = ChanceCost.for_cases(
        surrogate, [replace(case, present={"a": value}) for value in (-1e3, 1e3)], level=0.7
    )
    low, high = ends.sets[0].cheapest().points[:, 0]
    expected = free[:, 0].clamp(low, high)
    torch.testing.assert_close(one.cheapest().points[:, 0], expected)
    assert low - 1e-9 <= lower <= upper <= high + 1e-9
    torch.testing.assert_close(
        one.cost(one.cheapest().points), one.weights[0] * (expected - free[:, 0]).square()
    )
    stated = ChanceCost.for_cases(surrogate, known, level=0.7, reference={"a": 0.2}).sets[0]
    assert stated.reference.tolist() == [[0.2], [0.2]]


def test_of_sets_of_equal_cost_the_first_is_taken():
    # Once m is set, a changes nothing, and is left at its usual value.
    world = replace(chain(), task=replace(chain().task, candidates=(("m",), ("a", "m"))))
    made = costs(world, 40, level=0.7)
    first, second = (one.cheapest() for one in made.sets)
    some = first.feasible & (first.points[:, 0] != made.sets[0].usual[0])
    assert some.any()
    assert torch.equal(first.points[some], second.points[some][:, 1:])
    assert {each.trace["altered"] == ["m"] for each in CheapestAlteration().batch_search(made)} == {True}


@pytest.mark.parametrize("seed", range(6))
def test_levels_in_one_batch_give_what_each_gives_alone(seed):
    world = chain(noise=0.2 + 0.1 * seed)
    surrogate = fit(LinearStructural(world.task, draws=0), world.table(200))
    sets = ChanceCost.for_cases(surrogate, world.cases(1), level=0.5).sets
    contexts, levels = surrogate.contexts.values, (0.3, 0.5, 0.7, 0.9)
    for one in sets:
        base = one.success.model.base(contexts)
        box = world.task.box.only(one.names)
        lower, upper = (side.expand(len(base), -1) for side in (box.lower, box.upper))
        usual = one.usual.expand(len(base), -1)
        alone = [
            chance_cost._cheapest(one.success.model, one.weights, base, lower, upper, level, usual)
            for level in levels
        ]
        every = torch.tensor(levels, dtype=torch.float64).repeat_interleave(len(base))
        several = [each.repeat(len(levels), 1) for each in (base, lower, upper)]
        together = chance_cost._cheapest(
            one.success.model, one.weights, *several, every, usual.repeat(len(levels), 1)
        )
        feasible = torch.cat([each.feasible for each in alone])
        assert torch.equal(together.feasible, feasible)
        expected = torch.cat([each.points for each in alone])[feasible]
        torch.testing.assert_close(together.points[feasible], expected, rtol=0, atol=1e-12)


def test_differences_are_those_of_the_success_probability():
    one = costs(chain()).sets[0]
    first, second = one.lower + 0.2, one.upper - 0.3
    assert one.contrast(first, second) == one.success.contrast(first, second)
    assert one.contrast(first, second)[0].lower is not None


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
