"""Doing nothing is an answer, with its reason."""

import json

from rehearsal_torch.search.search import NoAction
from tests.search.alterations.test_projected_ascent import bowl, candidate_sets, cases


def test_nothing_is_altered_in_any_situation():
    decisions = NoAction().batch_search(candidate_sets(cases(0.0, 1.0, 2.0), a=bowl))
    assert len(decisions) == 3
    for decision in decisions:
        assert decision.alteration is None
        assert decision.reason == "this method never acts"
        assert decision.trace == {"search": "none", "altered": []}
        assert json.loads(json.dumps(decision.to_dict(), allow_nan=False)) == decision.to_dict()
    assert NoAction()(candidate_sets(cases(0.0), a=bowl)).alteration is None
