"""One contract over every search and objective: its defaults are those of its configuration file."""

import pytest
import yaml
from hydra.utils import get_object

from tests.defaults import off_defaults
from tests.places import CONF

# Settings that a file has otherwise on purpose: a variant of a class, and what a task cannot go without.
OTHERWISE = {
    "search/astar": {"anchors"},
    "search/cheapest_alteration": {"fallback"},
    "search/sobol_actions": {"sampling"},
    "objective/chance_cost": {"weights", "reference"},
    "objective/counterfactual_return": {"changes", "rules"},
}
VARIANTS = {"search/astar_published"}
# A file that refines another one has no class of its own.
FILES = [
    name
    for room in ("search", "objective")
    for file in sorted((CONF / room).glob("*.yaml"))
    for name in [f"{room}/{file.stem}"]
    if "_target_" in yaml.safe_load(file.read_text(encoding="utf-8")) and name not in VARIANTS
]


@pytest.mark.parametrize("name", FILES)
def test_the_defaults_are_those_of_the_configuration_and_the_seed_is_0(name):
    kind = get_object(yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))["_target_"])
    off = off_defaults(name, kind.for_sets if "for_sets" in vars(kind) else kind)
    seeds = {key for key, (default, value) in off.items() if default == 0 and "seed" in str(value)}
    assert set(off) - seeds == OTHERWISE.get(name, set())
