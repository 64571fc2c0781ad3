"""Whether to finish an experiment of which some nodes were measured, and what is learnt from it."""

import pytest
import torch

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.data.trials.trial import TrialError

TASK = {"graph": "a -> X; X -> Y", "actions": {"a": [0, 1]}, "reward": "Y"}


def system(a, noise=0.0):
    """X goes up to 0.6 for a below 0.5, and Y has its optimum, 1, at X = 2."""
    x = 1.2 * a if a < 0.5 else 3 * a - 0.9
    return {"X": x + 0.01 * noise, "Y": 1 - (x - 2) ** 2 / 4 + 0.01 * noise}


@pytest.fixture
def campaign():
    """Experiments below a = 0.5 alone, where little is known of large X."""
    optimiser = CausalOptimiser(TASK)
    for index in range(8):
        setting = {"a": 0.06 * index}
        optimiser.tell(None, system(setting["a"], (-1) ** index), ran=setting)
    return optimiser


def test_what_was_measured_says_whether_the_rest_pays(campaign):
    (action,) = campaign.ask()
    campaign.observe(action, {"X": 0.3})
    known = campaign.finishing(action, rest=0.9)
    assert (known.reason, known.stop) == ("rest_does_not_pay", True)
    assert known.low < 1 - (0.3 - 2) ** 2 / 4 < known.high
    assert known.chance < 0.05
    assert known.value < 0.1 * known.instead
    # Nothing is known of the reward at such a value, and finishing costs a tenth.
    campaign.observe(action, {"X": 1.7})
    unknown = campaign.finishing(action.trial, rest=0.1)
    assert (unknown.reason, unknown.stop) == ("rest_pays", False)
    assert unknown.high - unknown.low > 5 * (known.high - known.low)
    for rest in (0, 1, float("nan")):
        with pytest.raises(ValueError, match="rest: expected a share of an experiment's cost"):
            campaign.finishing(action, rest)


def test_a_stopped_experiment_is_learnt_from_and_counts_as_no_trial_of_its_setting(campaign):
    (action,) = campaign.ask()
    with pytest.raises(TrialError, match="expected a measurement of"):
        campaign.stop(action)
    with pytest.raises(TrialError, match="of which some nodes were measured"):
        campaign.finishing(action, 0.5)
    nodes = torch.tensor([[0.9]], dtype=torch.float64)
    before = campaign.model().posterior(nodes).variance
    campaign.observe(action, {"X": 1.7})
    running = campaign.model()
    assert campaign.stop(action).nodes == {"X": 1.7}
    model = campaign.model()
    assert torch.equal(model.posterior(nodes).mean, running.posterior(nodes).mean)
    assert not torch.equal(model.posterior(nodes).variance, before)
    assert len(model.surrogate.visited()) == len(campaign.table) == 8
    assert campaign.summary().startswith("9 trials: 8 completed, 1 stopped;")


def test_the_other_nodes_complete_what_was_measured(campaign, tmp_path):
    (action,) = campaign.ask()
    campaign.observe(action, {"X": 1.7})
    campaign.write(tmp_path / "experiments.csv")
    again = CausalOptimiser(TASK)
    again.read(tmp_path / "experiments.csv")
    assert again.trials[-1].nodes == {"X": 1.7}
    assert campaign.tell(action, {"Y": 0.9}).nodes == {"X": 1.7, "Y": 0.9}
