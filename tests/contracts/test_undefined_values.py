"""One contract over every search: a value that is NaN or infinite never wins, and where no value is left
nothing is decided."""

import math
from functools import cache

import pytest
import torch
from hydra.utils import instantiate

from rehearsal_torch.data.decision import EpisodeCase, RehearsalCase
from rehearsal_torch.data.non_finite import NoFiniteValueError, best_of_all, ranked
from rehearsal_torch.objectives.chance_cost import ChanceCost
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.monte_carlo import FUNCTIONS, MonteCarlo
from rehearsal_torch.objectives.objective import (
    AlterationObjective,
    Appraisal,
    Candidates,
    chance,
    objective_for,
)
from rehearsal_torch.objectives.scenario_success import CountObjective, Scenarios
from rehearsal_torch.objectives.step_reward import Reward
from rehearsal_torch.objectives.success_probability import SuccessProbability
from rehearsal_torch.objectives.upper_bounds import ConfidenceBound, Optimism
from rehearsal_torch.search.alterations.mixed_integer import MixedInteger
from rehearsal_torch.search.alterations.projected_ascent import ProjectedAscent
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.sequences.baselines import GreedyChanges, RandomChanges, TopK
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch, SpaceFilling
from rehearsal_torch.search.trials.optimistic_networks import OptimisticNetworks
from tests.toys.causal_toys import WrittenLaw, WrittenModel, one_case, plain
from tests.toys.episodes import KnownTruth
from tests.toys.linear_truth import chain
from tests.toys.published_astar import published
from tests.toys.rehearsal_methods import PAIRS, configuration, learnt

NAN = float("nan")
WORLD = chain()


def test_undefined_values_rank_below_every_number():
    values = torch.tensor([NAN, -3.0, float("inf"), 2.0, -float("inf")])
    assert ranked(values).tolist() == [-math.inf, -3.0, -math.inf, 2.0, -math.inf]
    assert best_of_all(values) == 3
    for hopeless in (torch.full((3,), NAN), torch.empty(0)):
        with pytest.raises(NoFiniteValueError, match="expected a finite value"):
            best_of_all(hopeless)


def lost(method):
    """The method with NaN for every number that it gives."""
    return lambda *given, **named: NAN * method(*given, **named)


# What of an objective a search compares: broken, every value of the set is NaN.
COMPARED = {
    "kernel_value": ("comparison_value",),
    "gaussian_success": ("compared_value",),
    "chance_cost": ("cost",),
    "chance_cost_fixed": ("cost",),
    "centre_distance": ("_outcomes",),
    "supported_gain": ("_ranked",),
    "scenario_count": ("share",),
    "success_probability": ("share",),
}
SEARCHES = [pair for pair in PAIRS if pair[1] != "no_action"]


@cache
def fitted(surrogate):
    return learnt(surrogate, WORLD.task, WORLD.table(40))


def broken(pair, monkeypatch, which):
    """The objective of a pair with some of its sets undefined, and the search."""
    made, search = (
        instantiate(configuration(group, option), _convert_="all")
        for group, option in zip(("objective", "search"), pair, strict=True)
    )
    objective = objective_for(made, fitted(PAIRS[pair]), WORLD.cases(2))
    for one in list(objective.sets)[which]:
        for name in COMPARED[pair[0]]:
            monkeypatch.setattr(one, name, lost(getattr(one, name)))
        if isinstance(one, SuccessProbability):
            monkeypatch.setattr(one.information, "at", lost(one.information.at))
        if isinstance(one, GaussianSuccess):
            region = one.region_probability
            monkeypatch.setattr(region, "log_probability", lost(region.log_probability))
        if isinstance(one, ChanceCost):
            monkeypatch.setattr(one.success, "compared_value", lost(one.success.compared_value))
    return objective, search


@pytest.mark.slow
@pytest.mark.parametrize("pair", SEARCHES, ids="-".join)
def test_a_set_without_a_defined_value_is_not_chosen(pair, monkeypatch):
    objective, search = broken(pair, monkeypatch, slice(0, 1))
    for each in search.batch_search(objective):
        assert each.value < math.inf
        assert each.alteration is None or (
            each.alteration.names != ("a",) and bool(each.alteration.values.isfinite().all())
        )


@pytest.mark.slow
@pytest.mark.parametrize("pair", SEARCHES, ids="-".join)
def test_where_every_value_is_undefined_nothing_is_altered(pair, monkeypatch):
    objective, search = broken(pair, monkeypatch, slice(None))
    for each in search.batch_search(objective):
        assert each.alteration is None
        assert each.reason


class Ridge(AlterationObjective):
    """Largest next to a cliff at zero, beyond which nothing is defined."""

    def __call__(self, actions):
        a = actions[..., 0]
        return torch.where(a < 0, a, torch.full_like(a, NAN))

    def starts(self, count):
        return torch.linspace(-0.9, 0.9, count, dtype=torch.float64)[:, None, None].expand(
            -1, len(self.cases), 1
        )

    def appraise(self, actions):
        return [Appraisal(chance(0.5), chance(0.1)) for _ in actions]


@pytest.mark.parametrize("rate", [None, 0.05])
def test_an_ascent_stops_at_a_cliff(rate):
    cases = [RehearsalCase("0", {}, {"a": (-1.0, 1.0)})]
    (found,) = ProjectedAscent(starts=5, rate=rate).batch_search(Candidates(cases, [Ridge(cases, ("a",))]))
    assert -1 <= found.value < 0
    assert float(found.alteration.values) == pytest.approx(found.value, abs=1e-6)
    if rate is None:
        assert found.value > -0.01


def scenarios(*rooms):
    return Scenarios(
        torch.ones(len(rooms), 1, 1, dtype=torch.float64),
        torch.tensor(rooms, dtype=torch.float64).reshape(-1, 1, 1),
    )


class Counted(CountObjective):
    """One face, a <= room."""

    def appraise(self, actions):
        return [Appraisal(chance(0.5), chance(0.1)) for _ in actions]


def test_an_undefined_scenario_is_never_desired_and_without_a_defined_one_nothing_is_altered():
    cases = [RehearsalCase("0", {}, {"a": (-1.0, 1.0)})]
    some, none = scenarios(NAN, 0.5, 0.25, math.inf), scenarios(NAN, NAN)
    (found,) = MixedInteger().batch_search(Candidates(cases, [Counted(cases, ("a",), some, some)]))
    assert found.value == 0.5
    assert float(found.alteration.values) <= 0.25
    (found,) = MixedInteger().batch_search(Candidates(cases, [Counted(cases, ("a",), none, none)]))
    assert found.alteration is None
    assert found.reason


def world(edge):
    """A node that is largest at 0.7, and undefined beyond an edge."""

    def mean(w):
        return torch.where(w[..., 0] < edge, -(w[..., 0] - 0.7).square(), torch.full_like(w[..., 0], NAN))

    task = plain({"Y": ["a"]}, {"a": [0, 1]}, "Y")
    return WrittenModel(task, {"Y": WrittenLaw(mean, lambda w: 0.1 + 0 * w[..., 0])}, [[0.1], [0.3], [0.6]])


TRIALS = {
    "acquisition": (
        AcquisitionSearch(screened=32, starts=8, incumbents=2),
        lambda model: ConfidenceBound(model, one_case(model.task)),
    ),
    **{
        function: (
            AcquisitionSearch(screened=32, starts=8, incumbents=2),
            lambda model, function=function: MonteCarlo(model, one_case(model.task), function),
        )
        for function in FUNCTIONS
    },
    "uniform_actions": (SpaceFilling("uniform"), lambda model: PosteriorMean(model, one_case(model.task))),
    "sobol_actions": (SpaceFilling("sobol"), lambda model: PosteriorMean(model, one_case(model.task))),
    "optimistic_networks": (
        OptimisticNetworks(
            restarts=8, kept=3, screening_steps=5, steps=20, evaluation_draws=64, incumbents=2
        ),
        lambda model: Optimism(model, one_case(model.task)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIALS)
def test_trials_never_recommend_an_undefined_action(name):
    search, objective = TRIALS[name]
    model = world(0.5)
    decision = search(objective(model))
    assert float(decision.recommendation.values) < 0.5
    assert math.isfinite(decision.estimate.point)
    if not isinstance(search, SpaceFilling):
        assert float(decision.alteration.values) < 0.5
        assert math.isfinite(decision.value)
    with pytest.raises(NoFiniteValueError, match=r"expected a finite (value|reward)"):
        search(objective(world(-1.0)))


class Cliff(Reward):
    """The first state, and undefined where that exceeds an edge; what is done last counts for nothing."""

    def __init__(self, edge):
        self.edge = edge

    @property
    def acts(self):
        return False

    def __call__(self, states, names, doses=None):
        return torch.where(
            states[..., :1] <= self.edge, states[..., :1], torch.full_like(states[..., :1], NAN)
        )

    def lipschitz(self, names, slope):
        return 1.0


SEQUENCES = [AStar, published, BranchAndBound, Exhaustive, GreedyChanges, RandomChanges, TopK]


@pytest.mark.parametrize(
    "search",
    SEQUENCES,
    ids=["astar", "published", "branch_and_bound", "exhaustive", "greedy", "random", "top_k"],
)
def test_sequences_never_lead_where_nothing_is_defined(search):
    # Action i adds i: two changes reach 4, which is undefined, 3 at once and then 1 more is best.
    model = KnownTruth(1, 4, lambda x, a: x + a.unsqueeze(-1).to(x), 1.0)
    episode = model.episode("0", torch.zeros(5, 1, dtype=torch.float64), torch.zeros(5, dtype=torch.long))
    found = search()(CounterfactualReturn(model, EpisodeCase(episode), Cliff(3.5), 2))
    assert math.isfinite(found.value)
    assert found.value >= 0 or search is RandomChanges
    if search in (AStar, published, Exhaustive, GreedyChanges, BranchAndBound):
        assert found.value == 12
    nowhere = search()(CounterfactualReturn(model, EpisodeCase(episode), Cliff(0.5), 2))
    assert nowhere.alteration is None
    assert nowhere.value == 0
    with pytest.raises(NoFiniteValueError, match="expected a finite return of the observed episode"):
        search()(CounterfactualReturn(model, EpisodeCase(episode), Cliff(-0.5), 2))
