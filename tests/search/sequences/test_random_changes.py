"""Random changes: drawn by item, uniform, and no better than they are."""

import pytest
import torch

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.finite import UNDEFINED
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.search.sequences.baselines import RandomChanges
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.seeding import stream
from tests.toys.episodes import KnownTruth, equation_episode, transition_episode


def test_k_open_steps_change() -> None:
    for seed in range(20):
        objective = equation_episode(seed, 6, 3, fixed=(0, 4))
        sequence = objective.sequence(RandomChanges(seed=seed)(objective))
        changed = (sequence != objective.observed).nonzero()[:, 0].tolist()
        assert len(changed) == 3
        assert set(changed) <= {1, 2, 3, 5}


def test_seed_and_identity_decide() -> None:
    def actions(identity: int, seed: int) -> dict[int, int]:
        return RandomChanges(seed=seed)(transition_episode(identity, 8, 3, levels=5)).actions()

    assert actions(1, 0) == actions(1, 0)
    assert actions(1, 0) != actions(1, 1)
    assert stream(0, "a").initial_seed() != stream(0, "b").initial_seed()
    assert stream(0, "a").initial_seed() == stream(0, "a").initial_seed()
    before = torch.get_rng_state()
    actions(2, 0)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
def test_steps_and_actions_are_uniform() -> None:
    objective = transition_episode(0, 4, 1, levels=4)
    seen = torch.zeros(3, 4)
    for seed in range(900):
        sequence = objective.sequence(RandomChanges(seed=seed)(objective))
        time = int((sequence != objective.observed).nonzero()[0])
        seen[time, sequence[time]] += 1
    # Nine (step, other action) pairs, 100 expected draws of each: six standard deviations are 57.
    others = torch.ones(3, 4, dtype=torch.bool).scatter(1, objective.observed.unsqueeze(1), False)
    assert (seen[~others] == 0).all()
    assert ((seen[others] - 100).abs() < 57).all()


@pytest.mark.slow
def test_one_draw_may_be_worse_than_what_was_done_and_many_are_better() -> None:
    objectives = [transition_episode(seed, 6, 2) for seed in range(20)]
    one = [RandomChanges()(objective) for objective in objectives]
    many = [RandomChanges(count=400)(objective) for objective in objectives]
    assert min(decision.improvement for decision in one) < 0
    assert sum(decision.value for decision in many) > sum(decision.value for decision in one)
    assert all(
        decision.value <= Exhaustive()(objective).value + 1e-9
        for decision, objective in zip(many, objectives, strict=True)
    )


def test_no_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="count=0"):
        RandomChanges(count=0)


def test_every_step_and_every_other_action_is_drawn() -> None:
    """Also where some of the others may not be chosen: these are never drawn."""
    for actions, shut in ((2, None), (4, None), (4, 1)):
        objective, seen = equation_episode(0, 3, 1, actions=actions), set()
        choices = objective.choices.clone()
        if shut is not None:
            choices[:, shut] = False
            objective.__dict__["choices"] = choices
        for seed in range(40 if actions > 2 else 12):
            seen |= set(RandomChanges(seed=seed)(objective).actions().items())
        assert seen == {tuple(place) for place in choices.nonzero().tolist()}


def test_one_draw_is_the_default_and_draws_are_counted() -> None:
    objective = transition_episode(1, 6, 2, levels=4)
    plain = RandomChanges()
    assert (plain.count, plain.seed) == (1, 0)
    for count in (1, 7):
        trace = RandomChanges(count)(objective).trace
        assert (trace["draws"], trace["generated"], trace["network_evaluations"]) == (count, count, count * 5)
        assert (trace["gap"], trace["proven"], trace["expanded"]) == (None, False, 0)
    assert RandomChanges(7)(transition_episode(0, 5, 0)).trace["draws"] == 7


def test_a_loss_is_the_answer_with_a_warning() -> None:
    found = [RandomChanges()(transition_episode(seed, 6, 2)) for seed in range(8)]
    losses = [decision for decision in found if decision.improvement < 0]
    assert losses
    for decision in losses:
        assert decision.status == "recommended"
        assert "no better than the observed actions" in decision.warnings[-1]


def test_draws_that_are_all_undefined_leave_what_was_done() -> None:
    def lost(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return torch.where((a > 0).unsqueeze(-1), torch.nan, x)

    model = KnownTruth(1, 2, lost, 1.0)
    episode = model.episode("lost", torch.zeros(4, 1, dtype=torch.float64), torch.zeros(4).long())
    objective = CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": 1.0}), 1)
    decision = RandomChanges(5)(objective)
    assert (decision.alteration, decision.value) == (None, 0.0)
    assert decision.reason == (
        f"{UNDEFINED}: none of 5 random sequences can be compared with the observed one"
    )
