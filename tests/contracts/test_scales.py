"""One contract over every decision preset: in what unit, and how far from zero, variables are recorded
changes no decision.

All columns, boxes, regions, targets and cases are mapped v -> offset + scale v. At an offset of 1.6e9 a value
of the order of one is known to 2.4e-7 in double precision, a thousand times better than what is asked for
here: actions within 0.5 % of what may be set, probabilities within a thousandth.
"""

from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
import torch
from hydra.utils import instantiate

import rehearsal_torch as rt
from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import EpisodeCase, RehearsalCase
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.table import Table
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.sequences.baselines import GreedyChanges, RandomChanges, TopK
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.linear_truth import chain, managing
from tests.toys.published_astar import published
from tests.toys.rehearsal_methods import CAUSAL, CONF, DECISIONS, choices, configuration, decided, learnt
from tests.toys.transitions import CONTEXTUAL, DOSES, NAMES, STATIC, VARYING, patients

PLAIN = (0.0, 1.0)
MAPS = [(1e7, 1.0), (1.6e9, 1.0), (0.0, 1e-6), (0.0, 1e6)]
# Each variable in a unit of its own, from mol/l to dollars.
MIXED, UNITS = "mixed", (1e-6, 1e6, 1.0)
PART, CHANCE = 5e-3, 1e-3
named = pytest.mark.parametrize("moved", MAPS, ids=lambda pair: f"{pair[0]:g}+{pair[1]:g}v")

# Pushed forward in single precision, one of its 200 draws may lie on the edge of the region.
COUNTED = {"grad_rh": 1.5 / 200}
# Programs that are cut off find other candidates for other last digits: two actions of theirs are compared at
# an offset that keeps enough of them.
CUT_OFF = ("qwz23", "qwz23_online", "qwz23_published")
# Samples of graphs and of their parameters are others in other units; with two actions, a count of scenarios
# has several best ones.
SAMPLED = dict.fromkeys((*CUT_OFF, "qwz23_success"), 0.1) | {"qwz23_offline": 0.005}


def apart(world):
    """The world with each variable altered alone: one that lies on the way of another makes the other's value
    a matter of indifference."""
    task = world.task
    candidates = (("a",), ("m",)) if "a" in task.box.names else task.candidates
    return RehearsalTask(task.graph, task.context, task.box, task.region, candidates)


WORLDS = {"one outcome": chain(), "two outcomes": managing()}
PLACES = {name: place % 3 for world in WORLDS.values() for place, name in enumerate(world.names)}


def placing(moved, names):
    """Offset and scale of each variable."""
    if moved != MIXED:
        return tuple(torch.full((len(names),), one, dtype=torch.float64) for one in moved)
    scales = [UNITS[PLACES[name]] for name in names]
    return torch.zeros(len(names), dtype=torch.float64), torch.tensor(scales, dtype=torch.float64)


def placed(moved, names, values):
    """Values (..., k) of k variables in another unit."""
    offset, scale = placing(moved, names)
    return offset + scale * values


@cache
def rehearsed(decision, world, moved):
    """For each case the status, what is altered, as shares of the box, and how probable success is, with and
    without."""
    plain, truth = apart(WORLDS[world]), WORLDS[world]
    rows = truth.table(40)
    names = plain.box.names
    box = Box(names, placed(moved, names, plain.box.lower), placed(moved, names, plain.box.upper))
    offset, scale = placing(moved, plain.region.names)
    # M (v - offset) / scale <= d, times a common scale if there is one.
    common = scale[0] if moved != MIXED else 1.0
    normals = plain.region.normals * common / scale
    region = Polytope(plain.region.names, normals, common * plain.region.offsets + (normals * offset).sum(-1))
    task = RehearsalTask(plain.graph, plain.context, box, region, plain.candidates)
    cases = [
        RehearsalCase(
            each.identity,
            {name: placed(moved, (name,), value.reshape(1))[0] for name, value in given},
            box.bounds(),
        )
        for each in truth.cases(2)
        for given in [each.given.items()]
    ]
    surrogate, objective, search = choices(decision)
    made = learnt(surrogate, task, Table(rows.names, placed(moved, rows.names, rows.values), rows.altered))
    found = []
    for case, one in zip(cases, decided(made, (objective, search), cases), strict=True):
        case.check(one.alteration)
        names = () if one.alteration is None else one.alteration.names
        part = (
            None
            if one.alteration is None
            else (one.alteration.values - box.only(names).lower) / box.only(names).width
        )
        found.append(
            (
                one.status,
                names,
                part,
                *(None if each is None else each.point for each in (one.estimate, one.baseline)),
            )
        )
    return found


def compared(found, wanted, chances=CHANCE):
    for (status, names, part, after, before), (same, other, share, chance, idle) in zip(
        found, wanted, strict=True
    ):
        assert (status, names) == (same, other)
        assert part is None or torch.allclose(part, share, atol=PART)
        assert (after is None) == (chance is None)
        if after is not None:
            assert after == pytest.approx(chance, abs=chances)
        if before is not None:
            assert before == pytest.approx(idle, abs=chances)


@pytest.mark.slow
@named
@pytest.mark.parametrize("decision", DECISIONS)
def test_rehearsal_decisions_do_not_depend_on_units(decision, moved):
    compared(
        rehearsed(decision, "one outcome", moved),
        rehearsed(decision, "one outcome", PLAIN),
        COUNTED.get(decision, CHANCE),
    )


@pytest.mark.slow
@pytest.mark.parametrize("decision", DECISIONS)
def test_rehearsal_decisions_on_two_actions_do_not_depend_on_units(decision):
    moved = (1e5, 1.0) if decision in CUT_OFF else (1.6e9, 1.0)
    compared(
        rehearsed(decision, "two outcomes", moved),
        rehearsed(decision, "two outcomes", PLAIN),
        COUNTED.get(decision, CHANCE),
    )


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("decision", DECISIONS)
def test_rehearsal_decisions_do_not_depend_on_one_variable_being_in_another_unit(decision, world):
    found, wanted = (rehearsed(decision, world, moved) for moved in (MIXED, PLAIN))
    if decision not in SAMPLED:
        compared(found, wanted, COUNTED.get(decision, CHANCE))
        return
    for (status, names, _, *chances), (same, other, _, *known) in zip(found, wanted, strict=True):
        assert (status, names) == (same, other)
        assert chances == pytest.approx(known, abs=SAMPLED[decision])


POWERS = [2.0**-30, 2.0**40, 1e-12, 1e-6, 1e12]


@pytest.mark.parametrize("column", ["x", "a", "y"])
@pytest.mark.parametrize("method", ["care", "micns", "qwz23_offline"])
def test_linear_methods_do_not_know_units_from_1e_minus_12_to_1e12(method, column):
    stream, count = np.random.default_rng(1), 100
    rows = {"x": stream.normal(50, 10, count), "a": stream.uniform(0, 10, count)}
    rows["y"] = 100 + rows["x"] - 6 * rows["a"] + stream.normal(0, 10, count)

    def numbers(unit):
        units = dict.fromkeys(rows, 1.0) | {column: unit}
        task = RehearsalTask.of(
            {
                "graph": {"parents": {"a": ["x"], "y": ["x", "a"]}},
                "context": ["x"],
                "box": {"a": [units["a"], 7 * units["a"]]},
                "region": {"y": [None, 120 * units["y"]]},
            }
        )
        surrogate, objective, search = choices(method)
        table = Table.observed(
            tuple(rows), torch.tensor(np.array([rows[name] * units[name] for name in rows])).mT
        )
        case = RehearsalCase(
            "0", {"x": torch.tensor(50 * units["x"], dtype=torch.float64)}, task.box.bounds()
        )
        (one,) = decided(learnt(surrogate, task, table), (objective, search), [case])
        assert one.alteration is not None
        dose = float(one.alteration.values[0]) / units["a"]
        return [dose, one.estimate.point, one.estimate.lower, one.estimate.upper, one.baseline.point]

    plain = numbers(1.0)
    for unit in POWERS:
        assert numbers(unit) == (pytest.approx(plain, abs=1e-9) if unit in (1e-12, 1e-6, 1e12) else plain)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["care", "micns", "qwz23_offline", "outcome_regression"])
def test_a_chance_is_the_same_in_dollars_and_moles_as_in_millions_and_micromoles(method):
    stream, count = np.random.default_rng(5), 300
    budget, year = np.round(1e6 + 8e4 * stream.normal(size=count)), stream.integers(2000, 2024, count)
    conc = 2e-6 + 3e-7 * stream.normal(size=count)
    sales = 2e6 + 0.9 * (budget - 1e6) + 3e11 * (conc - 2e-6) + 5e3 * (year - 2010)
    sales = np.round(sales + 5e4 * stream.normal(size=count))
    claims = []
    for dollar, mole in ((1.0, 1.0), (1e-6, 1e6)):
        rows = {"year": year, "budget": budget * dollar, "conc": conc * mole, "sales": sales * dollar}
        task = {
            "graph": ["{year budget conc} -> sales", "year -> {budget conc}"],
            "context": ["year"],
            "region": {"sales": [2e6 * dollar, 2.15e6 * dollar]},
            "box": {"budget": [8e5 * dollar, 1.2e6 * dollar], "conc": [1e-6 * mole, 3e-6 * mole]},
            "candidates": [["budget", "conc"]],
        }
        model = rt.learn(pd.DataFrame(rows), task, method=method)
        claims.append(
            model.what_if({"year": 2010}, {"budget": 1.08e6 * dollar, "conc": 2e-6 * mole}).estimate
        )
    one, other = ([each.point, each.lower, each.upper] for each in claims)
    assert other == pytest.approx(one, abs=0.01)
    # By least squares.
    assert one[0] == pytest.approx(0.87, abs=0.02)


TRIALS = sorted(path.stem for path in (CONF / "decision").glob("*.yaml") if choices(path.stem)[0] in CAUSAL)
SMALL = {
    "acquisition": {"screened": 64, "starts": 8, "incumbents": 2},
    "optimistic_networks": {"restarts": 8, "kept": 4, "screening_steps": 10, "steps": 30, "incumbents": 2},
}


@cache
def tried(decision, rewarded, moved):
    """What is tried and what is recommended, in the plain unit, and what the recommendation is expected to
    bring."""
    offset, scale = moved

    def mapped(value):
        return offset + scale * value

    stream = torch.Generator().manual_seed(0)
    a, b = 2 * torch.rand(2, 20, generator=stream, dtype=torch.float64) - 1
    noise = 0.1 * torch.randn(2, 20, generator=stream, dtype=torch.float64)
    x = -1.2 * (a - 0.35).square() + noise[0]
    y = 1.5 * x - (b - 0.3).square() + noise[1]
    reward = "y" if rewarded == "a node" else {"targets": {"x": mapped(-0.1), "y": mapped(-0.2)}}
    bounds = [mapped(-1.0), mapped(1.0)]
    task = CausalTask.of(
        {
            "graph": {"parents": {"x": ["a"], "y": ["x", "b"]}},
            "actions": {"a": bounds, "b": bounds},
            "reward": reward,
        }
    )
    surrogate, objective, search = choices(decision)
    made = instantiate({**configuration("surrogate", surrogate), "task": task.to_plain()}, _convert_="all")
    fit(made, Table.observed(("a", "b", "x", "y"), mapped(torch.stack([a, b, x, y], -1))))
    objective = instantiate(configuration("objective", objective), _convert_="all")(
        made, RehearsalCase("0", {}, task.box.bounds())
    )
    found = instantiate({**configuration("search", search), **SMALL.get(search, {})}, _convert_="all")(
        objective
    )
    task.check_action(found.alteration.values)
    recommended, predicted = found.recommendation.values, found.estimate.point
    worth = (predicted - offset) / scale if rewarded == "a node" else predicted / scale**2
    return (found.alteration.values - offset) / scale, (recommended - offset) / scale, worth


@pytest.mark.bench
@named
@pytest.mark.parametrize("decision", TRIALS)
def test_trials_do_not_depend_on_units(decision, moved):
    action, recommended, worth = tried(decision, "a node", moved)
    wanted = tried(decision, "a node", PLAIN)
    assert torch.allclose(action, wanted[0], atol=2 * PART)
    assert torch.allclose(recommended, wanted[1], atol=2 * PART)
    assert worth == pytest.approx(wanted[2], abs=CHANCE)


@pytest.mark.slow
@pytest.mark.parametrize("moved", [(1.6e9, 1.0), (0.0, 1e-6)], ids=lambda pair: f"{pair[0]:g}+{pair[1]:g}v")
@pytest.mark.parametrize("decision", ["eifn", "excbo", "mcbo", "ucb"])
def test_trials_for_a_target_do_not_depend_on_units(decision, moved):
    action, recommended, worth = tried(decision, "a target", moved)
    wanted = tried(decision, "a target", PLAIN)
    assert torch.allclose(action, wanted[0], atol=2 * PART)
    assert torch.allclose(recommended, wanted[1], atol=2 * PART)
    assert worth == pytest.approx(wanted[2], abs=CHANCE)


SEQUENCES = {
    "astar": AStar,
    "astar, published": published,
    "branch_and_bound": BranchAndBound,
    "exhaustive": Exhaustive,
    "greedy_changes": GreedyChanges,
    "random_changes": RandomChanges,
    "top_k": TopK,
}


@cache
def transition_model(moved):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = TransitionModel(
            VARYING,
            STATIC,
            CONTEXTUAL,
            DOSES,
            partial(LocationScale, hidden=8, location_constant=1.0, scale_constant=0.1),
            3,
        )
    return fit(
        made,
        transitions([changed(each, moved) for each in patients(20, 6, 0)]),
        Descent(max_epochs=2, progress=False),
    )


def changed(episode, moved):
    """The episode with its states far from zero; doses keep their zero."""
    offset, scale = moved
    shift = torch.tensor([0.0 if name in DOSES else offset for name in NAMES], dtype=torch.float64)
    return Episode(episode.identity, episode.names, shift + scale * episode.values)


@cache
def replayed(search, index, moved):
    """The chosen actions, the improvement in the plain unit, and whether it is proven."""
    episode = changed(patients(3, 6, 5)[index], moved)
    objective = CounterfactualReturn(
        transition_model(moved), EpisodeCase(episode), LinearReward({"x": -1.0, "y": 0.5}), 2
    )
    found = SEQUENCES[search]()(objective)
    return found.actions(), (found.value - objective.outcome()) / moved[1], found.trace["proven"]


@pytest.mark.slow
@named
@pytest.mark.parametrize("search", SEQUENCES)
def test_sequences_do_not_depend_on_units(search, moved):
    for index in range(3):
        actions, improvement, proven = replayed(search, index, moved)
        wanted = replayed(search, index, PLAIN)
        assert actions == wanted[0]
        assert improvement == pytest.approx(wanted[1], abs=1e-4)
        assert proven == wanted[2]
