"""Net values: worth times probability minus cost, in a chain whose truth is written down; and what decisions
say of them.
"""

from dataclasses import replace

import pytest
import torch

from rehearsal_torch.claims.claim_context import Context
from rehearsal_torch.claims.improvement_test import costs, nets_no_more, paid
from rehearsal_torch.data.costs import ActionCost, CaseCosts
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.objective import Candidates, chance
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain

WORLD = replace(chain(reach=3.0), task=replace(chain(reach=3.0).task, candidates=(("m",),)))
DOUBLE = torch.float64


def case(cost=2.0, worth=10.0, present=0.0, **parts):
    (one,) = WORLD.cases(1)
    costs = CaseCosts({"m": ActionCost(cost, cost, **parts)}, {"m": present}, worth)
    return replace(one, given={"x": torch.tensor(0.5, dtype=DOUBLE)}, present={"m": present}, costs=costs)


@pytest.fixture(scope="module")
def model():
    return fit(LinearStructural(WORLD.task), WORLD.table(2000))


def with_costs(cases, decisions):
    """The decisions with the costs of their cases."""
    return costs(Context(Candidates(cases, []), cases), decisions)


def setting(value, names=("m",)):
    return Decision(Alteration(names, torch.tensor([value], dtype=DOUBLE)), 0.0)


def test_a_net_value_is_that_of_the_truth(model):
    one = case()
    (objective,) = GaussianSuccess.for_sets(model, [one])
    actions = torch.tensor([[[0.0]], [[1.0]], [[1.5]]], dtype=DOUBLE)
    truth = [WORLD.success(one, {"m": value}) - 2.0 * value / 10.0 for value in (0.0, 1.0, 1.5)]
    assert objective.sought(actions).squeeze(-1).tolist() == pytest.approx(truth, abs=0.03)


def test_where_costs_do_not_count_it_is_the_objective(model):
    cases = [replace(case(), costs=None), case(worth=None), case()]
    (objective,) = GaussianSuccess.for_sets(model, cases)
    actions = torch.full((1, 3, 1), 1.5, dtype=DOUBLE)
    found, net = objective.sought(actions)[0], objective.probability(actions)[0] - 0.3
    assert torch.equal(found[:2], objective(actions)[0, :2])
    assert float(found[2]) == pytest.approx(float(net[2]))
    at = objective.frame()[1]
    value, slope = objective.sought_with_gradient_in_frame((actions - objective.frame()[0]) / at)
    free, slopes = objective.value_and_gradient(actions)
    assert torch.equal(value[0], torch.cat([free[0, :2], found[2:]]))
    assert torch.allclose(slope[0, :2], slopes[0, :2] * at)
    nearby = objective.sought(actions + 1e-6)[0, 2] - objective.sought(actions - 1e-6)[0, 2]
    assert float(slope[0, 2, 0] / at) == pytest.approx(float(nearby) / 2e-6, rel=1e-4)


@pytest.mark.parametrize(("kind", "cost"), [(None, 3.0), ("no_gain", 0.0), ("invalid", None)])
def test_every_decision_says_its_cost(kind, cost):
    made = setting(1.5) if kind is None else Decision(None, 0.0, reason=Finding(kind, ""))
    (found,) = with_costs([case()], [made])
    assert (found.cost, found.worth) == (cost, 10.0)
    assert with_costs([case()], [found]) == [found]
    assert with_costs([replace(case(), costs=None)], [made]) == [made]


def test_the_interval_of_the_net_value_follows_from_that_of_the_probability():
    made = replace(setting(1.5), estimate=chance(0.8, 0.7, 0.9), baseline=chance(0.3), cost=3.0, worth=10.0)
    assert (made.net_value.point, made.net_value.lower, made.net_value.upper) == (5.0, 4.0, 6.0)
    assert (made.net_gain.point, made.net_gain.lower, made.net_gain.upper) == (2.0, 1.0, 3.0)
    plain = made.to_dict()
    assert (plain["cost"], plain["worth"]) == (3.0, 10.0)
    assert plain["net_value"]["upper"] == 6.0
    nothing = replace(made, alteration=None, cost=0.0)
    assert nothing.net_value.point == 3.0
    assert nothing.net_gain is None
    assert replace(nothing, reason=Finding("invalid", "")).net_value is None


def test_a_cost_in_units_of_the_worth_is_zero_where_costs_do_not_count():
    made = setting(1.5)
    assert paid(case(), made) == 0.3
    assert paid(case(cost=1 / 3), setting(1.0)) == 0.333333333 / 10
    assert paid(replace(case(), costs=None), made) == 0.0
    assert paid(case(worth=None), made) == 0.0
    assert paid(case(), Decision(None, 0.0, reason=Finding("invalid", ""))) == 0.0


def test_why_a_change_is_not_worth_it_is_said():
    free = replace(setting(1.5), estimate=chance(0.5), baseline=chance(0.5), cost=0.0, worth=10.0)
    assert nets_no_more(free) == "no change nets more than {}"
    dear = replace(free, estimate=chance(0.8), cost=3.0)
    assert nets_no_more(dear) == (
        "nothing nets more than {}: the best change found costs 3, and a probability of 0.800 in "
        "place of 0.500 is worth 3"
    )
    worse = replace(free, estimate=chance(0.4))
    assert nets_no_more(worse).endswith("of 0.400 in place of 0.500 is worth -1")
