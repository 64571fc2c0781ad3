"""Halves of the units: one chooses, the other one claims."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from rehearsal_torch.checkpoint import load, save
from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.mechanisms.mechanism import replay
from rehearsal_torch.objectives.change_rules import ChangeRules
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, return_record
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.surrogates.transition_ridge import HALVES, TransitionRidge, begins_of
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.transitions import CONTEXTUAL, DOSES, NAMES, STATIC, VARYING, model, observations, patients

CONFIG = {
    "_target_": "rehearsal_torch.surrogates.transition_ridge.TransitionRidge",
    "varying": list(VARYING),
    "static": list(STATIC),
    "contextual": list(CONTEXTUAL),
    "doses": list(DOSES),
    "levels": 3,
    "seed": 4,
}
REWARD = LinearReward({"x": -1.0, "y": 0.5})
EPISODES = patients(20, 6, seed=7)


def made(seed=4):
    return TransitionRidge(VARYING, STATIC, CONTEXTUAL, DOSES, 3, seed=seed)


@cache
def rows(count=60):
    return observations(count)


@cache
def known():
    """A fitted model, not to be changed, with a check of its noise."""
    return fit(made(), rows(), held_out=observations(30, seed=1))


def other_actions(episode):
    return (known().trajectory(episode).observed[:-1] + 4) % 9


def place_of(table):
    """The place of each row's unit; every second one is of a half."""
    return begins_of(table).cumsum(0) - 1


def shuffled(table, half):
    """Twenty rows of one half have the next states of each other: every range is the same."""
    mine = (place_of(table) % HALVES == half).nonzero()[::7, 0][:20]
    values, ahead = table.values.clone(), [table.names.index(f"{name}'") for name in VARYING]
    order = torch.randperm(len(mine), generator=torch.Generator().manual_seed(0))
    values[mine.unsqueeze(1), torch.tensor(ahead)] = values[mine[order].unsqueeze(1), torch.tensor(ahead)]
    return replace(table, values=values)


@pytest.mark.parametrize("half", [0, 1])
def test_what_is_claimed_does_not_depend_on_the_units_that_choose(half):
    one, other = known(), fit(made(), shuffled(rows(), half))
    assert one.unmoved == other.unmoved == (), "which is tested by all units"
    by = {0: 0, 1: 0}
    for episode in EPISODES:
        actions, chooses = other_actions(episode), one.choosing(episode) == half
        by[int(chooses)] += 1
        claims = [each.replayed(episode, actions[None])[:, 0] for each in (one, other)]
        paths = [replay(each.trajectory(episode), actions[None]) for each in (one, other)]
        assert claims[0].shape == (60, 6, 2)
        assert torch.equal(*claims) == chooses
        assert torch.equal(*paths) != chooses
    assert min(by.values()) > 3


def test_the_half_that_chooses_is_drawn_by_the_name_of_the_episode_and_the_seed():
    one = EPISODES[0].changed(identity="a")
    places = [made().choosing(one.changed(identity=str(name))) for name in range(400)]
    assert sorted(set(places)) == [0, 1]
    assert 160 < sum(places) < 240
    assert len({made(seed).choosing(one) for seed in range(20)}) == 2
    assert made().choosing(one) == made().choosing(EPISODES[1].changed(identity="a"))


def test_a_saved_model_answers_to_the_last_digit(tmp_path):
    one, other = known(), load(save(known(), CONFIG, tmp_path / "ridge"))
    assert isinstance(other, TransitionRidge)
    assert other.unmoved == one.unmoved
    assert torch.equal(other.noise_check.shares, one.noise_check.shares)
    for episode in EPISODES[:4]:
        actions = other_actions(episode)
        assert one.choosing(episode) == other.choosing(episode)
        assert torch.equal(*(each.replayed(episode, actions[None]) for each in (one, other)))
        found = [Exhaustive()(objective(each, episode)) for each in (one, other)]
        assert (found[0].alteration, found[0].value) == (found[1].alteration, found[1].value)
    assert torch.equal(one.residuals(rows()), other.residuals(rows()))


def objective(surrogate, episode, changes=2):
    return CounterfactualReturn(surrogate, EpisodeCase(episode), REWARD, changes)


def test_gains_are_those_of_the_refits_that_claim():
    for episode in EPISODES[:3]:
        wanted, actions = objective(known(), episode), other_actions(episode)
        gains = wanted.claimed(actions.unsqueeze(0))[:, 0].sum(-1)
        replayed = known().replayed(episode, actions[None])[:, 0]
        before = episode.columns(VARYING)
        weights = torch.tensor([-1.0, 0.5], dtype=torch.float64)
        torch.testing.assert_close(gains, ((replayed - before) @ weights).sum(-1))
        assert wanted.claimed(wanted.observed.unsqueeze(0))[:, 0].sum(-1).tolist() == [0.0] * 60
        assert torch.equal(wanted.observed, known().trajectory(episode).observed[:-1])


def test_other_models_have_no_refits_that_claim():
    surrogate = model()
    for part, examples in surrogate.parts(rows()):
        part.solve(*examples) if hasattr(part, "solve") else part.finish()
    wanted = objective(surrogate, EPISODES[0])
    assert wanted.claimed(wanted.observed.unsqueeze(0)) is None
    assert surrogate.claimant is None
    assert surrogate.unmoved == ()


def test_of_every_second_unit_each_half_is_fitted():
    table = rows()
    begins = begins_of(table)
    assert begins.sum() == 60
    assert torch.equal(place_of(table), table.units)
    one, steps = known(), known().steps(table)
    for half, form in enumerate(one.halves.forms):
        mine = steps.units(torch.arange(60) % 2 == half)
        z = torch.cat([mine.states, mine.others], 1)
        torch.testing.assert_close(form.centre, z.mean(0))
    assert torch.equal(*(form.unmoved for form in one.halves.forms)), "tested by all units"


def test_a_single_unit_has_no_halves():
    with pytest.raises(ValueError, match=r"expected transitions of at least 2 units, .*; got units=1"):
        fit(made(), observations(1, 40))


def test_one_is_built_beside_a_model_with_its_columns_and_levels():
    drugs = [f"drug{number}" for number in range(12)]
    many = TransitionRidge(["x"], [], ["c"], drugs, levels=2)
    beside = TransitionRidge.beside(many, seed=9)
    assert beside.rescale is many.rescale
    assert beside.levels is many.levels
    assert beside.halves.seed == 9
    assert (beside.levels.actions, beside.names, beside.contextual) == (2**12, ("x",), ("c",))
    for form in beside.halves.forms:
        assert form.doses is many.levels
    assert not beside.halves.needed
    assert many.halves.needed


def test_what_no_action_moves_is_named_and_keeps_its_course():
    table = observations(60)
    values, stream = table.values.clone(), torch.Generator().manual_seed(3)
    y, ahead = (table.names.index(name) for name in ("y", "y'"))
    values[:, [y, ahead]] = torch.randn(len(values), 2, generator=stream, dtype=torch.float64)
    one = fit(made(), replace(table, values=values))
    assert one.unmoved == ("y",)
    (episode,) = patients(1, 6, seed=7)
    found = one.replayed(episode, other_actions(episode)[None])[:, 0]
    torch.testing.assert_close(found[..., 1], episode.columns(["y"])[:, 0].expand(60, -1))
    assert not torch.equal(found[..., 0], episode.columns(["x"])[:, 0].expand(60, -1))


def test_noise_is_what_is_left_without_the_level_of_the_unit():
    inputs, noise = known().noise(rows())
    assert inputs.shape == (len(rows()), len(NAMES))
    assert noise.shape == (len(rows()), 1, 2)
    assert torch.equal(noise[:, 0], known().residuals(rows()))
    # In the coordinates of the steps, of which the noise of the world is 0.3 and 0.2 in its units.
    deviation = noise[:, 0].std(0) * known().state_scale()
    torch.testing.assert_close(deviation, torch.tensor([0.3, 0.2], dtype=torch.float64), rtol=0.25, atol=0)
    least = known().least_noise.sqrt() * known().state_scale()
    torch.testing.assert_close(least, deviation, rtol=0.2, atol=0)


def test_noise_that_is_noise_cannot_be_predicted():
    shares = known().noise_shares()
    assert set(shares) == set(VARYING)
    assert max(shares.values()) <= 0.1
    assert not known().errs(())
    assert fit(made(), rows()).noise_shares() == {}, "nothing was held out"


def test_it_claims_what_it_has_chosen_itself():
    assert known().claimant is known()
    assert known().chooser(("x",)) is known()
    assert (known().members, known().each, known().first) == (1, (known(),), known())


def asked(episode, support, **rules):
    return CounterfactualReturn(
        known(), EpisodeCase(episode), REWARD, 2, rules=ChangeRules(support, boluses=DOSES, **rules)
    )


def test_the_support_of_an_action_is_that_of_its_doses_together():
    episode = EPISODES[0]
    found = known().support(episode)
    counts = known().known.counts(known().rescale.scale(episode.columns(known().rescale.names)))
    observed = known().levels.digitise(episode.columns(DOSES)).tolist()
    for step, action in ((0, 4), (2, 7), (4, 1)):
        assert int(found[step, action]) == int(counts[step, 0, action])
        assert int(found[step, observed[step]]) == torch.iinfo(torch.long).max, "which is no change"
    states = episode.columns(VARYING)
    assert torch.equal(known().support(episode, states), found)
    assert not torch.equal(known().support(episode, states + 3), found)


def test_what_too_few_comparable_units_did_is_not_searched_and_proven_without():
    units = known().support(EPISODES[0])[:-1]
    least = int(units[asked(EPISODES[0], 0).choices].median()) + 1
    free, some, none = (asked(EPISODES[0], support) for support in (0, least, 10_000))
    assert torch.equal(some.choices, free.choices & (units >= least))
    assert 0 < int(some.choices.sum()) < int(free.choices.sum())
    (found,) = ruled(some, [Exhaustive()(some)])
    chosen = some.sequence(found)
    assert all(some.choices[step, chosen[step]] for step in found.actions())
    (left,) = ruled(none, [Exhaustive()(none)])
    assert (left.status, left.reason.kind, left.undecided) == ("leave", "no_support", True)
    assert torch.equal(free.choices, free.offered), "but how many did it is told all the same"
    assert free.supports(some.sequence(found)) == some.supports(some.sequence(found))


def test_support_is_told_at_the_state_to_which_earlier_changes_lead():
    wanted = asked(EPISODES[0], 5)
    (found,) = ruled(wanted, [Exhaustive()(wanted)])
    sequence = wanted.sequence(found)
    states = known().units(wanted.replay(sequence.unsqueeze(0))[0])
    beside = known().support(EPISODES[0], states)
    told = {
        step: int(beside[step, sequence[step]])
        for step in sorted(map(int, return_record(wanted, found)["support"]))
    }
    assert wanted.supports(sequence) == told
    few = wanted.rules.support > min(told.values())
    assert any(each.kind == "few_comparable" for each in found.findings) == few
    strict = asked(EPISODES[0], 5)
    strict.supports = lambda sequence: dict.fromkeys(told, 4)
    (doubted,) = ruled(strict, [Exhaustive()(strict)])
    assert (doubted.status, [each.kind for each in doubted.findings].count("few_comparable")) == ("may", 1)


def test_a_single_highest_dose_that_other_changes_make_is_withdrawn():
    wanted = asked(EPISODES[0], 0)
    observed = wanted.trajectory.observed
    # The drug is 0, 1, 0, ... as observed, and only between two steps without it when the second one is gone.
    names, levels = known().dose_names, known().levels
    sequence = torch.zeros_like(observed)
    sequence[2] = 2 * levels.count
    doses = known().doses(torch.arange(levels.actions))
    rules = ChangeRules(0)
    assert rules.singles(names, doses, torch.zeros_like(observed), sequence)
    assert not ChangeRules(0, boluses=DOSES).singles(names, doses, torch.zeros_like(observed), sequence)
    wanted.singles = lambda sequence: True
    (found,) = ruled(wanted, [Exhaustive()(wanted)])
    assert (found.status, found.reason.kind, found.undecided) == ("leave", "unqualified", True)


def test_less_than_what_was_asked_for_is_withdrawn_by_the_model_of_the_search_itself():
    wanted = asked(EPISODES[0], 0, least_gain=1e6)
    (found,) = ruled(wanted, [Exhaustive()(wanted)])
    assert (found.status, found.reason.kind) == ("leave", "no_gain")
    assert "by no more than the 1e+06 asked for" in found.reason.text


def test_an_order_of_states_is_told_to_both_halves_and_names_states():
    told = TransitionRidge(VARYING, STATIC, CONTEXTUAL, DOSES, 3, order=("y", "x"))
    assert told.halves.told == (1, 0)
    form = fit(told, rows()).halves.forms[0]
    assert form.order.tolist() == [1, 0]
    assert TransitionRidge.beside(told, 0, ("x",)).halves.told == (0,)
