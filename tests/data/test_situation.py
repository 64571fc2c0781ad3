import dataclasses
import json

import pytest
import torch

from rehearsal_torch.data.episode import Episode
from rehearsal_torch.data.situation import Foresight, Hindsight


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
    ahead = Foresight("7", {"age": torch.tensor(60.0), "doses": torch.tensor([1.0, 2.0])}, {"dose": (0.0, 1.0)})
    assert ahead.facts() == {"identity": "7", "given": {"age": 60.0, "doses": [1.0, 2.0]}}
    assert json.loads(json.dumps(ahead.facts())) == ahead.facts()
    assert Hindsight(Episode("42", ("a",), torch.zeros(2, 1))).facts() == {"identity": "42"}
