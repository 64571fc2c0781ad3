"""Worlds of episodes by seed: each trait is what it says, and the truth is a replay."""

import math
from collections import Counter
from functools import cache
from itertools import combinations, product

import pytest
import torch

from rehearsal_torch.data.decision import Decision, action_name
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.step_reward import Doses
from rehearsal_torch.objectives.task_reward import episode_reward
from rehearsal_torch.problems.cases.random_world import BLOCK, dealt
from rehearsal_torch.problems.sequences import random_episodes
from rehearsal_torch.problems.sequences.random_episodes import TRAITS, DrawnEpisodes, DrawnProcess
from rehearsal_torch.problems.sequences.sepsis_cohort import dose_options
from rehearsal_torch.problems.sequences.user_episodes import EpisodeTable
from rehearsal_torch.spaces.box import Alteration

NOTHING = Decision(None, 0.0, reason=Finding("no_gain", "none"))
# Worlds with what the names say; that of COSTLY has missed rows too.
SCORED, MISSED, COSTLY = 10, 4, 7


def small(seed, trait=None, **settings):
    return DrawnEpisodes(trait, own_units=False, units=80, seed=seed, **settings)


def change(world, levels):
    """A decision: step to the numbers of levels or amounts of the actions."""
    doses = {action_name(step): tuple(map(float, each)) for step, each in levels.items()}
    numbers = torch.tensor([int(world.levels.digitise(torch.tensor(each))) for each in doses.values()])
    return Decision(Alteration(tuple(doses), numbers), 0.0, doses=doses)


@cache
def drawn(seed, trait=None):
    return DrawnProcess(seed, trait)


def shown(process, units):
    return torch.arange(process.longest) < units.horizon[:, None]


@pytest.fixture(scope="module", params=range(6))
def world(request):
    return small(request.param)


def test_of_twenty_seeds_three_have_each_trait_and_two_none():
    for block in range(5):
        found = Counter(dealt(block * BLOCK + place, TRAITS) for place in range(BLOCK))
        assert [found[trait] for trait in TRAITS] == [3] * 6 + [2]
    with pytest.raises(ValueError, match="trait: expected one of form, noise"):
        DrawnEpisodes("odd")
    with pytest.raises(ValueError, match="changes: expected a whole number from 0"):
        DrawnEpisodes(changes=-1)


def test_a_seed_is_a_world_and_a_unit_does_not_depend_on_the_others():
    one, other = drawn(7), drawn(5)
    assert torch.equal(one.effects, DrawnProcess(7).effects)
    assert one.effects.shape != other.effects.shape or not torch.equal(one.effects, other.effects)
    few, many = one.simulate(5, 7), one.simulate(30, 7)
    for mine, theirs in zip(few, many, strict=True):
        assert torch.allclose(mine.double(), theirs[:5].double(), rtol=0, atol=1e-12)


def test_the_recorded_actions_reproduce_what_is_recorded(world):
    process, units = world.process, world.drawn
    again = process.followed(units, torch.arange(len(units.horizon)), units.actions)
    assert torch.allclose(again, units.latent, rtol=0, atol=1e-10)
    for index in range(5):
        case = world.case(index)
        score = world.score(case, NOTHING)
        assert score["true_observed"] == score["true_value"]
        assert score["true_gain"] == score["true_improvement"] == 0
        unit = int(case.episode.identity)
        names = list(world.roles.surrogate_settings()["doses"])
        assert torch.equal(case.episode.columns(names), units.actions[unit, : case.episode.horizon])
        assert not bool(world.respond(case, NOTHING).altered.any())


@pytest.mark.parametrize("seed", [3, SCORED, MISSED, COSTLY])
def test_the_truth_is_the_reward_of_the_task(seed):
    """The world's own sums agree with the reward that a run builds from the task."""
    world = small(seed)
    settings = {key: value for key, value in world.roles.reward_settings().items() if key != "_target_"}
    reward, roles = episode_reward(**settings), world.roles.surrogate_settings()
    has = [bool(part) for part in (world.process.points.any(), world.process.costs.any())]
    assert has == [seed == SCORED, seed == COSTLY]
    differ = 0
    for index in range(world.count()):
        episode = world.case(index).episode
        doses = Doses(roles["doses"], episode.columns(roles["doses"]).unsqueeze(1))
        given = float(reward(episode.columns(roles["varying"]), roles["varying"], doses).sum())
        same = given == pytest.approx(world.score(world.case(index), NOTHING)["true_observed"], rel=1e-9)
        missed = bool(world.drawn.missed[int(episode.identity), : episode.horizon].any())
        # What was missed is not recorded: the last values are carried forward.
        assert same or missed
        differ += not same
    assert (differ > 0) == (seed in (MISSED, COSTLY))


def test_a_change_acts_from_the_next_step_on(world):
    case = world.case(0)
    unit, episode = int(case.episode.identity), case.episode
    given = world.drawn.actions[unit, : episode.horizon]
    options = dose_options(episode, world.levels)[3, world.levels.selectable]
    other = next(each for each in options if bool((each != given[3]).any()))
    decision = change(world, {3: other.tolist()})
    altered = given.clone()
    altered[3] = other
    score = world.score(case, decision)
    assert score["true_value"] == pytest.approx(float(world.true_returns(unit, altered[None])), rel=1e-12)
    answer = world.respond(case, decision)
    names = world.roles.surrogate_settings()
    before = world.respond(case, NOTHING).columns(names["varying"])
    after = answer.columns(names["varying"])
    assert torch.equal(before[:4], after[:4])
    rows = answer.altered[:, [episode.names.index(name) for name in names["doses"]]]
    assert rows.any(-1).nonzero().tolist() == [[3]]
    number = int(world.levels.digitise(other))
    by_number = Decision(Alteration((action_name(3),), torch.tensor([number])), 0.0)
    assert world.score(case, by_number)["true_value"] == pytest.approx(score["true_value"], rel=1e-12)


def test_the_optimum_is_that_of_enumeration(monkeypatch):
    """Compared with a loop over every pair of changes, one sequence after the other."""
    world = small(10, horizon=5, changes=2)
    case = world.case(0)
    unit, given = int(case.episode.identity), world.drawn.actions[int(case.episode.identity), :5]
    options = dose_options(case.episode, world.levels)[:, world.levels.selectable]
    best = -math.inf
    for steps in combinations(range(4), 2):
        for chosen in product(range(options.shape[1]), repeat=2):
            actions = given.clone()
            for step, each in zip(steps, chosen, strict=True):
                actions[step] = options[step, each]
            best = max(best, float(world.true_returns(unit, actions[None])))
    assert world.optimum(case) == pytest.approx(best, rel=1e-12)
    monkeypatch.setattr(random_episodes, "MOST_SEQUENCES", 10)
    assert math.isnan(world.optimum(case))


def test_the_table_of_a_world_reads_back_to_the_same_observations():
    world = small(MISSED)
    read = EpisodeTable(world.frame(), world.process.task(), seed=MISSED)
    assert read.observations().fingerprint() == world.observations().fingerprint()
    card = world.card()
    assert (card["trait"], card["source"], card["hidden cause"]) == ("noise", "drawn by seed 4", None)
    assert world.counts["missing steps filled by carrying forward"] > 0


@pytest.mark.parametrize("seed", range(0, 40, 8))
def test_the_best_changes_matter_and_returns_have_a_usual_size(seed):
    process = drawn(seed)
    units = process.simulate(300, seed)
    rewards, seen = process.rewards(units.latent, units.actions), shown(process, units)
    usual = float(((rewards - rewards[seen].mean()) * seen).sum(-1).std())
    gain = float(process._gains(units).sum(-1).mean())
    assert 0.7 < usual < 7
    assert 0.2 * usual < gain < 2.5 * usual or process.trait == "null"
    assert 8 <= int(units.horizon.min()) <= int(units.horizon.max()) <= process.longest <= 20
    assert float(units.latent[seen].std(0).max()) < 5


def test_without_effects_no_action_changes_anything():
    world = small(8, trait="null")
    case = world.case(0)
    assert not world.process.useful.any()
    assert not world.process.costs.any()
    assert world.optimum(case) == pytest.approx(world.score(case, NOTHING)["true_observed"], rel=1e-12)


def test_a_hidden_cause_moves_states_and_actions_as_strongly_as_stated():
    for seed in (2, 5):
        world = small(seed, trait="hidden")
        process, q = world.process, len(world.process.static)
        observed = torch.cat([process.across[:, -1], process.static[:, -1]]).abs().max()
        assert 0.3 <= world.stated <= 2
        assert float(process.hit[-1].abs() / observed) == pytest.approx(world.stated)
        assert (process.urged.abs() / process.policy.abs().amax(-1)).tolist() == pytest.approx(
            [world.stated] * len(process.levels)
        )
        assert process.policy.shape[1] == len(process.scale) + q
    assert small(5).stated is None


def residuals(process, units):
    """What the noise of states adds, in its standard deviations, (rows, D)."""
    return units.noise[:, :, 0].flatten(0, 1)


def test_noise_is_normal_unless_the_trait_says_otherwise():
    kinds = {}
    for seed in (2, 6, 7):
        process = drawn(seed, "noise")
        kinds[process.noise] = residuals(process, process.simulate(100, seed)), bool(process.rates.any())
    assert set(kinds) == {"scale", "tails", "skew"}
    assert kinds["scale"][1]
    fourth = {
        name: float(noise.pow(4).mean() / noise.square().mean() ** 2) for name, (noise, _) in kinds.items()
    }
    assert fourth["scale"] == pytest.approx(3, abs=0.3)
    assert fourth["tails"] > 5
    assert float((kinds["skew"][0] ** 3).mean()) > 1.5
    for noise, _ in kinds.values():
        assert float(noise.mean()) == pytest.approx(0, abs=0.05)


def test_a_form_acts_within_the_step_or_saturates_or_leaps():
    """Some noise moves another state at once, bends its own, or is multiplied."""
    for seed in (2, 3, 5, 6):
        process = drawn(seed, "form")
        units = process.simulate(60, seed)
        state, shift, noise = (each[:, 3] for each in (units.latent, units.shift, units.noise))
        moved = torch.stack([noise, noise]).clone()
        moved[0, :, 0, -1] += 1
        moved[1, :, 0, -2] += 1
        quiet, own, beside = (
            process.move(state, units.actions[:, 3], shift, each)[:, -1] for each in (noise, *moved)
        )
        step = (own - quiet) / process.deviation[-1]
        within, bends = bool((beside != quiet).any()), float(step.std()) > 1e-6
        noise[:, 1] += 1
        leaps = bool((process.move(state, units.actions[:, 3], shift, noise)[:, -1] != quiet).any())
        assert within or bends or leaps
