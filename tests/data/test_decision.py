import json

import torch

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.spaces.alteration import Alteration


def test_a_decision_is_plain_data_without_its_seconds():
    made = Decision(Alteration(("action[2]", "action[5]"), torch.tensor([3, 7])), -1.5, {"gap": 0.0, "actions": [1, 2]}, "why", seconds=3.0)
    assert json.loads(json.dumps(made.to_dict())) == {
        "alteration": {"action[2]": 3, "action[5]": 7},
        "value": -1.5,
        "reason": "why",
        "gap": 0.0,
        "actions": [1, 2],
    }


def test_refusing_is_an_answer():
    refused = Decision(None, 0.0, reason="nothing is better")
    assert refused.to_dict() == {"alteration": None, "value": 0.0, "reason": "nothing is better"}
    assert refused.evidence == {}
