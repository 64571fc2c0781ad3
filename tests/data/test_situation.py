import dataclasses
import json

import pytest
import torch

from rehearsal_torch.data.decision import Foresight, Hindsight
from rehearsal_torch.data.episode import Episode
from rehearsal_torch.spaces.box import Alteration


def test_hindsight_is_called_as_its_episode_and_fixes_nothing_by_default():
    known = Hindsight(Episode("42", ("a",), torch.zeros(2, 1)))
    assert known.identity == "42"
    assert len(known.fixed) == 0
    assert known.fixed.dtype == torch.bool
    with pytest.raises(dataclasses.FrozenInstanceError):
        known.episode = known.episode


def test_two_situations_do_not_share_their_default():
    first, second = (Hindsight(Episode(name, ("a",), torch.zeros(2, 1))) for name in "ab")
    assert first.fixed is not second.fixed


def test_foresight_names_what_is_known_and_what_may_be_set():
    ahead = Foresight("7", {"age": torch.tensor(60.0)}, {"dose": (0.0, 1.0)})
    assert ahead.identity == "7"
    assert ahead.feasible["dose"] == (0.0, 1.0)


def test_facts_are_plain_and_say_what_was_known():
    ahead = Foresight(
        "7", {"age": torch.tensor(60.0), "doses": torch.tensor([1.0, 2.0])}, {"dose": (0.0, 1.0)}
    )
    assert ahead.facts() == {"identity": "7", "given": {"age": 60.0, "doses": [1.0, 2.0]}}
    assert json.loads(json.dumps(ahead.facts())) == ahead.facts()
    assert Hindsight(Episode("42", ("a",), torch.zeros(2, 1))).facts() == {"identity": "42"}


@pytest.mark.parametrize(
    ("given", "feasible", "message"),
    [
        ({"age": torch.tensor(float("nan"))}, {}, r"7: \['age'\] are missing or infinite"),
        ({"age": torch.tensor([60.0, float("inf")])}, {}, r"7: \['age'\] are missing or infinite"),
        ({}, {"dose": (1.0, 0.0)}, r"7: dose may be set within \[1, 0\]: expected lower <= upper"),
        ({}, {"dose": (float("nan"), 1.0)}, "expected lower <= upper"),
    ],
)
def test_a_situation_that_cannot_be_is_refused(given, feasible, message):
    with pytest.raises(ValueError, match=message):
        Foresight("7", given, feasible)


def test_alterations_are_checked_against_what_may_be_set():
    ahead = Foresight("7", {}, {"dose": (0.0, 1.0), "time": (-float("inf"), 2.0)})
    ahead.check(None)
    ahead.check(Alteration(("dose", "time"), torch.tensor([[0.0, -1e6], [1.0, 2.0]])))
    ahead.check(Alteration(("dose",), torch.tensor([1.0 + 1e-7])))
    for names, values, message in (
        (("dose",), [1.01], r"dose may be set within \[0, 1\]; got 1.01"),
        (("time", "dose"), [2.5, 0.5], r"time may be set within \[-inf, 2\]"),
        (("dose",), [float("nan")], "got nan"),
        (("mood",), [0.5], r"mood may not be set; feasible are \['dose', 'time'\]"),
    ):
        with pytest.raises(ValueError, match=message):
            ahead.check(Alteration(names, torch.tensor(values, dtype=torch.float64)))
