"""The decision to which a sequence amounts: its values, its reasons, and what is said where it loses."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from rehearsal_torch.data.decision import Decision, EpisodeCase
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.reward import LinearReward
from rehearsal_torch.search.budget import Budget
from rehearsal_torch.search.sequences.decision_process import (
    NONE_FOUND,
    PROVEN_BEST,
    Effort,
    branching_factor,
    sequence_decision,
)
from tests.toys.episodes import KnownTruth

LOSS = "by the model's own estimate no better than the observed actions"


def added(x: Tensor, a: Tensor) -> Tensor:
    """Action 1 adds 1, action 2 takes 1 away, action 3 is undefined."""
    return x + torch.tensor([0.0, 1.0, -1.0, torch.nan], dtype=torch.float64)[a].unsqueeze(-1)


def whole_numbers(map_: Callable[[Tensor, Tensor], Tensor] = added, changes: int = 3) -> CounterfactualReturn:
    """Four states of 0, whose sum is the return: the first change counts three times, the last one once."""
    model = KnownTruth(1, 4, map_, 1.0)
    episode = model.episode("whole", torch.zeros(4, 1, dtype=torch.float64), torch.zeros(4).long())
    return CounterfactualReturn(model, EpisodeCase(episode), LinearReward({"x0": 1.0}), changes)


def decided(sequence: list[int], gap: float | None = None, effort: Effort | None = None, **rest) -> Decision:
    return sequence_decision(
        whole_numbers(), torch.tensor(sequence), effort or Effort(), Budget(), search="own", gap=gap, **rest
    )


def test_a_gain_is_recommended_with_its_doses_and_its_effort() -> None:
    decision = decided([1, 0, 1], gap=0.5, effort=Effort(9, 20, 33), depth=7)
    assert (decision.status, decision.reason, decision.warnings) == ("recommended", "", ())
    assert (decision.value, decision.estimate.point, decision.baseline.point) == (4.0, 4.0, 0.0)
    assert decision.actions() == {0: 1, 2: 1}
    assert decision.doses == {"action[0]": (1.0,), "action[2]": (1.0,)}
    assert decision.trace == {
        "search": "own",
        "expanded": 9,
        "generated": 20,
        "network_evaluations": 33,
        "effective_branching_factor": branching_factor(9, 4),
        "gap": 0.5,
        "proven": False,
        "depth": 7,
    }


@pytest.mark.parametrize("sequence", [[2, 0, 0], [1, 2, 2]])
def test_no_gain_is_declined_or_warned_of(sequence: list[int]) -> None:
    """The second one returns what was returned."""
    value = float(whole_numbers()(torch.tensor(sequence)))
    declined = decided(sequence)
    assert (declined.status, declined.alteration, declined.value) == ("no_action", None, 0.0)
    assert declined.reason == f"{LOSS} ({value:g} against 0)"
    assert declined.estimate.point == declined.baseline.point == 0.0
    assert decided(sequence, reason="told").reason == "told"
    made = decided(sequence, declines=False)
    assert (made.status, made.value, made.reason) == ("recommended", value, "")
    assert made.warnings == (f"{LOSS} ({value:g} against 0)",)
    assert made.estimate.point == value


def test_an_undefined_return_is_refused() -> None:
    for declines in (True, False):
        decision = decided([1, 3, 0], declines=declines, reason="told")
        assert (decision.status, decision.alteration, decision.estimate) == ("refused", None, None)
        assert decision.reason == "the best sequence found has the return nan: the model is undefined there"
        assert decision.baseline.point == 0.0
        assert decision.doses == {}


def test_the_reason_says_what_is_known_of_other_sequences() -> None:
    assert decided([0, 0, 0], gap=0.0).reason == PROVEN_BEST
    assert decided([0, 0, 0], gap=0.0).trace["proven"] is True
    assert decided([0, 0, 0], gap=None).reason == NONE_FOUND
    assert decided([0, 0, 0], gap=None).trace["proven"] is False
    assert decided([0, 0, 0], by_hand=True).reason == ""
    assert decided([1, 0, 0], by_hand=True, reason="told").reason == "told"


@pytest.mark.parametrize(
    ("gap", "expected"), [(None, None), (0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (1.5, 2.5), (7.0, 8.0)]
)
def test_the_gap_grows_by_what_is_undone_and_is_none_up_to_what_counts_as_equal(gap, expected) -> None:
    # The last change gains 1, which is undone where returns count as equal up to 2.
    decision = decided([1, 1, 1], gap=gap, equal=1.0)
    assert decision.actions() == {0: 1, 1: 1}
    decision = decided([0, 0, 1], gap=gap, equal=2.0)
    assert decision.trace["gap"] == expected
    assert decision.trace["proven"] == (expected == 0.0)
    assert decision.reason == (PROVEN_BEST if expected == 0.0 else NONE_FOUND)


def test_changes_that_gain_nothing_stay_where_no_tolerance_is_given() -> None:
    assert decided([1, 1, 2]).actions() == {0: 1, 1: 1, 2: 2}
    assert decided([1, 2, 1], equal=0.0).actions() == {0: 1, 1: 2, 2: 1}


def test_an_action_of_the_same_doses_is_what_was_done() -> None:
    objective = whole_numbers()
    objective.surrogate.doses = lambda actions: (actions // 2).unsqueeze(-1).double()  # type: ignore[method-assign]
    made = sequence_decision(
        objective, torch.tensor([1, 1, 0]), Effort(), Budget(), search="own", gap=None, declines=False
    )
    assert (made.alteration, made.value, made.reason) == (None, 0.0, NONE_FOUND)


def test_a_budget_that_ran_out_is_named_in_the_trace() -> None:
    budget = Budget(1e-9)
    assert budget.out()
    made = sequence_decision(
        whole_numbers(), torch.tensor([1, 0, 0]), Effort(), budget, search="own", gap=0.5
    )
    assert made.trace["stopped"] == "stopped after budget_s=1e-09"
    assert made.seconds > 0
