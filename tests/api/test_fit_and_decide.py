"""Settings as they reach the configuration."""

import pytest

from rehearsal_torch.api.fit_and_decide import configuration

EPISODES = "branch_and_bound"


@pytest.mark.parametrize(
    "weights", [{"SOFA": -1.0, "GCS": 0.5}, {"mean BP": 1e-3}, {"a:b": 1, "c,d": -2}, {"x=1": 2, "(y)": 3}]
)
def test_mappings_arrive_as_they_were_given(weights):
    config = configuration(EPISODES, {"objective.reward.weights": weights}, ("objective",), reward="linear")
    assert dict(config.objective.reward.weights) == weights


@pytest.mark.parametrize(
    "text", ["plain", "with blanks, and commas", "it's", "a\\b", "ends\\", "a\\'b", "null", "3", "{x: [1"]
)
def test_texts_arrive_as_they_were_given(text):
    config = configuration("cme", {"dataset.identity": text}, ("dataset",), experiment="own_table")
    assert config.dataset.identity == text


def test_values_keep_their_kind():
    given = {"search.budget_s": 2.5, "search.leaves": 100, "search.node_limit": None}
    config = configuration(EPISODES, given, ("search",))
    assert {f"search.{key}": config.search[key] for key in ("budget_s", "leaves", "node_limit")} == given
    settings = {"surrogate.task": {"a": [True, None]}}
    listed = configuration("cme", settings, ("surrogate",), experiment="own_table")
    assert listed.surrogate.task == {"a": [True, None]}
    assert "hydra" not in config


def test_options_of_groups_are_chosen_by_name():
    given = {
        "surrogate": "nested_ridge_cg",
        "objective": "kernel_value",
        "search": "sampled_refinement",
        "trainer": "gpu",
        "surrogate.estimator.rank": 7,
    }
    groups = ("surrogate", "objective", "search", "trainer")
    config = configuration("cme_published", given, groups, experiment="own_table")
    assert config.surrogate.estimator.solver == "cg"
    assert config.surrogate.estimator.rank == 7
    assert config.objective._target_.endswith(".KernelValue")
    assert config.search._target_.endswith(".SampledRefinement")
    assert config.trainer.accelerator == "gpu"
