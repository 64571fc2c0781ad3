"""Qin et al. (2023): rounds that learn from each other."""

from functools import partial

import pytest

from rehearsal_torch.certificate import PacBound
from rehearsal_torch.decision_loop import rounds
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.problems.cases.bermuda import Bermuda
from rehearsal_torch.problems.cases.linear_examples import RideHailing
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.search.alterations.information_gain import Informative
from rehearsal_torch.surrogates.structural.graph_posterior import StructuralPosterior
from rehearsal_torch.training.surrogate_fit import fit

COUNT = 24


def run(world, search, seed=0):
    model = fit(StructuralPosterior(world.task, world.hypotheses), world.observations())
    objective = partial(
        SuccessProbability,
        search_scenarios=800,
        validation_scenarios=800,
        test_scenarios=400,
        information_models=80,
        seed=seed,
    )
    return list(
        rounds(world, model, objective, search, learn=True, certify=PacBound(n=400, seed=seed), seed=seed)
    )


@pytest.fixture(scope="module")
def reef():
    return run(
        Bermuda(size=SampleSize(rows=10, contexts=COUNT), preset="qwz23", seed=2),
        Informative(0.7, "most_probable", indifference=0.1, iterations=1),
    )


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def test_there_is_less_and_less_to_learn(reef):
    assert mean(each.decision.value for each in reef[-6:]) < 0.4 * mean(
        each.decision.value for each in reef[:6]
    )


def test_what_qualifies_keeps_the_constraint_and_success_follows(reef):
    qualified = [each for each in reef if each.decision.trace["qualifying"]]
    assert len(qualified) > COUNT // 2
    # The probability is told by scenarios of its own: 400 of them stray by some hundredths.
    assert min(each.decision.estimate.point for each in qualified) > 0.7 - 0.09
    assert mean(each.score["probability"] for each in reef[-10:]) > 0.7


def test_every_round_is_certified_and_the_bound_holds_the_posterior_probability(reef):
    for each in reef:
        assert each.certificate["lower"] <= each.certificate["share"] <= each.certificate["upper"]
        assert (
            each.certificate["lower"] - 0.06
            <= each.decision.estimate.point
            <= each.certificate["upper"] + 0.06
        )


def test_a_search_that_refuses_learns_nothing_of_altering_and_stays_idle():
    # The trap of refusing: without an altered row the clique's own parameters stay unknown.
    idle = run(RideHailing(size=SampleSize(rows=10, contexts=5), seed=0), Informative(0.9, "refuse"))
    assert all(
        each.decision.alteration is None and "nothing found reaches" in each.decision.reason.text
        for each in idle
    )
    assert all(each.score["probability"] == each.score["no_action"] for each in idle)
