import inspect

import pytest
import yaml

from rehearsal_torch.files.dotted import found_at
from rehearsal_torch.files.renamed_keys import (
    PARTS,
    RENAMED_ARGUMENTS,
    RENAMED_BY_CLASS,
    RENAMED_BY_ROOM,
    RENAMED_KEYS,
    current_arguments,
    current_key,
    current_settings,
)
from tests.places import CONF


@pytest.mark.parametrize("old", RENAMED_KEYS)
def test_keys_of_this_package_s_classes_alone_are_translated(old):
    group = old.partition(".")[0]
    ours, other = (
        {group: {"_target_": f"{home}.search.astar.AStar"}} for home in ("rehearsal_torch", "my_lab")
    )
    assert current_key(old, ours) == RENAMED_KEYS[old]
    assert current_key(old, other) == current_key(old, {}) == current_key(old, {group: None}) == old
    assert current_key("search.batch", ours) == "search.batch"


def test_a_key_belongs_to_the_innermost_class():
    old, new = "surrogate.estimator.directed_by", "surrogate.estimator.direction_rows"
    ours, other = "rehearsal_torch.surrogates.kernel.nested_ridge.NestedRidge", "my_lab.Mine"
    for outer, inner, expected in (
        (ours, ours, new),
        (other, ours, new),
        (ours, other, old),
        (other, other, old),
    ):
        config = {"surrogate": {"_target_": outer, "estimator": {"_target_": inner}}}
        assert current_key(old, config) == expected


def test_arguments_of_this_package_s_classes_alone_are_translated():
    for path, names in RENAMED_ARGUMENTS.items():
        parameters = inspect.signature(found_at(f"rehearsal_torch.{path}")).parameters
        for old, new in names.items():
            assert new in parameters
            assert old not in parameters
    node = {
        "_target_": "rehearsal_torch.surrogates.structural_posterior.StructuralPosterior",
        "borrowed": 2.0,
    }
    assert current_arguments(node) == {"_target_": node["_target_"], "prior_weight": 2.0}
    both = node | {"prior_weight": 1.0}
    assert current_arguments(both) == both
    other = {"_target_": "my_lab.StructuralPosterior", "borrowed": 2.0}
    assert current_arguments(other) == other
    assert current_arguments({"borrowed": 2.0}) == {"borrowed": 2.0}


def test_a_key_that_two_rooms_named_alike_is_translated_by_the_class():
    for (old, room), new in RENAMED_BY_ROOM.items():
        group = old.partition(".")[0]
        assert current_key(old, {group: {"_target_": f"rehearsal_torch.{room}.here.There"}}) == new
    trials = {"search": {"_target_": "rehearsal_torch.search.acquisition.AcquisitionSearch"}}
    assert current_key("search.glance", trials) == "search.screening_steps"


# Keys that came, in some worlds, when settings were nested already.
LATER = ("dataset.noise.weights", "dataset.noise.means", "dataset.noise.factors")


def written():
    """Each file of a world whose keys were renamed: its content, and the old and new keys."""
    for path in sorted((CONF / "dataset").glob("*.yaml")):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        renamed = RENAMED_BY_CLASS.get(content["_target_"].removeprefix("rehearsal_torch."))
        if renamed:
            yield pytest.param(content, renamed, id=path.stem)


def flat(content, prefix="dataset"):
    """Dotted key to value."""
    found = {}
    for name, value in content.items():
        found |= flat(value, f"{prefix}.{name}") if isinstance(value, dict) else {f"{prefix}.{name}": value}
    return found


def test_every_class_with_keys_of_its_own_history_is_there():
    for name in [*RENAMED_BY_CLASS, *PARTS.values()]:
        assert found_at(f"rehearsal_torch.{name}").__name__ == name.rpartition(".")[2]


@pytest.mark.parametrize(("content", "renamed"), list(written()))
def test_flat_settings_of_an_earlier_version_are_those_of_today(content, renamed):
    today = {
        key: value for key, value in flat(content).items() if key in renamed.values() or key not in LATER
    }
    assert set(renamed.values()) <= set(today), "every new key is there, and no old one is lost"
    old = {new: before for before, new in renamed.items()}
    earlier = {old.get(key, key): value for key, value in today.items()}
    parts = ("dataset.noise._target_", "dataset.size._target_")
    earlier = {key: value for key, value in earlier.items() if key not in parts}
    assert all(key.count(".") == 1 for key in earlier)
    nested = {"dataset": {key.removeprefix("dataset."): value for key, value in earlier.items()}}
    assert current_settings(earlier, nested) == today
    assert current_settings(today, {"dataset": content}) == today


def test_classes_of_ones_own_keep_their_keys():
    own = {"dataset._target_": "my_lab.my_world.MyWorld", "dataset.rows": 5, "dataset.sigma": 0.1}
    nested = {"dataset": {"_target_": "my_lab.my_world.MyWorld", "rows": 5, "sigma": 0.1}}
    assert current_settings(own, nested) == own
    table = {"dataset": {"_target_": "rehearsal_torch.problems.rehearsal.own_table.RehearsalTable"}}
    assert current_key("dataset.contexts", table) == "dataset.contexts"
    chemostat = {"dataset": {"_target_": "rehearsal_torch.datasets.chemostat.Chemostat"}}
    assert [current_key(f"dataset.{name}", chemostat) for name in ("sigma", "rows", "rounds")] == [
        "dataset.sigma",
        "dataset.rows",
        "dataset.size.rounds",
    ]
