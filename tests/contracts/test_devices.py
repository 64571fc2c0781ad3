"""Every model decides on another device as on the CPU: it is fitted there, moved with `.to(...)`, and asked.

The device is a stand-in that lies in memory and refuses what CUDA refuses (tests/toys/second_device.py), so
that values agree to the last bits; with ``--device cuda`` it is a GPU, where sums are rounded otherwise and
an ascent ends a little elsewhere.
"""

from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import pytest
import torch
from hydra.utils import instantiate
from torch import Tensor

from rehearsal_torch.certificate import CredibleBound
from rehearsal_torch.claims.improvement_test import with_unchanged
from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.estimators.gp_kernel import lower_root
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, return_record
from rehearsal_torch.objectives.objective import objective_for
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.sequences.astar import AStar
from rehearsal_torch.search.sequences.baselines import GreedyChanges, RandomChanges, TopK
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.search.trials.acquisition import AcquisitionSearch
from rehearsal_torch.search.trials.optimistic_networks import OptimisticNetworks
from rehearsal_torch.spaces.box import Alteration, Box
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from tests.contracts.test_mechanisms import CASES, arguments, seeded
from tests.toys.episodes import transition_episode
from tests.toys.fitted_pair import fitted_pair
from tests.toys.linear_truth import chain
from tests.toys.place import Place
from tests.toys.rehearsal_methods import JUDGES, PAIRS, SURROGATES, configuration, learnt_here
from tests.toys.scored_episodes import scored_episode

WORLD = chain()
TABLE = WORLD.table(60)
ROUND = [replace(each, present={"a": 0.1, "m": -0.2}) for each in WORLD.cases(3)]
TRIPLES = sorted(
    {(*pair, surrogate) for surrogate, pair in JUDGES.items()}
    | {(*pair, surrogate) for pair, surrogate in PAIRS.items()}
)
# Searches and acquisition functions that take seconds even when small.
LONG = ("adam_in_box", "cheapest_alteration", "informative", "informative_online", "informative_published")


@cache
def fitted(name: str) -> RehearsalSurrogate:
    """Not to be changed."""
    return learnt_here(name, WORLD.task, TABLE)


def same(here: list[Decision], there: list[Decision], place: Place) -> None:
    assert [each.status for each in here] == [each.status for each in there]
    for one, other in zip(here, there, strict=True):
        assert one.value == pytest.approx(other.value, abs=place.value, rel=place.value, nan_ok=True)
        assert (one.alteration is None) == (other.alteration is None)
        if one.alteration is not None and other.alteration is not None:
            assert one.alteration.names == other.alteration.names
            assert other.alteration.values.device.type == "cpu"
            gap = (one.alteration.values - other.alteration.values).abs()
            assert float(gap.amax()) <= place.action
        for name in ("estimate", "baseline", "unchanged", "gain"):
            own, its = getattr(one, name), getattr(other, name)
            assert (own is None) == (its is None)
            if own is not None and its is not None:
                numbers = [[each.point, each.lower, each.upper] for each in (own, its)]
                assert numbers[0] == pytest.approx(numbers[1], abs=max(place.value, 2e-6))
        assert set(one.warnings) == set(other.warnings)


def answers(made: RehearsalSurrogate, pair: tuple[str, str], cases: list[RehearsalCase]) -> list[Decision]:
    """Decisions, compared with what the present values give."""
    objective, search = (
        instantiate(configuration(group, option), _convert_="all")
        for group, option in zip(("objective", "search"), pair, strict=True)
    )
    candidates = objective_for(objective, made, cases)
    return with_unchanged(candidates, search.batch_search(candidates))


def test_every_surrogate_and_every_objective_is_here():
    assert {each[2] for each in TRIPLES} == set(SURROGATES)
    assert {each[:2] for each in TRIPLES} >= set(PAIRS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "search", "surrogate"),
    [pytest.param(*each, marks=[pytest.mark.bench] * (each[1] in LONG)) for each in TRIPLES],
)
def test_a_moved_model_decides_as_on_the_cpu(objective: str, search: str, surrogate: str, place: Place):
    pair, made = (objective, search), fitted(surrogate)
    here = answers(made, pair, ROUND)
    with place.entered() as device:
        other = deepcopy(made).to(device)
        same(here, answers(other, pair, ROUND), place)


@pytest.mark.bench
@pytest.mark.parametrize("surrogate", [each for each in SURROGATES if JUDGES[each][1] not in LONG])
def test_a_moved_model_sets_levels_as_on_the_cpu(surrogate: str, place: Place):
    box = Box.of({"a": {"values": [-1, -0.25, 0.5]}, "m": [-1, 1]})
    made = deepcopy(fitted(surrogate))
    made.adopt(replace(WORLD.task, box=box))
    cases = [replace(each, levels=box.levels) for each in ROUND[:2]]
    here = answers(made, JUDGES[surrogate], cases)
    with place.entered() as device:
        same(here, answers(made.to(device), JUDGES[surrogate], cases), place)


def test_a_moved_posterior_is_certified_as_on_the_cpu(place: Place):
    made, bound = fitted("structural_posterior"), CredibleBound(n=50)
    objective = instantiate(configuration("objective", "success_probability"), _convert_="all")
    decision = Decision(Alteration(("a",), torch.tensor([0.5], dtype=torch.float64)), 0.0)
    here = bound(made, objective_for(objective, made, ROUND[:1]), decision)
    with place.entered() as device:
        other = deepcopy(made).to(device)
        there = bound(other, objective_for(objective, other, ROUND[:1]), decision)
    assert set(there) == set(here)
    for name, told in here.items():
        expected = told if isinstance(told, str) else pytest.approx(told, rel=place.value, abs=place.value)
        assert there[name] == expected, name


def moved(value: Any, device: torch.device) -> Any:
    """A copy of a mechanism on a device, with everything that it holds."""
    if isinstance(value, torch.nn.Module):
        return deepcopy(value).to(device)
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple):
        return tuple(moved(each, device) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        held = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        return replace(value, **{name: moved(each, device) for name, each in held.items()})
    return value


@pytest.mark.parametrize("name", CASES)
def test_a_moved_mechanism_computes_as_on_the_cpu(name: str, place: Place):
    made = seeded(name, 0)
    parents, noise = (each.requires_grad_() for each in arguments(made, 4))
    here = made.forward(parents, noise)
    (slopes,) = torch.autograd.grad(here.sum(), parents)
    with place.entered() as device:
        other = moved(made, device)
        there = other.forward(parents.to(device), noise.to(device))
        assert there.device.type == device.type
        assert torch.allclose(there.cpu(), here, rtol=place.value, atol=place.value)
        assert torch.allclose(torch.autograd.grad(there.sum(), parents)[0], slopes, rtol=1e-5, atol=1e-9)
        back = other.abduct(parents.to(device), there).cpu()
    assert torch.allclose(back, made.abduct(parents, here), rtol=place.value, atol=place.value)


EPISODES = {
    "linear reward": lambda: transition_episode(3),
    "sparse effects, some steps fixed": lambda: transition_episode(
        5, horizon=6, fixed=(0, 2), effects="sparse"
    ),
    "step score of doses": lambda: scored_episode(2, dosed=True),
    "three models, the worst counts": lambda: scored_episode(4, horizon=4, members=3, use="worst"),
}
# Those for which the bounds of astar hold.
LIPSCHITZ = ("linear reward", "sparse effects, some steps fixed")
SEARCHES = (BranchAndBound, Exhaustive, AStar, GreedyChanges, TopK, RandomChanges)


def elsewhere(drawn: CounterfactualReturn, device: torch.device) -> CounterfactualReturn:
    """The same episode under the moved model."""
    use = "worst" if drawn.worst else "mean"
    model = deepcopy(drawn.surrogate).to(device)
    return CounterfactualReturn(model, drawn.case, drawn.reward, drawn.changes, use)


@pytest.mark.parametrize("name", ["linear reward", "three models, the worst counts"])
def test_a_moved_transition_model_replays_episodes_as_on_the_cpu(name: str, place: Place):
    here = EPISODES[name]()
    stream = torch.Generator().manual_seed(0)
    actions = torch.randint(here.actions, (5, len(here.observed)), generator=stream)
    with place.entered() as device:
        there = elsewhere(here, device)
        assert torch.allclose(there.replay(actions.to(device)).cpu(), here.replay(actions), atol=place.value)
        assert torch.allclose(there(actions.to(device)).cpu(), here(actions), atol=place.value)


@pytest.mark.bench
@pytest.mark.parametrize(
    ("name", "search"),
    [(name, each) for name in EPISODES for each in SEARCHES if each is not AStar or name in LIPSCHITZ],
)
def test_a_moved_transition_model_is_searched_as_on_the_cpu(name, search, place):
    here = EPISODES[name]()
    one = search()(here)
    with place.entered() as device:
        there = elsewhere(here, device)
        other = search()(there)
        record = return_record(there, other)
    same([one], [other], place)
    assert other.trace["proven"] == one.trace["proven"]
    assert record["value"] == pytest.approx(return_record(here, one)["value"], abs=1e-6)


QUICK = AcquisitionSearch(screened=32, starts=6, incumbents=2, steps=6)
NETWORKS = OptimisticNetworks(
    restarts=4, kept=2, screening_steps=3, steps=6, evaluation_draws=32, incumbents=2
)
ROUNDS: dict[str, tuple[str, dict[str, Any], Search[Any]]] = {
    "posterior mean": ("posterior_mean", {}, QUICK),
    "confidence bound": ("confidence_bound", {}, QUICK),
    "qUCB": ("monte_carlo", {"members": 4}, QUICK),
    "qLogNEI": ("monte_carlo", {"members": 4, "function": "qlognei"}, QUICK),
    "qLogEI": ("monte_carlo", {"members": 4, "function": "qlogei"}, QUICK),
    "optimism": ("optimism", {}, NETWORKS),
}


@pytest.mark.bench
@pytest.mark.parametrize("name", ROUNDS)
def test_a_moved_causal_model_proposes_as_on_the_cpu(name: str, place: Place):
    option, settings, search = ROUNDS[name]
    objective = instantiate({**configuration("objective", option), "draws": 8, **settings})
    made = fitted_pair()
    case = RehearsalCase("0", {}, made.task.box.bounds())
    here = search(objective(made, case))
    with place.entered() as device:
        there = search(objective(deepcopy(made).to(device), case))
    same([here], [there], place)
    assert here.recommendation is not None
    assert there.recommendation is not None
    assert torch.allclose(here.recommendation.values, there.recommendation.values, atol=place.action)


def test_undefined_covariances_are_refused_there_as_well(place: Place):
    with place.entered() as device:
        undefined = torch.eye(3, dtype=torch.float64).where(torch.eye(3) < 1, torch.nan)
        with pytest.raises(ValueError, match=r"those of regressions \[\[0\]\] are not"):
            lower_root(undefined[None].to(device))
