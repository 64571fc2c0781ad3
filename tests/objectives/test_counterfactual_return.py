from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.mechanisms.mechanism import Trajectory
from rehearsal_torch.objectives.counterfactual_return import (
    CounterfactualReturn,
    given_doses,
    return_record,
    taken,
)
from rehearsal_torch.objectives.step_reward import Doses, LinearReward, Reward
from rehearsal_torch.objectives.task_reward import EpisodeReward, StepScore
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.spaces.box import Alteration
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.episodes import (
    coded_episode,
    doubled_episode,
    idle_dose_episode,
    transition_episode,
    transition_model,
)
from tests.toys.scored_episodes import scored_episode
from tests.toys.transitions import model, observations, patients


class Costly(Reward):
    """A reward that depends on the action: the state's first variable less the action's number."""

    @property
    def acts(self) -> bool:
        return True

    def __call__(self, states: Tensor, names: Sequence[str], doses: Doses | None = None) -> Tensor:
        return states[..., :1] - torch.arange(9, dtype=states.dtype)

    def lipschitz(self, names: Sequence[str], state_scale: Tensor) -> float:
        return float(state_scale[0])


def test_a_last_state_without_an_action_costs_nothing_and_stays():
    drawn = scored_episode(3, dosed=True)
    dear = EpisodeReward([drawn.reward], {"drug0": [7.0, 1.0, 2.0]})
    ended = EpisodeCase(drawn.case.episode.changed(acts_last=False))
    acted, still = (CounterfactualReturn(drawn.surrogate, each, dear, 1) for each in (drawn.case, ended))
    last = still.horizon - 1
    assert acted.open.tolist() == list(range(last + 1))
    assert still.open.tolist() == list(range(last))
    states, free = still.trajectory.states[-1], drawn.reward.related()["without doses"]
    expected = free(still.surrogate.units(states), still.surrogate.names)
    assert torch.equal(still.rewards(states, last), expected.expand(still.actions))
    assert not torch.equal(acted.rewards(states, last), expected.expand(acted.actions))
    best = Exhaustive()(still)
    assert last not in best.actions()
    assert BranchAndBound()(still).value == pytest.approx(best.value)
    assert return_record(still, best)["dose_names"] == ["drug0"]


@pytest.fixture(scope="module")
def surrogate() -> TransitionModel:
    return fit(model(), observations(), Descent(max_epochs=3, progress=False))


def objective(
    surrogate: TransitionModel, changes: int = 2, reward: Reward | None = None, fixed: Tensor | None = None
) -> CounterfactualReturn:
    (episode,) = patients(1, 5, seed=8)
    one_case = EpisodeCase(episode) if fixed is None else EpisodeCase(episode, fixed)
    return CounterfactualReturn(surrogate, one_case, reward or LinearReward({"x": -1.0, "y": 0.5}), changes)


def by_hand(wanted: CounterfactualReturn, sequence: Sequence[int]) -> float:
    """The return of one sequence, one step at a time."""
    trajectory: Trajectory = wanted.trajectory
    state, total = trajectory.states[:1], 0.0
    for time in range(trajectory.horizon):
        action = sequence[time] if time < len(sequence) else int(trajectory.observed[time])
        rewards = wanted.reward(wanted.surrogate.units(state), wanted.surrogate.names)[0]
        total += float(rewards[action] if wanted.reward.acts else rewards[0])
        if time + 1 < trajectory.horizon:
            state = trajectory.step(state, time, torch.tensor(action))
    return total


@pytest.mark.parametrize("reward", [LinearReward({"x": -1.0, "y": 0.5}), Costly()])
def test_the_return_is_the_sum_of_rewards_along_the_course(surrogate: TransitionModel, reward: Reward):
    wanted = objective(surrogate, reward=reward)
    length = 5 if reward.acts else 4
    assert wanted.observed.shape == (length,)
    sequences = torch.randint(9, (6, length), generator=torch.Generator().manual_seed(0))
    expected = [by_hand(wanted, sequence) for sequence in sequences.tolist()]
    assert wanted(sequences).tolist() == pytest.approx(expected)
    assert wanted(sequences.reshape(2, 3, length)).shape == (2, 3)
    assert wanted(sequences[0]).item() == pytest.approx(expected[0])


@pytest.mark.parametrize("reward", [LinearReward({"x": -1.0}), Costly()])
def test_the_observed_actions_have_the_observed_return(surrogate: TransitionModel, reward: Reward):
    wanted = objective(surrogate, reward=reward)
    assert wanted(wanted.starts(3))[0].item() == pytest.approx(wanted.outcome(), abs=1e-9)
    (episode,) = patients(1, 5, seed=8)
    if not reward.acts:
        assert wanted.outcome() == pytest.approx(-episode.columns(("x",)).sum().item())


WHOLE = {
    "x0": {">= 0": 1, "> 1": 3, "< -1": 2},
    "x1": {"<= 0": 1, "< -1": 2, ">= 2": 1.5},
    "x0 / x1": {">= 1": 1, "<= 0.5": 2},
}


def whole_numbers(seed: int) -> CounterfactualReturn:
    """An episode of whole numbers, whose score has whole numbers for limits."""
    model, generator = transition_model(seed), torch.Generator().manual_seed(seed)
    columns = ("x0", "x1", "age", "vent", "drug0")
    values = torch.randint(-2, 3, (12, 5), generator=generator).to(torch.float64)
    values[:, 1] += 3 * (values[:, 1] == 0)
    values[:, 4] = values[:, 4].abs()
    score = StepScore({name: {name: rules} for name, rules in WHOLE.items()})
    return CounterfactualReturn(model, EpisodeCase(Episode(f"whole-{seed}", columns, values)), score, 3)


@pytest.mark.parametrize("reward", [None, LinearReward({"x0": -1.0, "x1": 0.3})])
def test_the_replay_of_unchanged_actions_is_what_was_observed_to_the_last_bit(reward):
    for seed in range(12):
        wanted = whole_numbers(seed)
        if reward is not None:
            wanted = CounterfactualReturn(wanted.surrogate, wanted.case, reward, 3)
        assert torch.equal(wanted.replay(wanted.observed[None])[0], wanted.trajectory.states)
        assert float(wanted(wanted.observed)) == wanted.outcome()
        assert wanted.member_returns(wanted.observed).tolist() == [wanted.outcome()]


def test_whole_numbers_are_scored_as_in_the_table_and_alike_after_a_change_that_changes_nothing():
    for seed in range(12):
        wanted = whole_numbers(seed)
        names, exact = wanted.surrogate.names, wanted._exact
        table = exact(wanted.case.episode.columns(names), names).sum().item()
        assert wanted.outcome() == table
        states = wanted.trajectory.states
        for time in range(len(states) - 1):  # each step is made again, with its rounding
            states = states.clone()
            states[time + 1] = wanted.trajectory.step(states[None, time], time, wanted.observed[time])[0]
        assert not torch.equal(states, wanted.trajectory.states)
        assert wanted.returns(states[None], wanted.observed[None]).item() == table


def test_fixed_steps_are_closed(surrogate: TransitionModel):
    fixed = torch.tensor([True, False, False, True, False])
    wanted = objective(surrogate, fixed=fixed)
    assert wanted.open.tolist() == [1, 2]
    assert len(wanted.candidate_actions(0)) == 0
    assert len(wanted.candidate_actions(1)) == 8
    assert objective(surrogate, fixed=fixed, reward=Costly()).open.tolist() == [1, 2, 4]
    assert objective(surrogate).open.tolist() == [0, 1, 2, 3]


def test_impossible_questions_are_refused(surrogate: TransitionModel):
    with pytest.raises(ValueError, match="at least 0 changes"):
        objective(surrogate, changes=-1)
    with pytest.raises(ValueError, match="`fixed` of length 5"):
        objective(surrogate, fixed=torch.zeros(4, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"surrogate models, \['x', 'y'\]; got \['z'\]: choose another"):
        CounterfactualReturn.check(surrogate, reward=LinearReward({"z": 1.0}))
    with pytest.raises(ValueError, match=r"got \['xx'\] \(did you mean x\?\)"):
        CounterfactualReturn.check(surrogate, reward=LinearReward({"xx": 1.0}))
    (episode,) = patients(1, 5, seed=8)
    wanted = objective(surrogate)
    for step, action in ((1, wanted.actions), (1, -1), (4, 0)):
        changed = Alteration((f"action[{step}]",), torch.tensor([float(action)]))
        with pytest.raises(ValueError, match=rf"action\[{step}\] = {action} is not allowed: expected"):
            wanted.sequence(Decision(changed, 0.0))
    last = Alteration(("action[3]",), torch.tensor([wanted.actions - 1.0]))
    assert wanted.sequence(Decision(last, 0.0)).tolist() == [
        *wanted.observed[:3].tolist(),
        wanted.actions - 1,
    ]
    for settings in ({"members": "most"}, {"agreement": "half"}):
        with pytest.raises(ValueError, match=f"{next(iter(settings))}: expected .*; got '"):
            CounterfactualReturn(surrogate, EpisodeCase(episode), LinearReward({"x": 1.0}), 2, **settings)


def test_a_reward_reads_doses_that_the_surrogate_has() -> None:
    dosed = transition_model(4, drugs=1, levels=3)
    (drug,) = dosed.dose_names
    CounterfactualReturn.check(dosed, reward=StepScore({"a": {drug: {"> 1": 1}}}, [drug]))
    with pytest.raises(ValueError, match=r"expected some of the doses of the surrogate, .*; got \['other'\]"):
        CounterfactualReturn.check(dosed, reward=StepScore({"a": {"other": {"> 1": 1}}}, ["other"]))


def test_returns_are_equal_within_a_share_of_their_size_or_of_what_states_change(surrogate) -> None:
    wanted = objective(surrogate, changes=0)
    assert wanted.rounding(1e-9, 0.5) == 0.5e-9
    assert wanted.rounding(1e-3, 1e9) == pytest.approx(wanted.constant * wanted.horizon, rel=1e-4)


def test_it_warns_of_an_episode_outside_the_data(surrogate: TransitionModel):
    (episode,) = patients(1, 5, seed=8)
    values = episode.values.clone()
    values[2, episode.names.index("x")] = 1e3
    far = episode.changed(values=values)
    (found,) = CounterfactualReturn(surrogate, EpisodeCase(far), LinearReward({"x": 1.0}), 2).warnings()
    assert found.text.startswith("x lies between ")


def test_what_gives_the_same_is_no_change_and_a_level_without_a_row_is_no_alternative():
    doubled = doubled_episode(0)
    for time, observed in enumerate(doubled.observed.tolist()):
        given = (0, 1, 1, 2)
        assert doubled.candidate_actions(time).tolist() == [
            action for action in range(4) if given[action] != given[observed]
        ]
    twin = torch.where(
        (doubled.observed == 1) | (doubled.observed == 2), 3 - doubled.observed, doubled.observed
    )
    assert torch.equal(doubled.settled(twin), doubled.observed)
    coded = coded_episode(0)
    assert all(3 not in coded.candidate_actions(time).tolist() for time in range(4))
    assert coded.open.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dosed", [False, True])
@pytest.mark.parametrize("use", ["mean", "worst"])
def test_rewards_of_the_steps_add_up_to_the_return(use, dosed):
    objective = scored_episode(2, members=3, dosed=dosed, use=use)
    decision = GreedyChanges()(objective)
    record = return_record(objective, decision)
    assert record == return_record(objective, decision)
    assert sum(record["rewards"]) == pytest.approx(record["value"])
    assert sum(record["observed_rewards"]) == pytest.approx(record["observed"])
    gain = record["value"] - record["observed"]
    assert record["improvement"] == pytest.approx(gain / abs(record["observed"]))
    gains = record["member_gains"]
    gain = min(gains) if use == "worst" else sum(gains) / len(gains)
    assert record["value"] - record["observed"] == pytest.approx(gain)
    if dosed:
        same = record["related"]["with doses"]
        assert same == pytest.approx({"value": record["value"], "observed": record["observed"]})


def test_rewards_that_do_not_depend_on_the_action_are_those_of_the_state():
    rewards = torch.arange(6.0).view(2, 3)
    assert taken(rewards, torch.tensor([2, 0])).tolist() == [2, 3]
    assert taken(rewards[:, :1], torch.tensor([2, 0])).tolist() == [0, 3]
    assert taken(rewards[:, :2], torch.tensor([1, 0])).tolist() == [1, 3]


def test_doses_are_those_that_were_given_unless_their_level_changes():
    objective = transition_episode(4, horizon=4, drugs=2, levels=3)
    given, levels = objective.case.episode.columns(["drug0", "drug1"]), objective.surrogate.levels
    action = int(objective.observed[1])
    other = next(
        each
        for each in objective.candidate_actions(1).tolist()
        if each // 3 != action // 3 and each % 3 == action % 3
    )
    record = return_record(objective, Decision(Alteration(("action[1]",), torch.tensor([other])), 0.0))
    expected = given[:3].clone()
    expected[1, 0] = levels.doses(torch.tensor(other))[0]
    assert record["observed_doses"] == given[:3].tolist()
    assert record["doses"] == expected.tolist()
    assert record["level_doses"] == levels.doses(objective.observed).tolist()
    assert record["level_doses"] != record["observed_doses"]


def test_an_episode_without_dose_columns_has_the_doses_of_the_levels():
    objective = idle_dose_episode()
    assert given_doses(objective).tolist() == [[0, 1], [1, 2], [0, 2], [1, 1]]


def test_where_nothing_changes_the_return_is_the_observed_one():
    objective = scored_episode(2, members=1)
    record = return_record(objective, Decision(None, objective.outcome()))
    assert record["actions"] == record["observed_actions"] == objective.observed.tolist()
    assert record["value"] == record["observed"] == objective.outcome()
    assert record["improvement"] == 0.0
    assert record["rewards"] == record["observed_rewards"]
    assert (record["horizon"], record["changes"]) == (5, 2)
    assert not {"member_gains", "rewards_lower", "rewards_upper", "related"} & set(record)


def test_the_range_of_the_members_holds_their_rewards():
    objective = scored_episode(2, members=3)
    decision = GreedyChanges()(objective)
    record, sequence = return_record(objective, decision), objective.sequence(decision)
    states = objective.replay(sequence.unsqueeze(0))[0]
    every = objective.by_member(states, sequence)
    assert record["rewards_lower"] == every.min(0).values.tolist()
    assert record["rewards_upper"] == every.max(0).values.tolist()
    assert record["rewards"] == pytest.approx(every.mean(0).tolist())
    gains = every.sum(-1) - objective.member_returns(objective.observed)
    assert record["member_gains"] == pytest.approx(gains.tolist())
