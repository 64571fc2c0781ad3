import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal_torch.objectives.step_reward import Doses, LinearReward

NAMES = ("MeanBP", "SOFA", "GCS")


def test_minus_sofa():
    reward = LinearReward({"SOFA": -1})
    assert not reward.acts
    assert reward(torch.tensor([[70.0, 9.0, 15.0], [65.0, 4.0, 14.0]]), NAMES).tolist() == [[-9], [-4]]
    assert reward(torch.zeros(2, 5, 3), NAMES).shape == (2, 5, 1)


@given(
    weights=st.tuples(st.floats(-3, 3), st.floats(-3, 3)),
    slopes=st.lists(st.floats(0.1, 50), min_size=3, max_size=3),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_the_constant_holds_in_coordinates_and_is_reached(
    weights: tuple[float, float], slopes: list[float], seed: int
):
    reward = LinearReward({"GCS": weights[0], "MeanBP": weights[1]})
    slope = torch.tensor(slopes, dtype=torch.float64)
    constant = reward.lipschitz(NAMES, slope)
    here, there = torch.randn(2, 30, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    apart = (reward(here * slope, NAMES) - reward(there * slope, NAMES)).abs()[:, 0]
    assert (apart <= constant * (here - there).norm(dim=-1) + 1e-9).all()
    steepest = reward.gradient(NAMES, slope)
    assert reward(steepest * slope, NAMES).item() == pytest.approx(
        constant * steepest.norm().item(), abs=1e-9
    )
    assert steepest[1] == 0


def test_a_logarithm_leaves_no_constant():
    assert LinearReward({"SOFA": -1}).lipschitz(NAMES, torch.tensor([1.0, torch.inf, 1.0])) == float("inf")
    assert LinearReward({"SOFA": -1}).lipschitz(NAMES, torch.tensor([torch.inf, 2.0, 1.0])) == 2.0


def test_rewards_of_nothing_or_of_unknown_variables_are_refused():
    with pytest.raises(KeyError, match="no column"):
        LinearReward({"lactate": 1})(torch.zeros(1, 3), NAMES)


def test_a_linear_reward_is_largest_at_the_better_end_of_each_variable() -> None:
    reward = LinearReward({"a": 2.0, "c": -1.0})
    lower, upper = torch.tensor([[0.0, 5.0, -1.0]]), torch.tensor([[1.0, 6.0, 3.0]])
    assert reward.highest(lower, upper, ("a", "b", "c")).tolist() == [[3.0]]
    assert reward.highest(lower, lower, ("a", "b", "c")).tolist() == reward(lower, ("a", "b", "c")).tolist()
    small = LinearReward({"a": 0.5, "c": -0.5})
    assert small.highest(lower, upper, ("a", "b", "c")).tolist() == [[1.0]]
    assert (small.related(), small.reads, small.reads_doses) == ({}, ("a", "c"), ())


def test_the_published_reward_is_minus_sofa_and_doses_are_found_by_name() -> None:
    assert LinearReward().weights == {"SOFA": -1.0}
    doses = Doses(("vaso", "fluid"), torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]))
    assert doses.column("fluid").tolist() == [[2.0, 4.0, 6.0]]
