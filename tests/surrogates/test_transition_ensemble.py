from functools import partial

import pytest
import torch

import rehearsal_torch as rt
from rehearsal_torch.claims.abstention_rules import ruled
from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, return_record
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.objectives.task_reward import StepScore
from rehearsal_torch.search.sequences.astar import AStar, UnboundedError
from rehearsal_torch.search.sequences.baselines import GreedyChanges, RandomChanges, TopK
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.search.sequences.exhaustive import Exhaustive
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit
from tests.toys.transitions import CONTEXTUAL, DOSES, STATIC, VARYING, observations, patients

MEMBER = partial(
    TransitionModel,
    VARYING,
    STATIC,
    CONTEXTUAL,
    DOSES,
    partial(LocationScale, hidden=8),
    levels=3,
    effects="sparse",
)


@pytest.fixture(scope="module")
def ensemble() -> TransitionEnsemble:
    torch.manual_seed(0)
    made = TransitionEnsemble(MEMBER, 6)
    return fit(made, observations(), Descent(max_epochs=4, progress=False), observations(10, seed=1))


def searched(ensemble):
    """The three members of the half that chooses for the episode."""
    return ensemble.each[ensemble.closed.choosing(patients(1, 5, seed=7)[0]) :: 2]


def objective(surrogate, reward, changes=2, **use) -> CounterfactualReturn:
    return CounterfactualReturn(surrogate, EpisodeCase(patients(1, 5, seed=7)[0]), reward, changes, **use)


def test_members_share_ranges_and_levels_and_differ_in_weights(ensemble):
    first, second, *_ = ensemble.each
    assert second.rescale is first.rescale
    assert second.levels is first.levels
    assert not torch.equal(first.mechanism.networks.inner, second.mechanism.networks.inner)
    torch.manual_seed(0)
    again = fit(
        TransitionEnsemble(MEMBER, 6),
        observations(),
        Descent(max_epochs=4, progress=False),
        observations(10, seed=1),
    )
    for name, value in ensemble.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


SCORE = StepScore({"a": {"x": {"> 0": 2}}, "b": {DOSES[0]: {"> 0": 1}}}, DOSES)


@pytest.mark.parametrize("reward", [LinearReward({"x": -1.0, "y": 0.5}), SCORE])
def test_the_return_is_the_mean_over_the_members(ensemble, reward):
    wanted = objective(ensemble, reward)
    sequences = wanted.observed.repeat(5, 1)
    sequences[torch.arange(5), torch.arange(5) % 4] = torch.tensor([0, 8, 3, 5, 1])
    each = torch.stack([objective(model, reward)(sequences) for model in searched(ensemble)])
    torch.testing.assert_close(wanted(sequences), each.mean(0))
    torch.testing.assert_close(wanted.member_returns(sequences[1]), each[:, 1])
    assert wanted.outcome() == pytest.approx(objective(ensemble.each[0], reward).outcome())
    states = wanted.replay(sequences)
    members = ensemble.member_units(states)
    assert members.shape == (5, 5, 3, 2)
    torch.testing.assert_close(ensemble.units(states), members.mean(-2))


def test_searches_find_the_best_mean_and_prove_it(ensemble):
    wanted = objective(ensemble, LinearReward({"x": -1.0}))
    best, certified = Exhaustive()(wanted), BranchAndBound()(wanted)
    assert certified.trace["proven"]
    assert certified.value == pytest.approx(best.value, abs=1e-9)
    assert GreedyChanges()(wanted).value <= best.value + 1e-9
    record = return_record(wanted, best)
    assert len(record["member_gains"]) == 3
    assert sum(record["member_gains"]) / 3 == pytest.approx(record["value"] - record["observed"])
    for low, middle, high in zip(
        record["rewards_lower"], record["rewards"], record["rewards_upper"], strict=True
    ):
        assert low - 1e-9 <= middle <= high + 1e-9


def test_a_change_against_which_a_member_speaks_is_refused(ensemble):
    """The second member's networks are shifted so that it sees harm where the others see a gain."""
    wanted = objective(ensemble, LinearReward({"x": -1.0}))
    best = Exhaustive()(wanted)
    assert ruled(wanted, [best])[0].alteration is not None

    class Against(CounterfactualReturn):
        def member_returns(self, actions):
            found = super().member_returns(actions)
            changed = float((actions != self.observed).any())
            return found - changed * torch.tensor([0.0, 1e6, 0.0], dtype=torch.float64)

    doubtful = Against(ensemble, wanted.case, wanted.reward, 2)
    refused = ruled(doubtful, [best])[0]
    assert refused.undecided
    assert refused.reason.text.startswith("1 of the 3 members of the model predict no improvement")
    warned = ruled(doubtful, [best], declines=False)[0]
    assert warned.alteration is not None
    assert any("1 of the 3 members" in each for each in warned.warnings)
    alone = Against(ensemble, wanted.case, wanted.reward, 2, agreement="none")
    assert ruled(alone, [best])[0] == warned


@pytest.mark.parametrize("reward", [LinearReward({"x": -1.0, "y": 0.5}), SCORE])
def test_the_return_of_the_worst_member_is_searched_and_recorded(ensemble, reward):
    wanted = objective(ensemble, reward, members="worst")
    mean = objective(ensemble, reward)
    generator = torch.Generator().manual_seed(0)
    sequences = torch.randint(9, (6, 2, len(wanted.observed)), generator=generator)
    each = torch.stack([objective(model, reward)(sequences) for model in searched(ensemble)])
    torch.testing.assert_close(wanted(sequences), each.amin(0))
    assert wanted.outcome() == pytest.approx(mean.outcome())
    best = Exhaustive()(wanted)
    assert best.value <= Exhaustive()(mean).value + 1e-9
    certified = BranchAndBound()(wanted)
    assert certified.trace["proven"]
    assert certified.value == pytest.approx(best.value, abs=1e-9)
    for search in (GreedyChanges(), TopK(), RandomChanges(20)):
        found = search(wanted)
        assert found.value == pytest.approx(float(wanted(wanted.sequence(found))))
        assert found.value <= best.value + 1e-9
    record = return_record(wanted, best)
    assert sum(record["rewards"]) == pytest.approx(record["value"])
    assert record["value"] - record["observed"] == pytest.approx(min(record["member_gains"]))
    for related in record.get("related", {}).values():
        assert related["observed"] <= 0


def test_the_worst_member_is_no_sum_over_steps_so_that_astar_refuses(ensemble):
    wanted = objective(ensemble, LinearReward({"x": -1.0}), members="worst")
    with pytest.raises(UnboundedError, match=r"astar do not hold for objective\.members=worst: use branch"):
        AStar()(wanted)
    with pytest.raises(UnboundedError, match=r"objective\.members=worst"):
        AStar().check(ensemble, members="worst")
    AStar().check(ensemble, members="mean")
    AStar().check(ensemble.each[0], members="worst")
    BranchAndBound().check(ensemble, members="worst")


def test_unknown_uses_of_members_are_refused(ensemble):
    with pytest.raises(ValueError, match=r"objective\.members: expected mean or worst; got 'best'"):
        objective(ensemble, SCORE, members="best")
    with pytest.raises(ValueError, match=r"objective\.agreement: expected all or none; got 'some'"):
        CounterfactualReturn.check(ensemble, reward=SCORE, agreement="some")


def test_half_of_the_members_have_seen_each_half_of_the_units():
    made, table = TransitionEnsemble(partial(MEMBER, effects="dense"), 4), observations()
    for part, examples in made.common_parts(table):
        part.solve(*examples)
    every, _ = made.first.examples(table)
    for place in range(4):
        ((part, (parents, _)),) = made.member_parts(place, table)
        assert part is made.each[place].mechanism
        seen = {int(table.units[at]) for row in parents for at in (every == row).all(-1).nonzero()[:, 0]}
        assert {unit % 2 for unit in seen} == {place % 2}
        assert len(parents) == 20 * 5
        assert 5 < len(seen) < 20, "drawn with replacement"


def test_the_closed_form_is_searched_where_the_noise_of_the_members_can_be_predicted(ensemble):
    reward, width = LinearReward({"x": -1.0}), len(ensemble.names)
    kept = ensemble.noise_check.shares, ensemble.closed.noise_check.shares

    def chosen(members, closed):
        for part, shares in ((ensemble, members), (ensemble.closed, closed)):
            part.noise_check.shares = torch.tensor(shares, dtype=torch.float64)
        return objective(ensemble, reward).surrogate

    try:
        assert chosen([0.11, 0.0], [0.1, 0.9]) is ensemble.closed
        assert chosen([0.11, 0.0], [0.11, 0.0]) is ensemble, "that of the closed form can be predicted too"
        assert chosen([0.1, 0.9], [0.0] * width) is ensemble, "y is not rewarded"
        assert chosen([], [0.0] * width) is ensemble, "it is not known"
        found = chosen([0.5] * width, [0.0] * width)
        assert found.claimant is ensemble.claimant is ensemble.closed
        best = Exhaustive()(objective(ensemble, reward))
        assert best.value == pytest.approx(Exhaustive()(objective(ensemble.closed, reward)).value)
    finally:
        ensemble.noise_check.shares, ensemble.closed.noise_check.shares = kept


def test_its_counterfactual_is_the_mean_of_the_members(ensemble):
    (episode,) = patients(1, 5, seed=7)
    actions = torch.tensor([0, 3, 1, 2])
    found = rt.counterfactual(ensemble, episode, actions)
    each = torch.stack([rt.counterfactual(member, episode, actions).values for member in ensemble.each])
    assert torch.allclose(found.values, each.mean(0), rtol=0, atol=1e-12)
    assert torch.allclose(rt.counterfactual(ensemble, episode).values, episode.values, rtol=0, atol=1e-6)


def test_lipschitz_constants_are_the_largest_of_the_members(ensemble):
    found = ensemble.lipschitz(observations())
    each = [member.lipschitz(observations()) for member in ensemble.each]
    assert found["bound_largest"] == max(one["bound_largest"] for one in each)
    assert set(found) == set(each[0])


def test_verbs_for_a_single_model_say_so(ensemble):
    (episode,) = patients(1, 5, seed=7)
    with pytest.raises(ValueError, match=r"expected a single model; got a TransitionEnsemble of 6"):
        rt.recover(ensemble, episode)
    assert rt.recover(ensemble.each[0], episode).shape == (4, 2)
