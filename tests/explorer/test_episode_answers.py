"""What is said of the proof of a sequence, and of a sequence that was put together by hand."""

from dataclasses import replace

import pytest
import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.explorer.episode_answers import optimality, sequence_answer
from rehearsal_torch.reporting.page.material import shown
from rehearsal_torch.reporting.style import Wording
from rehearsal_torch.search.budget import Budget
from rehearsal_torch.search.sequences.decision_process import Effort, sequence_decision
from rehearsal_torch.spaces.box import Alteration
from tests.toys.episodes import transition_episode

UNKNOWN = (
    "The best found, not proven: how much better another one with at most 2 changed actions may be is not "
    "known."
)
POINTS = Wording("SOFA", -1.0, "points")


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (
            {"gap": 0.0, "proven": True},
            "Proven: by this model, no other sequence with at most 2 changed actions is better.",
        ),
        (
            {"gap": 1.25, "proven": False, "stopped": "stopped after budget_s=5"},
            "The best found, not proven: another one with at most 2 changed actions may be better, by 1.25 "
            "points at most. Why: the search stopped at its time limit of 5 s.",
        ),
        (
            {"gap": None, "proven": False, "stopped": "stopped after budget_s=1e-05; no gap is known"},
            f"{UNKNOWN} Why: the search stopped at its time limit of 1e-05 s.",
        ),
        (
            {"gap": float("inf"), "stopped": "stopped after node_limit=3 expanded nodes"},
            f"{UNKNOWN} Why: stopped after node_limit=3 expanded nodes.",
        ),
        (
            {},
            UNKNOWN,
        ),
    ],
)
def test_the_state_of_the_proof_is_a_sentence(trace, said):
    found = Decision(None, 0.0, status="no_action", reason="no change is better", trace=trace)
    assert optimality(found, 2, POINTS) == said
    assert optimality(replace(found, status="refused"), 2, POINTS) == "", "what was withdrawn is not proven"


def test_a_search_that_gave_up_says_why():
    made = Alteration(("action[0]",), torch.tensor([1]))
    reason = "its 354,521 sets of time steps are more than sets=200,000"
    found = Decision(made, 0.0, reason=reason, trace={"gap": 2.5, "proven": False})
    assert optimality(found, 2, Wording()) == (
        "The best found, not proven: another one with at most 2 changed actions may be better, by 2.5 at "
        f"most. Why: {reason}."
    )


def test_a_withheld_gap_has_no_number():
    said = optimality(Decision(None, 0.0, status="no_action", trace={"gap": 1.25}), 1, POINTS, hidden=True)
    assert said == "The best found, not proven: another one with at most 1 changed action may be better."


def test_a_sequence_by_hand_has_its_own_headline_and_no_proof():
    one = transition_episode(3, horizon=5, changes=1)
    sequence = one.observed.clone()
    sequence[2] = one.candidate_actions(2)[0]
    made = sequence_decision(one, sequence, Effort(), Budget(), search="by hand", gap=None, declines=False)
    one.surrogate.rescale.lower.fill_(-1e6)
    one.surrogate.rescale.upper.fill_(1e6)
    found = sequence_answer(one, made, POINTS, searched=False)
    assert found["headline"] == "Your own sequence: 1 of 4 actions changed."
    assert (found["changed"], found["state"], found["gap"], found["range"]) == ([2], "", None, None)
    with torch.no_grad():
        assert found["value"] == -float(one(sequence))
    assert found["observed"] == -one.outcome()
    given = one.case.episode.columns(["drug0"])[2]
    set_to = one.surrogate.doses(sequence[2])
    assert f" from {shown(float(given))} to {shown(float(set_to))}." in found["said"][0], (
        "not that of a level"
    )
