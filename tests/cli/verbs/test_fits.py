"""What is looked at before anything is fitted."""

import pytest

from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.verbs.train import fit
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.methods.run_parts import build, method_of, suits
from rehearsal_torch.problems.cases.nonlinear_examples import Loan
from rehearsal_torch.problems.problem import Facts
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError
from tests.toys.rehearsal_methods import built
from tests.toys.transitions import model, patients


class Untouched:
    """A problem whose observations nobody may ask for yet."""

    kind = "look_back"

    def facts(self):
        return Facts()

    def observations(self):
        raise AssertionError("it went on to fit")


def method(*overrides):
    return method_of(composed(list(overrides), multirun=False)[0])


def test_costs_of_variables_that_may_not_be_altered_are_refused():
    with pytest.raises(
        UserError,
        match=r"objective: expected positive weights and references of \['A2'\]; got weights \{'X1': 2\}",
    ):
        suits(
            method("dataset=bank", "decision=micns", "+objective.weights.X1=2"),
            built("linear_structural", Loan(size=SampleSize(rows=30)).task),
        )


@pytest.mark.slow
def test_a_certificate_that_the_surrogate_cannot_give_is_refused_before_the_fit():
    task = Loan(size=SampleSize(rows=30)).task
    chosen = method("dataset=bank", "decision=care", "certificate=credible_bound")
    with pytest.raises(UserError, match="certificate: expected a posterior from which models") as refused:
        suits(chosen, built("nested_ridge", task))
    assert "\n" not in str(refused.value)
    suits(chosen, built("linear_structural", task))
    with pytest.raises(UserError, match="certificate: expected a surrogate that draws scenarios"):
        suits(method("dataset=bank", "decision=care", "certificate=pac_bound"), built("nested_ridge", task))


@pytest.mark.slow
@pytest.mark.parametrize(
    "weights", ["1", "{}", "{SOFA: null}", "{SOFA: .inf}", "{SOFA: true}", "{SOFA: much}"]
)
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(UserError, match="weights: expected"):
        method("reward=linear", f"objective.reward.weights={weights}")


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["reward=linear", "objective.reward.weights={lactate: 1}"], "reward: expected some of"),
        (
            ["surrogate.member.mechanism.hidden=1000000000"],
            "hidden: expected a whole number from 1 to 65536; got 1000000000",
        ),
        (["surrogate.member.levels=5000"], "levels: expected a whole number from 2 to 1000; got 5000"),
    ],
)
def test_nothing_is_fitted_that_could_not_be_kept_or_used(tmp_path, overrides, words):
    config, _ = composed(overrides, multirun=False)
    with pytest.raises(UserError) as as_user_error:
        fit(build(config, Untouched()), RunFolder(tmp_path))
    assert words in str(as_user_error.value)


def test_a_transition_that_has_learnt_nothing_says_so():
    (episode,) = patients(1, 5, seed=0)
    assert isinstance(episode, Episode)
    for asked in (
        lambda: model().trajectory(episode),
        lambda: model().log_likelihood(transitions([episode])),
    ):
        with pytest.raises(
            ValueError, match=r"TransitionModel has not been fitted yet \(rescale, levels\): fit it first"
        ):
            asked()
