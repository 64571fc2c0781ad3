"""Worlds as tables: distributions, probabilities that are sums and integrals, oracles that nothing beats."""

import math
from itertools import product

import pytest
import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.problems.cases import equation_world
from rehearsal_torch.problems.cases.equation_world import (
    Equation,
    EquationWorld,
    Exponential,
    Normal,
    SymmetricBeta,
    Uniform,
    WorldTable,
)
from rehearsal_torch.problems.cases.nonlinear_examples import Classes, NonSyn1, NonSyn2, Visits, YesNo
from rehearsal_torch.problems.trials.global_maximum import grid
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.spaces.box import Alteration

LAWS = {
    "normal": (Normal(0.5), 0.0, 0.25),
    "uniform": (Uniform(-1.0, 3.0), 1.0, 16 / 12),
    "exponential": (Exponential(), 1.0, 1.0),
    "beta": (SymmetricBeta(), 0.5, 0.05),
}


@pytest.mark.parametrize("name", LAWS)
def test_nodes_and_numbers_have_the_moments_of_the_law(name):
    distribution, mean, variance = LAWS[name]
    points, weights = distribution.nodes(64)
    assert float(weights.sum()) == pytest.approx(1.0, abs=1e-12)
    assert float(points @ weights) == pytest.approx(mean, abs=1e-8)
    assert float((points - mean).square() @ weights) == pytest.approx(variance, abs=1e-7)
    # Numbers through quantiles, integrated against the normal law.
    normal, shares = Normal(1.0).nodes(4001)
    drawn = distribution.of_normal(normal)
    assert float(drawn @ shares) == pytest.approx(mean, abs=1e-6)
    assert float((drawn - mean).square() @ shares) == pytest.approx(variance, abs=1e-6)
    assert (drawn.diff() >= 0).all()


def column(*values):
    return torch.tensor([values], dtype=torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize(
    "world",
    [*(kind(size=SampleSize(contexts=6)) for kind in (NonSyn1, NonSyn2))],
    ids=["non_syn1", "non_syn2"],
)
def test_no_point_of_a_dense_grid_beats_the_oracle(world):
    given = world.given([world.case(index) for index in range(6)])
    points = world.task.box.lower + grid(2, 51) * world.task.box.width
    dense = world.probability(given, world.task.box.names, points.unsqueeze(1).expand(-1, 6, -1)).amax(0)
    assert (dense <= world.optimal(given, world.task.box.names)[1] + 5e-4).all()


def world(region=(0, 1), outcome=None, confounding=1.0, **more):
    equations = {
        "x": Equation(noise=Normal(1.0)),
        "z": Equation(noise=Exponential()),
        "y": outcome or Equation(lambda x, z: 0.0 * (x + z), Normal(1.0)),
        "v": Equation(lambda z: 0.0 * z, Normal(1.0)),
    } | more

    class Plain(EquationWorld):
        table = WorldTable(
            equations, ("x",), {"z": (0, 1)}, {"y": region, "v": region}, "a test", (), ("z", {"y": 1.0})
        )

    return Plain(confounding=confounding)


def test_the_outcomes_are_independent_given_everything_before_them():
    assert float(world().probability(column(0.0), ["z"], column(0.0))) == pytest.approx(0.3413**2, abs=1e-4)


def test_worlds_that_cannot_be_integrated_are_refused():
    with pytest.raises(ValueError, match="expected outcomes with normal noise"):
        world(outcome=Equation(lambda x, z: x + z, Exponential()))
    with pytest.raises(ValueError, match="that influence nothing"):
        world(w=Equation(lambda y: y, Normal(1.0)))
    with pytest.raises(ValueError, match="expected normal noise of z"):
        world(confounding=2.0)
    with pytest.raises(ValueError, match="NonSyn1 has no hidden common cause"):
        NonSyn1(confounding=2.0)


SMALL = SampleSize(rows=400, contexts=4)
every = pytest.mark.parametrize("make", [YesNo, Visits, Classes])


def contexts(world):
    return world.given([world.case(index) for index in range(world.count())])


def test_levels_are_drawn_with_their_chances():
    class Drawn(EquationWorld):
        table = WorldTable(
            {
                "a": Equation(noise=Normal(1.0)),
                "y": Equation(
                    lambda a: torch.tensor([0.2, 0.5, 0.3]).double().expand(*a.shape, 3),
                    levels=(1.0, 2.0, 5.0),
                ),
            },
            (),
            {"a": (0, 1)},
            {"y": (1.5, None)},
            "a test",
        )

    unit = (torch.arange(1000).double() + 0.5) / 1000
    drawn = Drawn().solved(torch.special.ndtri(unit).unsqueeze(-1).expand(-1, 2), {}, None)[:, 1]
    assert [int((drawn == level).sum()) for level in (1, 2, 5)] == [200, 500, 300]


@every
def test_the_stated_error_holds_against_a_finer_rule(make, monkeypatch):
    world, finer = make(size=SMALL), make(size=SMALL)
    given, names = contexts(world)[:1], world.task.candidates[0]
    for altered, values in (((), given.new_empty(1, 0)), (names, world.optimal(given, names)[0])):
        found = world.probability(given, altered, values)
        monkeypatch.setattr(equation_world, "FINE", {0: 1, 1: 400, 2: 200})
        assert float((found - finer.probability(given, altered, values)).abs().max()) < 1e-8
        monkeypatch.undo()


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


def test_quantiles():
    assert Exponential().of_normal(torch.zeros(1, dtype=torch.float64)).item() == pytest.approx(math.log(2))
    quantile = SymmetricBeta().of_normal(torch.tensor([-1.0], dtype=torch.float64))
    assert (3 * quantile**2 - 2 * quantile**3).item() == pytest.approx(
        float(torch.special.ndtr(torch.tensor(-1.0, dtype=torch.float64)))
    )
