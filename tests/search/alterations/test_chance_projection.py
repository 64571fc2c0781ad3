"""The cheapest qualifying alteration against a grid over every candidate set."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.objectives.chance_cost import ChanceCost
from rehearsal_torch.search.alterations.chance_projection import CheapestAlteration
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain, managing

SINGLE_OR_BOTH = (("raw_cost",), ("self_pricing",), ("raw_cost", "self_pricing"))
CHAIN = chain()


@pytest.fixture(scope="module")
def learnt():
    return fit(LinearStructural(CHAIN.task, draws=20), CHAIN.table(300))


def costs(world, count=12, rows=300, **more):
    return ChanceCost.for_cases(
        fit(LinearStructural(world.task), world.table(rows)), world.cases(count), **more
    )


def searched(made, fallback=True, **more):
    return CheapestAlteration(ProjectionNewton() if fallback else None, **more).batch_search(made)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    level=st.floats(0.2, 0.95),
    weights=st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)),
    reference=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    case=st.integers(0, 30),
)
def test_no_point_of_a_grid_qualifies_at_a_lower_cost(learnt, level, weights, reference, case):
    made = ChanceCost.for_cases(
        learnt,
        CHAIN.cases(31)[case : case + 1],
        level=level,
        weights=dict(zip("am", weights, strict=True)),
        reference=dict(zip("am", reference, strict=True)),
    )
    search = CheapestAlteration()
    search.declines = False
    (decision,) = search.batch_search(made)
    side = torch.linspace(-1, 1, 81, dtype=torch.float64)
    grids = [
        torch.cartesian_prod(*[side] * len(one.names)).reshape(-1, 1, len(one.names)) for one in made.sets
    ]
    best = max(float(one(grid).max()) for one, grid in zip(made.sets, grids, strict=True))
    if decision.alteration is None:
        assert best == -math.inf
        assert decision.reason.text == "no candidate alteration qualifies"
        return
    assert decision.value >= best - 1e-9
    one = made.sets[list(CHAIN.task.candidates).index(decision.alteration.names)]
    at = decision.alteration.values.unsqueeze(0)
    assert float(one(at)) == pytest.approx(decision.value)
    assert decision.trace["cost"] == pytest.approx(-decision.value)


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
        assert math.log(decision.estimate.point) == decision.value == pytest.approx(best)
    assert all(
        each.alteration is None and "no candidate" in each.reason.text
        for each in searched(made, fallback=False)
        if "helps" not in each.reason.text
    )


def test_only_the_situations_that_are_stuck_get_the_most_probable():
    world = chain(reach=0.7)
    made = costs(world, count=20, level=0.6)
    plain, helped = searched(made, fallback=False), searched(made)
    stuck = [each.value == -math.inf for each in plain]
    assert 0 < sum(stuck) < len(stuck)
    for one, other, without in zip(plain, helped, stuck, strict=True):
        assert other.trace["qualifies"] is not without
        if not without:
            assert other.to_dict() == one.to_dict()


def test_without_time_the_first_set_answers_and_the_trace_says_so(learnt):
    made = ChanceCost.for_cases(learnt, CHAIN.cases(4), level=0.5)
    for decision in searched(made, budget_s=1e-9):
        assert decision.trace["altered"] == ["a"]
        assert decision.trace["stopped"] == "stopped after budget_s=1e-09; no gap is known"
