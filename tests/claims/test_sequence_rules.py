"""What a sequence gains, by refits that had no say in it: by itself, and in worlds whose truth is known."""

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.claims.claim_context import Context
from rehearsal_torch.claims.sequence_rules import FORM, NORMAL, interval, sequence_gains
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.objectives.change_rules import ChangeRules
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.task_reward import episode_reward
from rehearsal_torch.problems.sequences.random_episodes import DrawnEpisodes
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.transition_ridge import TransitionRidge
from rehearsal_torch.training.surrogate_fit import fit

DOUBLE, REFITS = torch.float64, 60


def normal(seed=0, count=REFITS):
    return torch.randn(count, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


def width(estimate):
    return estimate.upper - estimate.lower


def test_the_point_is_the_median_in_the_middle_of_the_interval():
    gains = 2 + normal()
    found = interval(gains, 0.2)
    assert found.point == float(gains.median())
    assert found.point == pytest.approx((found.lower + found.upper) / 2)
    assert (found.of, found.level) == ("gain in return", 0.95)


def test_errors_of_sampling_and_of_the_form_add_up_as_squares():
    gains = torch.tensor([1.0, 2.0, 3.0], dtype=DOUBLE)
    assert width(interval(gains, 0.0)) == pytest.approx(2 * NORMAL * math.sqrt(2 / 3))
    assert width(interval(gains, 0.5)) == pytest.approx(2 * NORMAL * math.sqrt(2 / 3 + 1))


@settings(max_examples=50, deadline=None)
@given(
    gains=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=70),
    errors=st.tuples(st.floats(0, 2), st.floats(0, 2)),
    scale=st.floats(1e-3, 1e3),
)
def test_the_width_grows_with_the_error_and_with_the_unit(gains, errors, scale):
    one, other = (interval(torch.tensor(gains, dtype=DOUBLE), error) for error in sorted(errors))
    assert width(one) <= width(other) * (1 + 1e-9)
    assert one.point == other.point
    scaled = interval(scale * torch.tensor(gains, dtype=DOUBLE), min(errors))
    assert scaled.point == pytest.approx(scale * one.point, rel=1e-9)
    assert width(scaled) == pytest.approx(scale * width(one), rel=1e-6, abs=1e-9 * scale)


class Claimed(CounterfactualReturn):
    """An episode of three steps in which each step where the action is 1 gains what a refit says."""

    observed = torch.tensor([0, 0, 0])
    read, rules, horizon, reward = ("x",), None, 3, SimpleNamespace(greatest=math.inf)

    def __init__(self, gains, shares=None):
        self.each = gains
        claimant = SimpleNamespace(noise_shares=lambda: shares or {})
        self.surrogate = SimpleNamespace(claimant=claimant if gains is not None else None)

    def sequence(self, decision):
        chosen = self.observed.clone()
        for step, action in decision.actions().items():
            chosen[step] = action
        return chosen

    def outcome(self):
        return 10.0

    def claimed(self, actions, reward=None):
        return None if self.each is None else self.each.unsqueeze(1) * actions


def told(objective, steps=(0, 2), declines=True, **more):
    names = tuple(f"action[{step}]" for step in steps)
    one = Decision(Alteration(names, torch.ones(len(steps))), 14.0, **more)
    (found,) = sequence_gains(Context(objective, [None], declines), [one])
    return one, found


def test_a_gain_that_is_claimed_is_told_with_the_return_and_its_parts():
    each = torch.stack([2 + 0.1 * normal(0), torch.zeros(REFITS).double(), 1 + 0.1 * normal(1)], 1)
    _, found = told(Claimed(each))
    assert found.gain == interval(each.sum(1), FORM)
    assert found.estimate.point == 10 + found.gain.point
    assert (found.estimate.lower, found.estimate.upper) == pytest.approx(
        (10 + found.gain.lower, 10 + found.gain.upper)
    )
    assert found.status == "do"
    assert list(found.parts) == ["action[2]", "action[0]"]
    assert found.parts["action[0]"] == interval(each[:, 0], FORM)
    torch.testing.assert_close(found.parts["action[2]"].point, interval(each[:, 2], FORM).point)
    assert sum(part.point for part in found.parts.values()) == pytest.approx(found.gain.point, abs=0.05)


def test_a_claim_ends_where_no_return_can_be_larger():
    objective = Claimed(2 + normal().unsqueeze(1).expand(-1, 3))
    objective.reward = episode_reward(components={"low": {"x": {"< 1": 5}}}, costs={"dose": [0, 2]})
    objective.outcome = lambda: -4.0
    _, found = told(objective)
    assert found.gain.upper == 4.0
    assert found.estimate.upper == 0.0
    assert episode_reward({"x": 1}, {"low": {"x": {"< 1": 5}}}).greatest == math.inf
    assert episode_reward(costs={"dose": -1.0}).greatest == math.inf


def test_refits_without_a_finite_answer_do_not_claim_and_many_of_them_are_named():
    each = torch.stack([2 + 0.1 * normal(0), torch.zeros(REFITS).double(), 1 + 0.1 * normal(1)], 1)
    some, most = each.clone(), each.clone()
    some[:3, 0], most[:40, 0] = torch.nan, torch.inf
    assert told(Claimed(some))[1].gain == interval(each[3:].sum(1), FORM)
    _, found = told(Claimed(most))
    assert (found.gain, found.status) == (None, "may")
    assert found.warnings == ("40 of the 60 refits that claim have no finite answer",)


@pytest.mark.parametrize("declines", [True, False])
@pytest.mark.parametrize("middle", [0.0, -0.5])
def test_what_is_not_confirmed_is_withdrawn_unless_nothing_is(declines, middle):
    each = torch.zeros(REFITS, 3, dtype=DOUBLE)
    each[:, 0] = middle + torch.linspace(-1, 1, REFITS + 1, dtype=DOUBLE)[:-1]
    _, found = told(Claimed(each), (0,), declines)
    assert found.gain.point <= 0
    assert (found.alteration is None) == declines
    if declines:
        assert (found.status, found.reason.kind, found.undecided) == ("leave", "no_gain", False)
        assert found.reason.text.startswith("by the units that had no say in the choice, it gains nothing (")
        assert found.trace["would_set"] == {"action[0]": 1.0}
    else:
        assert found.status == "may"


@pytest.mark.parametrize(("least", "kept"), [(0.9, True), (1.0, False), (1.1, False)])
def test_less_than_what_was_asked_for_leaves_everything_as_it_was(least, kept):
    objective = Claimed(torch.ones(REFITS, 3, dtype=DOUBLE))
    objective.rules = ChangeRules(least_gain=least)
    _, found = told(objective, (0,))
    assert (found.alteration is not None) == kept
    if not kept:
        assert (found.status, found.reason.kind) == ("leave", "no_gain")
        assert f"no more than the {least:g} asked for" in found.reason.text


@pytest.mark.parametrize(("share", "status"), [(0.1, "do"), (0.11, "may"), (-0.5, "do")])
def test_where_the_claimants_own_noise_can_be_predicted_a_gain_is_may_at_best(share, status):
    each = torch.full((REFITS, 3), 1.0, dtype=DOUBLE)
    _, found = told(Claimed(each, {"x": share, "another": 0.9}))
    assert found.status == status
    kinds = [finding.kind for finding in found.findings]
    assert kinds == (["claim"] if share > 0.1 else [])
    wide = NORMAL * math.sqrt(FORM**2 + 2 * max(share, 0.0)) * 2
    assert found.gain.upper - found.gain.point == pytest.approx(wide)
    if share > 0.1:
        assert found.findings[0].numbers == {"share": 0.11}
        assert found.gain.lower > 0, "by its interval alone, it would be told from zero"


def test_without_a_claimant_and_of_what_is_claimed_or_left_nothing_is_said():
    one, found = told(Claimed(None))
    assert found is one
    each = torch.full((REFITS, 3), torch.nan, dtype=DOUBLE)
    one, found = told(Claimed(torch.ones(REFITS, 3).double()), gain=interval(normal(), 0.2))
    assert found is one
    left = Decision(None, 0.0, reason=Finding("no_gain", "none"))
    assert sequence_gains(Context(Claimed(each), [None]), [left]) == [left]
    assert sequence_gains(Context(object(), [None]), [one]) == [one]


def world(trait, seed, units=200):
    """The decisions of a small world by its closed form and a greedy search, with what they truly gain."""
    drawn = DrawnEpisodes(trait, own_units=False, units=units, seed=seed)
    model = fit(TransitionRidge(**drawn.roles.surrogate_settings()), drawn.observations())
    named = drawn.roles.reward_settings()
    reward = episode_reward(**{key: value for key, value in named.items() if key != "_target_"})
    for case in map(drawn.case, range(min(20, drawn.count()))):
        wanted = CounterfactualReturn(model, case, reward, 2)
        (found,) = ruled(wanted, [GreedyChanges()(wanted)])
        yield wanted, found, drawn.score(case, found)["true_gain"]


@pytest.mark.parametrize(
    "seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 1, 3, 4, 5, 6, 7))]
)
def test_where_no_action_has_an_effect_nothing_is_recommended(seed):
    for _, found, _ in world("null", seed):
        assert found.status == "leave"
        assert found.reason.kind in ("no_effect", "no_gain")


def test_of_a_world_the_parts_add_up_and_are_those_of_the_decision():
    some = 0
    for wanted, found, _ in world("plain", 22, 120):
        if found.alteration is None or len(found.parts) < 2:
            continue
        some += 1
        assert set(found.parts) == set(found.alteration.names)
        total = sum(part.point for part in found.parts.values())
        assert total == pytest.approx(found.gain.point, abs=0.25 * width(found.gain))
        claimed = wanted.claimed(wanted.sequence(found)[None])[:, 0].sum(-1)
        assert found.gain == interval(claimed, FORM)
        assert found.estimate.point == pytest.approx(wanted.outcome() + found.gain.point)
    assert some > 3


@pytest.mark.slow
def test_true_gains_lie_in_the_intervals_and_are_those_claimed():
    held, claimed, true = [], 0.0, 0.0
    for trait, seeds in (("plain", range(20, 25)), ("noise", range(20, 23)), ("few", range(20, 22))):
        for seed in seeds:
            for _, found, gain in world(trait, seed):
                if found.alteration is not None:
                    held.append(found.gain.lower <= gain <= found.gain.upper)
                    claimed, true = claimed + found.gain.point, true + gain
    assert len(held) > 100
    assert sum(held) > 0.9 * len(held)
    assert 0.7 < true / claimed < 1.5
