"""Experiments that no search proposed: the start design, spread points, and what may not be proposed."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.decision import Decision
from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.trials.trial_log import TrialLog
from rehearsal_torch.objectives.expected_reward import PosteriorMean
from rehearsal_torch.problems.trials.user_experiments import start_points
from rehearsal_torch.search.trials import proposal
from rehearsal_torch.search.trials.proposal import (
    NothingLeftError,
    another_action,
    designed_action,
    searched_action,
)
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.spaces.box import Alteration
from tests.toys.causal_toys import WrittenLaw, WrittenModel, hills, one_case, plain

DOUBLE = torch.float64
LIMITS = {"normals": [[1.0, 0.1]], "offsets": [1.0]}


def start_point(task, number, initial, seed, held=None):
    return start_points(task, max(initial, number + 1), seed, held)[number]


def asked(log, *actions):
    for action in actions:
        log, _ = log.ask(torch.as_tensor(action, dtype=DOUBLE))
    return log


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 100), count=st.integers(0, 6), limited=st.booleans())
def test_asked_one_by_one_the_start_design_comes_in_its_order(seed, count, limited):
    task = hills(LIMITS if limited else None).task
    log = TrialLog(task)
    for number in range(count):
        action = designed_action(task, log, 4, seed)
        assert torch.equal(action, start_point(task, number, 4, seed))
        task.check_action(action)
        log = asked(log, action)


def test_points_that_are_trials_already_are_passed_over_and_abandoned_ones_are_not():
    task = hills().task
    design = [start_point(task, number, 8, 0) for number in range(6)]
    log = asked(TrialLog(task), [0.0, 5.0], design[1], design[2], design[4])
    log, _ = log.fail(2, "broke")
    # Four trials: the fifth asks for point 4, which is pending.
    assert torch.equal(designed_action(task, log, 8, 0), design[5])
    log, _ = log.abandon(4)
    assert torch.equal(designed_action(task, log, 8, 0), design[4])


@pytest.mark.parametrize("limits", [None, LIMITS])
def test_another_action_is_the_best_of_the_spread_points_that_are_free(limits):
    model = hills(limits)
    objective = PosteriorMean(model, one_case(model.task, "7"))
    log, values = TrialLog(model.task), []
    for _ in range(3):
        action = another_action(objective, log, 0)
        model.task.check_action(action)
        values.append(float(objective(action.unsqueeze(0))))
        log = asked(log, action)
    assert len(set(map(tuple, log.settings("pending").tolist()))) == 3
    assert values == sorted(values, reverse=True)
    # Brute force: nothing of 512 points is better than the first, one is better than the second, ...
    region = objective.region()
    points = region.units(region.spread(512, round_seed(0, "another 7")))
    every = objective(points).sort(descending=True).values[:3]
    assert values == pytest.approx(every.tolist(), abs=1e-12)
    log, _ = log.abandon(1)
    assert float(objective(another_action(objective, log, 0).unsqueeze(0))) == values[0]


def test_completed_settings_may_be_asked_again():
    model = hills()
    objective = PosteriorMean(model, one_case(model.task))
    best = another_action(objective, TrialLog(model.task), 0)
    settings_ = dict(zip(model.task.actions, best.tolist(), strict=True))
    log, _, _ = TrialLog(model.task).complete(None, {"Y": 1.0}, ran=settings_)
    assert torch.equal(another_action(objective, log, 0), best)


def test_the_round_and_the_seed_decide_the_points():
    model = hills()

    def action(identity, seed):
        objective = PosteriorMean(model, one_case(model.task, identity))
        return another_action(objective, TrialLog(model.task), seed).tolist()

    assert action("0", 0) == action("0", 0)
    assert action("0", 0) != action("1", 0)
    assert action("0", 0) != action("0", 1)


def test_a_value_that_is_no_number_is_not_proposed():
    task = plain({"Y": ["a"]}, {"a": [-1, 1]}, "Y")
    law = WrittenLaw(lambda w: w[..., 0].sqrt() * -1, lambda w: 0 * w[..., 0])
    objective = PosteriorMean(WrittenModel(task, {"Y": law}), one_case(task))
    action = another_action(objective, TrialLog(task), 0)
    assert 0 <= float(action) < 0.05


def test_where_all_spread_points_are_pending_nothing_is_left(monkeypatch):
    monkeypatch.setattr(proposal, "TRIES", 2)
    model = hills()
    objective = PosteriorMean(model, one_case(model.task))
    log = TrialLog(model.task)
    for _ in range(2):
        log = asked(log, another_action(objective, log, 0))
    with pytest.raises(
        ValueError,
        match="nothing is left to try: all 2 space-filling points wait for their result or have failed; tell",
    ):
        another_action(objective, log, 0)


FEW = {"graph": {"parents": {"Y": ["a", "b"]}}, "actions": {"a": {"values": [0, 1]}, "b": {"values": [0, 5]}}}


def test_where_all_settings_are_trials_the_one_run_least_often_is_repeated() -> None:
    task = CausalTask.of({**FEW, "reward": "Y"})
    log = TrialLog(task)
    for _ in range(4):
        log = asked(log, designed_action(task, log, 6, 0))
    assert len(log.settings("pending").unique(dim=0)) == 4
    with pytest.raises(NothingLeftError, match="all 4 settings that there are wait for their result or have"):
        designed_action(task, log, 6, 0)
    log, _, _ = log.complete(3, {"Y": 1.0})
    log, _ = log.fail(2, "broke")
    assert torch.equal(designed_action(task, log, 6, 0), log.settings("completed")[0])
    log, _, _ = log.complete(None, {"Y": 1.0}, ran=dict(log.trials[2].settings))
    log, _, _ = log.complete(4, {"Y": 1.0})
    assert designed_action(task, log, 6, 0).tolist() == list(log.trials[3].settings.values())


def test_of_points_that_were_all_run_the_first_of_the_rarest_is_repeated(monkeypatch) -> None:
    """512 points that were trials already were an error."""
    monkeypatch.setattr(proposal, "TRIES", 2)
    task = CausalTask.of({**FEW, "actions": {"a": {"values": [0, 1]}, "b": [0, 5]}, "reward": "Y"})
    design = [start_point(task, number, 6, 0) for number in range(4)]
    log = TrialLog(task)
    for point in design[2:]:
        ran = dict(zip(task.actions, point.tolist(), strict=True))
        log, _, _ = log.complete(None, {"Y": 1.0}, ran=ran)
    assert torch.equal(designed_action(task, log, 6, 0), design[2])
    # One further point is looked at.
    monkeypatch.setattr(proposal, "TRIES", 3)
    assert torch.equal(designed_action(task, log, 6, 0), start_point(task, 4, 6, 0))
    monkeypatch.undo()
    assert proposal.TRIES == 512


def test_the_start_design_holds_what_is_held():
    task = hills().task
    held = task.held({"b": 7.0})
    log = TrialLog(task)
    for number in range(3):
        action = designed_action(task, log, 4, 0, held)
        assert torch.equal(action, start_point(task, number, 4, 0, held))
        assert action[1] == 7.0
        log = asked(log, action)


def gave(**settings_):
    """A search that finds these settings; none without any."""
    values = torch.tensor(list(settings_.values()), dtype=DOUBLE)
    found = Alteration(tuple(settings_), values) if settings_ else None
    return lambda objective: Decision(found, 0.0)


def searched(search, log=None):
    model = hills(LIMITS)
    objective = PosteriorMean(model, one_case(model.task))
    return searched_action(objective, search, TrialLog(model.task) if log is None else log, 0)


def test_what_a_search_finds_is_tried_in_the_order_of_the_actions() -> None:
    assert searched(gave(b=5.0, a=0.25)).tolist() == [0.25, 5.0]
    assert searched(gave(b=5.0, a=0.25, more=1.0)).tolist() == [0.25, 5.0]


@pytest.mark.parametrize("failed", [False, True])
def test_what_is_pending_or_has_failed_gives_way_to_another_action(failed) -> None:
    model = hills(LIMITS)
    log = asked(TrialLog(model.task), [0.25, 5.0])
    if failed:
        log, _ = log.fail(1, "broke")
    other = another_action(PosteriorMean(model, one_case(model.task)), log, 0)
    assert torch.equal(searched(gave(a=0.25, b=5.0), log), other)


def test_a_search_that_finds_no_setting_or_only_some_is_refused() -> None:
    with pytest.raises(ValueError, match="the search found no action to try: function gave no reason"):
        searched(gave())
    none = Decision(None, 0.0, reason=Finding("no_gain", "all is lost"))
    with pytest.raises(ValueError, match=r"the search found no action to try: all is lost$"):
        searched(lambda objective: none)
    with pytest.raises(
        ValueError, match=r"gave no value for \['b'\]: expected a value for each of \['a', 'b'\]; got \{'a'"
    ):
        searched(gave(a=0.25))
    with pytest.raises(ValueError, match="the action that was proposed cannot be set"):
        searched(gave(a=0.9, b=9.0))
