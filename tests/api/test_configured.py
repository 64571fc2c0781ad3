"""Settings as they reach the configuration."""

import pytest

from rehearsal_torch.api.configured import OPTION, configuration
from rehearsal_torch.cli.validation import CONF

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


@pytest.mark.slow
def test_values_keep_their_kind():
    given = {"search.budget_s": 2.5, "search.leaves": 100, "search.node_limit": None}
    config = configuration(EPISODES, given, ("search",))
    assert {f"search.{key}": config.search[key] for key in ("budget_s", "leaves", "node_limit")} == given
    listed = configuration(["+experiment=own_table"], {"surrogate.task": {"a": [True, None]}}, ("surrogate",))
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
    config = configuration(["+experiment=own_table", "decision=cme_published"], given, groups)
    assert config.surrogate.estimator.solver == "cg"
    assert config.surrogate.estimator.rank == 7
    assert config.objective._target_.endswith(".KernelValue")
    assert config.search._target_.endswith(".SampledRefinement")
    assert config.trainer.accelerator == "gpu"


def test_the_names_of_all_options_are_read_without_quotes():
    options = [path.stem for path in CONF.glob("*/*.yaml")]
    assert options
    assert all(OPTION.fullmatch(name) for name in options)
