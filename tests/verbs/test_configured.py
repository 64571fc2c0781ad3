"""Settings as they reach the configuration."""

import re

import pytest

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.validation import CONF
from rehearsal_torch.verbs.configured import OPTION, configuration
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


@pytest.mark.slow
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


@pytest.mark.parametrize("option", ["nested_ridge_cg", "it's", "a,b", "${seed}", "../x", "null", "3", ""])
def test_groups_without_such_an_option_say_so_without_quotes_in_quotes(option):
    with pytest.raises(UserError, match=re.escape(f"there is no search called {option!r}")):
        configuration(["+experiment=own_table"], {"search": option}, ("search",))


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
    assert config.surrogate.estimator._target_.endswith(".IterativeRidge")
    assert config.surrogate.estimator.rank == 7
    assert config.objective._target_.endswith(".KernelValue")
    assert config.search._target_.endswith(".SampledRefinement")
    assert config.trainer.accelerator == "gpu"


def test_another_data_set_is_refused_since_the_rows_are_given():
    with pytest.raises(RequestError, match="'dataset' cannot be chosen here: the rows are an argument"):
        configuration(["+experiment=own_table"], {"dataset": "bank"}, ("dataset",))


def test_the_names_of_all_options_are_read_without_quotes():
    options = [path.stem for path in CONF.glob("*/*.yaml")]
    assert options
    assert all(OPTION.fullmatch(name) for name in options)
