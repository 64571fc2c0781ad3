"""Settings as they reach the configuration."""

import pytest

from rehearsal_torch.verbs.configured import configuration
from rehearsal_torch.verbs.methods import RequestError

EPISODES = ["decision=branch_and_bound"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "weights",
    [{"SOFA": -1.0, "GCS": 0.5}, {"mean BP": 1e-3}, {"a:b": 1, "c,d": -2}, {"x=1": 2, "(y)": 3}],
)
def test_mappings_arrive_as_they_were_given(weights):
    config = configuration(
        [*EPISODES, "reward=linear"], {"objective.reward.weights": weights}, ("objective",)
    )
    assert dict(config.objective.reward.weights) == weights


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["plain", "with blanks, and commas", "it's", "a\\b", "ends\\", "a\\'b", "null", "3", "{x: [1"],
)
def test_texts_arrive_as_they_were_given(text):
    config = configuration(["+experiment=own_table"], {"dataset.identity": text}, ("dataset",))
    assert config.dataset.identity == text


def test_values_keep_their_kind():
    given = {"search.budget_s": 2.5, "search.leaves": 100, "search.node_limit": None}
    config = configuration(EPISODES, given, ("search",))
    assert {f"search.{key}": config.search[key] for key in ("budget_s", "leaves", "node_limit")} == given
    listed = configuration(["+experiment=own_table"], {"surrogate.task": {"a": [True, None]}}, ("surrogate",))
    assert listed.surrogate.task == {"a": [True, None]}
    assert "hydra" not in config


def test_other_settings_are_refused():
    with pytest.raises(RequestError, match="'out' cannot be set here: expected settings of search"):
        configuration(EPISODES, {"out": "folder"}, ("search",))
    with pytest.raises(RequestError, match=r"search.leaves: expected a number, .*got a set"):
        configuration(EPISODES, {"search.leaves": {1}}, ("search",))
