"""Changes that gain nothing are undone: whole actions and single doses, within a tolerance."""

import pytest
import torch
from torch import Tensor

from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.search.budget import Budget
from rehearsal_torch.search.sequences.decision_process import Effort, sequence_decision
from rehearsal_torch.search.sequences.nearest import nearest
from tests.toys.episodes import KnownTruth, TwoDoses, idle_dose_episode

OBSERVED = [1, 5, 2, 4]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([6, 5, 2, 4], [7, 5, 2, 4]),
        ([6, 6, 2, 4], [7, 8, 2, 4]),
        ([1, 5, 0, 4], OBSERVED),
        ([8, 3, 0, 4], [7, 5, 2, 4]),
        (OBSERVED, OBSERVED),
    ],
)
def test_what_gains_nothing_is_undone(found: list[int], expected: list[int]) -> None:
    objective = idle_dose_episode(3)
    sequence, fall = nearest(objective, torch.tensor(found), 1e-9)
    assert sequence.tolist() == expected
    assert fall == pytest.approx(0.0, abs=1e-9)


def test_an_action_that_may_not_be_chosen_is_not_taken() -> None:
    objective = idle_dose_episode()
    objective.__dict__["choices"] = objective.choices.clone()
    objective.choices[0, 7] = False
    assert nearest(objective, torch.tensor([6, 5, 2, 4]), 1e-9)[0].tolist() == [6, 5, 2, 4]


def test_small_falls_do_not_add_up_beyond_the_tolerance() -> None:
    objective = idle_dose_episode(3)
    worth = [float(objective(torch.tensor([*OBSERVED[:step], 6, *OBSERVED[step + 1 :]]))) for step in (1, 2)]
    gains = [value - objective.outcome() for value in worth]
    equal = 1.01 * max(gains)
    sequence, fall = nearest(objective, torch.tensor([1, 8, 8, 4]), equal)
    assert abs(fall) <= equal
    assert int((sequence != objective.observed).sum()) == 1


def test_a_step_back_that_gains_is_not_taken() -> None:
    # Without the first dose the return is lower: undoing this change would be better than the answer.
    objective = idle_dose_episode()
    assert nearest(objective, torch.tensor([1, 2, 2, 4]), 1e-9)[0].tolist() == [1, 2, 2, 4]


def test_a_gap_covers_what_the_answer_gives_away() -> None:
    objective, found = idle_dose_episode(3), torch.tensor([7, 5, 8, 4])
    gain = float(objective(found)) - float(objective(torch.tensor([7, 5, 2, 4])))
    made = sequence_decision(
        objective, found, Effort(), Budget(), search="own", gap=5.0 * gain, equal=1.01 * gain
    )
    assert objective.sequence(made).tolist() == [7, 5, 2, 4]
    assert made.trace["gap"] == pytest.approx(6.0 * gain)
    proven = sequence_decision(objective, found, Effort(), Budget(), search="own", gap=0.0, equal=1.01 * gain)
    assert proven.trace["proven"]
    kept = sequence_decision(objective, found, Effort(), Budget(), search="own", gap=None)
    assert objective.sequence(kept).tolist() == found.tolist()


class Disagreeing(TwoDoses):
    """Two members, of which one sees x0 + x1 and the other one x0 - x1. Where the first dose is 2, x1 rises
    by 9, unless the second dose is 0.
    """

    def __init__(self) -> None:
        super().__init__()
        plain = self.map
        rise = torch.tensor([[0.0] * 9, [0.0] * 7 + [9.0] * 2], dtype=torch.float64).T
        self.map = lambda x, a: plain(x, a) * x.new_tensor([1.0, 0.0]) + rise[a]

    @property
    def members(self) -> int:
        return 2

    def member_units(self, states: Tensor) -> Tensor:
        first, second = states.unsqueeze(-2).unbind(-1)
        seen = first + states.new_tensor([1.0, -1.0]) * second
        return torch.stack([seen, second.expand_as(seen)], -1)


@pytest.mark.parametrize(("agreement", "expected"), [("all", 6), ("none", 7)])
def test_the_agreement_of_members_is_kept(agreement: str, expected: int) -> None:
    model = Disagreeing()
    states = torch.randn(3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    case = EpisodeCase(model.episode("apart", states, torch.tensor([1, 4, 1])))
    objective = CounterfactualReturn(model, case, LinearReward({"x0": -1.0}), 2, agreement=agreement)
    assert nearest(objective, torch.tensor([6, 4]), 1e-9)[0].tolist() == [expected, 4]


def test_one_model_alone_may_lose_its_gain_within_the_tolerance() -> None:
    """Of 3 a_0 + 2 a_1 + a_2, with amounts -1, 1.5 and 1, the last one is all that is gained."""
    amounts = torch.tensor([0.0, 1.0, -1.0, 1.5], dtype=torch.float64)
    model = KnownTruth(1, 4, lambda x, a: x + amounts[a].unsqueeze(-1), 1.0)
    episode = model.episode("amounts", torch.zeros(4, 1, dtype=torch.float64), torch.zeros(4).long())
    objective = CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": 1.0}), 3)
    sequence, fall = nearest(objective, torch.tensor([2, 3, 1]), 1.0)
    assert (sequence.tolist(), fall) == ([2, 3, 0], 1.0)
    assert nearest(objective, torch.tensor([2, 3, 1]), 0.99)[0].tolist() == [2, 3, 1]
