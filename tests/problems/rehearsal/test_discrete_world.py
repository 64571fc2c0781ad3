"""Worlds of levels: the truth is a sum, rows have it as their share, and the oracle tries every
combination."""

from itertools import product

import pytest
import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.problems.rehearsal.classes import Classes
from rehearsal_torch.problems.rehearsal.discrete_world import Among, Gaussian, yes
from rehearsal_torch.problems.rehearsal.visits import Visits
from rehearsal_torch.problems.rehearsal.yes_no import YesNo
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Alteration

SMALL = SampleSize(rows=400, contexts=4)
every = pytest.mark.parametrize("make", [YesNo, Visits, Classes])


def contexts(world):
    return world.given([world.case(index) for index in range(world.count())])


def test_levels_are_drawn_with_their_chances():
    law = Among(torch.tensor([1.0, 2.0, 5.0]).double(), torch.tensor([0.2, 0.5, 0.3]).double())
    unit = (torch.arange(1000).double() + 0.5) / 1000
    drawn = law.drawn(torch.special.ndtri(unit))
    assert [int((drawn == level).sum()) for level in (1, 2, 5)] == [200, 500, 300]
    assert yes(torch.tensor([0.0, 1.0]).double()).drawn(torch.zeros(2).double()).tolist() == [0.0, 1.0]


def test_nodes_have_the_moments_of_a_normal_variable():
    values, weights = Gaussian(torch.tensor([2.0]).double(), 0.5).nodes(48)
    assert float(weights.sum()) == pytest.approx(1, abs=1e-12)
    assert float((weights * values).sum()) == pytest.approx(2, abs=1e-10)
    assert float((weights * (values - 2) ** 2).sum()) == pytest.approx(0.25, abs=1e-9)


@every
def test_the_stated_error_holds_against_a_finer_rule(make):
    world = make(size=SMALL)
    given, names = contexts(world)[:1], world.task.candidates[0]
    for altered, values in (((), given.new_empty(1, 0)), (names, world.optimal(given, names)[0])):
        finer = world._summed(given, altered, values, 200)
        assert float((world.probability(given, altered, values) - finer).abs().max()) < 1e-8


@every
def test_simulation_has_the_probability_as_its_share(make):
    world, count = make(size=SMALL), 40_000
    given, names = contexts(world)[:2], world.task.candidates[0]
    best, _ = world.optimal(given, names)
    for place in range(2):
        for altered, values in (((), given.new_empty(0)), (names, best[place])):
            rows = world.rehearse(given[place], altered, values, count)
            share = float(world.desired(rows.columns(world.task.outcomes)).double().mean())
            truth = float(world.probability(given[place : place + 1], altered, values.unsqueeze(0)))
            assert abs(share - truth) < 5 * (truth * (1 - truth) / count) ** 0.5


@every
def test_no_combination_of_levels_is_better_than_the_oracle(make):
    world = make(size=SMALL)
    given, names = contexts(world), world.task.candidates[0]
    _, best = world.optimal(given, names)
    grids = [
        world.task.box.levels.get(name, torch.linspace(*world.task.box.bounds()[name], 41).tolist())
        for name in names
    ]
    tried = torch.tensor(list(product(*grids))).double().unsqueeze(1).expand(-1, len(given), -1)
    reached = world.probability(given, names, tried).amax(0)
    assert (reached <= best + 0.003).all()
    assert float((best - reached).abs().max()) < 0.01


@every
def test_what_is_no_level_is_not_scored(make):
    world = make(size=SMALL)
    case, name = world.case(0), next(iter(world.task.box.levels))
    assert case.levels == world.task.box.levels
    wrong = Decision(Alteration((name,), torch.tensor([1.37]).double()), 0.5)
    with pytest.raises(ValueError, match="take one of these"):
        world.score(case, wrong)
    with pytest.raises(ValueError, match="take one of these"):
        world.respond(case, wrong)
