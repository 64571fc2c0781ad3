"""The configurations composed without a command line are those of Hydra."""

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from rehearsal_torch.methods.hydra_config import CONF, composed, options


def by_hydra(*overrides):
    with initialize_config_dir(str(CONF.resolve()), version_base="1.3"):
        return OmegaConf.to_container(compose("config", list(overrides)), resolve=False)


def plain(config):
    return OmegaConf.to_container(config, resolve=False)


@pytest.mark.parametrize("decision", options("decision"))
def test_methods_are_composed_as_by_hydra(decision):
    assert plain(composed(decision=decision)) == by_hydra(f"decision={decision}")
    own = "own_table"
    assert plain(composed(own, decision=decision)) == by_hydra(f"+experiment={own}", f"decision={decision}")


@pytest.mark.parametrize("experiment", options("experiment"))
def test_experiments_are_composed_as_by_hydra(experiment):
    assert plain(composed(experiment)) == by_hydra(f"+experiment={experiment}")


@pytest.mark.parametrize(
    ("group", "option"),
    [
        (group, option)
        for group in ("surrogate", "objective", "search", "reward", "trainer")
        for option in options(group)
    ],
)
def test_options_are_composed_as_by_hydra(group, option):
    assert plain(composed(**{group: option})) == by_hydra(f"{group}={option}")
