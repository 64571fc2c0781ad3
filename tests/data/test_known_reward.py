import pytest
import torch

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import FunctionReward, TargetError, TwoRewards, WeightedSum
from rehearsal_torch.data.problem_file.diagnostics import TaskError

VALUES = torch.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=torch.float64)


@pytest.mark.parametrize(("mean", "expected"), [(True, [-2.5, -2.5]), (False, [-5.0, -5.0])])
def test_the_distance_to_a_target(mean, expected):
    # Squares: (1 - 2)^2 + (2 - 0)^2, (3 - 2)^2... around targets (2, 0) and their mirror images.
    reward = TargetError({"x": 2.0, "y": 0.0}, mean)
    assert reward(torch.tensor([[1.0, 2.0], [3.0, -2.0]], dtype=torch.float64)).tolist() == expected


def test_a_function_is_applied_and_written_nowhere():
    reward = FunctionReward(("x", "y"), lambda values: values.prod(-1))
    assert reward(VALUES).tolist() == [2.0, -3.0]
    with pytest.raises(ValueError, match="use weights or targets, or keep the model in Python"):
        reward.to_plain()


def test_two_rewards_are_a_pair_and_written_as_their_weights():
    reward = TwoRewards((WeightedSum({"x": 1}), WeightedSum({"y": -0.5, "x": 2})))
    assert reward.labels == ("x", "-0.5*y + 2*x")
    assert reward.both(VALUES).tolist() == [[1.0, 1.0], [3.0, 6.5]]
    assert reward(VALUES).tolist() == [2.0, 9.5]
    plain = {"graph": "a -> x; a -> y", "actions": {"a": [0, 1]}, "reward": ["x", "2*x - 0.5*y"]}
    task = CausalTask.of(plain)
    assert task.reward.both(VALUES).equal(reward.both(VALUES))
    assert CausalTask.of(task.to_plain()) == task
    for wrong in (["x"], ["x", "x"], ["x", "z"], ["x", "y", "x"]):
        with pytest.raises(TaskError):
            CausalTask.of({**plain, "reward": wrong})
