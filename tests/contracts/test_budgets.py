"""One contract over every search: how long it takes, and what it says of a search that was ended."""

import inspect
from functools import cache
from importlib import import_module

import pytest
from hydra.utils import instantiate

from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.objectives.monte_carlo import MonteCarlo
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.objectives.upper_bounds import ConfidenceBound, Optimism
from rehearsal_torch.search.search import BatchSearch, Search
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.sequences.baselines import GreedyChanges, RandomChanges, TopK
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch, SpaceFilling
from rehearsal_torch.search.trials.optimistic_networks import OptimisticNetworks
from tests.places import concrete
from tests.toys.causal_toys import hills, one_case
from tests.toys.episodes import transition_episode
from tests.toys.linear_truth import managing
from tests.toys.published_astar import published
from tests.toys.rehearsal_methods import PAIRS, configuration, learnt

LIMITS = {"normals": [[1.0, 0.1], [0.0, 1.0]], "offsets": [1.0, 7.0]}
RESTARTS = {
    "restarts": 8,
    "kept": 2,
    "screening_steps": 3,
    "steps": 20,
    "evaluation_draws": 32,
    "incumbents": 2,
}
# Readings of the clock, at one second each, that a search may need when its budget is spent: at the start and
# the end of a fallback, for a program that was about to begin, and for the seconds that the decision reports.
AFTERWARDS = 6


def episode(search):
    return [search(transition_episode(3, horizon=7, changes=3))]


LEVELS = {"a": {"values": [-1, 0, 0.5, 2.5, 3]}, "b": [0, 10]}


def trial(kind, limits=None, **task):
    def asked(search):
        model = hills(limits, **task)
        return [search(kind(model, one_case(model.task)))]

    return asked


@cache
def model_of(surrogate):
    return learnt(surrogate, managing().task, managing().table(60))


def rehearsal(objective, option):
    def asked(search):
        made = instantiate(configuration("objective", objective), _convert_="all")
        return search.batch_search(
            objective_for(made, model_of(PAIRS[objective, option]), managing().cases(2))
        )

    return asked


SEARCHES = {
    "astar": (AStar, {}, episode),
    "astar as published": (published, {}, episode),
    "branch_and_bound": (BranchAndBound, {}, episode),
    "branch_and_bound that falls back": (BranchAndBound, {"events": 1}, episode),
    "branch_and_bound that falls back to greedy": (
        BranchAndBound,
        {"events": 1, "fallback": GreedyChanges()},
        episode,
    ),
    "exhaustive": (Exhaustive, {"chunk": 4}, episode),
    "greedy_changes": (GreedyChanges, {}, episode),
    "random_changes": (RandomChanges, {}, episode),
    "top_k": (TopK, {}, episode),
    "acquisition": (AcquisitionSearch, {"screened": 64, "starts": 8}, trial(ConfidenceBound)),
    "acquisition within limits": (
        AcquisitionSearch,
        {"screened": 64, "starts": 8},
        trial(ConfidenceBound, LIMITS),
    ),
    "acquisition with levels": (
        AcquisitionSearch,
        {"screened": 64, "starts": 8},
        trial(ConfidenceBound, actions=LEVELS),
    ),
    "acquisition with levels within limits": (
        AcquisitionSearch,
        {"screened": 64, "starts": 8},
        trial(ConfidenceBound, LIMITS, actions=LEVELS),
    ),
    "acquisition with levels alone": (
        AcquisitionSearch,
        {"screened": 64, "starts": 8},
        trial(ConfidenceBound, actions={**LEVELS, "b": {"values": list(range(1000))}}),
    ),
    "acquisition of botorch": (AcquisitionSearch, {"screened": 64, "starts": 8}, trial(MonteCarlo)),
    "optimistic_networks": (OptimisticNetworks, RESTARTS, trial(Optimism)),
    "optimistic_networks with levels": (OptimisticNetworks, RESTARTS, trial(Optimism, actions=LEVELS)),
    "spread_actions": (SpaceFilling, {}, trial(PosteriorMean)),
}


def class_of(option):
    module, _, name = configuration("search", option)["_target_"].rpartition(".")
    return getattr(import_module(module), name)


def settings(option):
    return {key: value for key, value in configuration("search", option).items() if not key.startswith("_")}


SEARCHES |= {
    option: (
        class_of(option),
        {key: value for key, value in settings(option).items() if key not in ("budget_s", "otherwise")},
        rehearsal(objective, option),
    )
    for objective, option in sorted({option: (objective, option) for objective, option in PAIRS}.values())
}
every = pytest.mark.parametrize("name", SEARCHES)


class Clock:
    """Each reading takes a second."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("rehearsal_torch.search.search.perf_counter", made)
    return made


CLASSES = concrete("rehearsal_torch.search", Search, BatchSearch)


def plain(decisions):
    return [each.to_dict() for each in decisions]


def test_every_search_of_the_package_stands_under_this_contract():
    assert {made if inspect.isclass(made) else AStar for made, _, _ in SEARCHES.values()} == CLASSES


@pytest.mark.parametrize("kind", sorted(CLASSES, key=str))
@pytest.mark.parametrize("budget", [0, 0.0, -1, float("nan"), "soon", True])
def test_a_budget_is_a_positive_number(kind, budget):
    with pytest.raises(ValueError, match="expected a budget_s above 0, or None for no limit; got"):
        kind(budget_s=budget)


@pytest.mark.parametrize("kind", sorted(CLASSES, key=str))
def test_a_budget_is_kept(kind):
    assert kind(budget_s=2.5).budget_s == 2.5
    assert kind().budget_s is None


@pytest.mark.slow
@every
def test_a_budget_that_is_not_spent_changes_nothing(name):
    made, settings, ask = SEARCHES[name]
    unlimited = plain(ask(made(**settings)))
    assert plain(ask(made(**settings, budget_s=1e6))) == unlimited
    assert all("stopped" not in each["trace"] for each in unlimited)


@pytest.mark.slow
@every
@pytest.mark.parametrize("budget", [1e-9, 3.0, 12.0])
def test_a_search_ends_with_its_budget_and_says_what_is_known(name, budget, clock):
    made, settings, ask = SEARCHES[name]
    decisions = ask(made(**settings, budget_s=budget))
    assert clock.now <= budget + AFTERWARDS + 1
    for decision in decisions:
        trace = decision.trace
        assert not decision.undecided or decision.reason.kind in ("unqualified", "no_support")
        assert (decision.alteration is None) == (decision.status == "leave")
        if "stopped" not in trace:
            continue
        assert trace["stopped"].startswith("stopped after budget_s=")
        assert trace["gap"] is None or 0 <= trace["gap"] < float("inf")
        assert trace["stopped"].endswith("; no gap is known") == (trace["gap"] is None)
        assert not trace.get("proven", False)


# What is found here in one step: with one set of variables there is one quadratic program, and the root of
# the tree proves its optimum.
AT_ONCE = {"top_k", "random_changes", "no_action", "cheapest_alteration", "branch_and_bound"}


@pytest.mark.parametrize("name", sorted(SEARCHES.keys() - AT_ONCE))
def test_a_search_of_several_steps_is_ended_by_the_least_budget(name, clock):
    made, settings, ask = SEARCHES[name]
    assert any("stopped" in each.trace for each in ask(made(**settings, budget_s=1e-9)))
    assert clock.now <= AFTERWARDS + 1
