"""Costs under a chance constraint, and the cheapest alteration."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import chi2

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.chance_cost import ChanceCosts, best_level
from rehearsal_torch.objectives.gaussian_success import success_objectives
from rehearsal_torch.search.alterations.chance_projection import CheapestAlteration
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import chain, managing

SINGLE_OR_BOTH = (("raw_cost",), ("self_pricing",), ("raw_cost", "self_pricing"))


def costs(world, count=12, rows=300, **more):
    return ChanceCosts(fit(LinearStructural(world.task), world.table(rows)), world.cases(count), **more)


def searched(made, fallback=True):
    return CheapestAlteration(ProjectionNewton() if fallback else None).batch_search(made)


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
    task, response = managing().task, one.success.response
    radius = chi2.ppf(0.7, 2) ** 0.5
    margins = radius * (task.region.normals @ one.success.root).norm(dim=-1)
    base = response.base(one.success.contexts)
    for index in range(4):
        room = (task.region.offsets - base[index] @ task.region.normals.mT - margins).numpy()
        normals = (task.region.normals @ response.action).numpy()
        constraint = {
            "type": "ineq",
            "fun": lambda z, n=normals, r=room: r - n @ z,
            "jac": lambda z, n=normals: -n,
        }
        reference, weights = one.reference.numpy(), one.weights.numpy()
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


def test_sets_compete_by_their_whole_cost():
    # A reference of 0.75 for raw_cost must not make that set look cheaper by its constant.
    made = costs(
        managing(candidates=SINGLE_OR_BOTH),
        level=0.5,
        weights={"raw_cost": 2.0, "self_pricing": 1.0},
        reference={"raw_cost": 0.75, "self_pricing": 0.0},
    )
    decisions = searched(made)
    for index, decision in enumerate(decisions):
        options = [
            float(one.cost(one.cheapest().points)[index])
            for one in made.sets
            if bool(one.cheapest().feasible[index])
        ]
        assert decision.trace["cost"] == pytest.approx(min(options), abs=1e-6)
        assert decision.value == pytest.approx(-min(options), abs=1e-6)


def test_where_nothing_qualifies_the_most_probable_is_taken_and_said():
    made = costs(chain(lower=1.0, upper=1.2), level=0.9)
    for index, decision in enumerate(searched(made)):
        assert decision.trace["qualifies"] is False
        assert "cannot be met" in decision.warnings[0]
        best = max(
            float(one.success.compared_value(ProjectionNewton().best(one.success))[index])
            for one in made.sets
        )
        assert np.log(decision.estimate.point) == pytest.approx(best)
    assert all(
        each.alteration is None and "no candidate" in each.reason
        for each in searched(made, fallback=False)
        if "helps" not in each.reason
    )


def test_answers_do_not_depend_on_their_company():
    world = chain()
    surrogate, some_cases = fit(LinearStructural(world.task), world.table(300)), world.cases(20)
    whole = searched(ChanceCosts(surrogate, some_cases))
    (alone,) = searched(ChanceCosts(surrogate, some_cases[3:4]))
    assert whole[3].trace["altered"] == alone.trace["altered"]
    assert torch.allclose(whole[3].alteration.values, alone.alteration.values, atol=1e-6)


@pytest.mark.slow
def test_an_open_level_is_the_best_of_the_grid_for_the_contexts_seen():
    world = chain(noise=0.4)
    made = costs(world)
    surrogate = fit(LinearStructural(world.task, draws=0), world.table(300))
    contexts = surrogate.contexts.values
    seen = [RehearsalCase(str(i), {"x": row[0]}, world.task.box.bounds()) for i, row in enumerate(contexts)]

    def mean(level):
        decisions = CheapestAlteration(None).batch_search(ChanceCosts(surrogate, seen, level=level))
        return np.mean(
            [
                each.trace["plug_in"] if each.trace["qualifies"] else _before(surrogate, seen)[i]
                for i, each in enumerate(decisions)
            ]
        )

    levels = (0.3, 0.5, 0.7, 0.9)
    assert best_level(surrogate, made.sets, levels) == max(levels, key=mean)
    assert len({one.level for one in made.sets}) == 1


def _before(surrogate, some_cases):
    return success_objectives(surrogate, some_cases)[0].nothing.tolist()


def test_wrong_costs_are_refused():
    for wrong in (
        {"level": 1.2},
        {"weights": {"y": 1.0}},
        {"weights": {"a": 0.0}},
        {"reference": {"x": 0.0}},
    ):
        with pytest.raises(ValueError, match="expected"):
            costs(chain(), **wrong)
