import inspect
from importlib import import_module

import pytest
import yaml

from rehearsal_torch.files.dotted import defined_in, found_at
from rehearsal_torch.files.moved import (
    MOVED,
    PARTS,
    RENAMED_BY_CLASS,
    RENAMED_ARGUMENTS,
    RENAMED_BY_ROOM,
    RENAMED_CHOICES,
    RENAMED_CLASSES,
    RENAMED_FIELDS,
    RENAMED_KEYS,
    current,
    current_arguments,
    current_cell,
    current_fields,
    current_key,
    current_settings,
)
from tests.places import CONF


def test_every_path_of_an_earlier_version_leads_to_a_module_of_today():
    for old, new in MOVED.items():
        assert old != new
        assert import_module(f"rehearsal_torch.{new}")
        with pytest.raises(ImportError):
            import_module(f"rehearsal_torch.{old}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rehearsal_torch.search.astar.AStar", "rehearsal_torch.search.sequences.astar.AStar"),
        (
            "rehearsal_torch.networks.lipschitz.Lipschitz",
            "rehearsal_torch.mechanisms.lipschitz_network.Lipschitz",
        ),
        (
            "rehearsal_torch.search.tanh_descent.TanhDescent",
            "rehearsal_torch.search.alterations.adam_in_box.AdamInBox",
        ),
        ("rehearsal_torch.search.search.Refrain", "rehearsal_torch.search.search.NoAction"),
        ("rehearsal_torch.surrogates.transition.TransitionModel",) * 2,
        ("search.astar.AStar",) * 2,
        ("my_lab.search.astar.AStar",) * 2,
        ("",) * 2,
    ],
)
def test_only_paths_of_this_package_are_translated(old, new):
    assert current(old) == new


def test_what_an_earlier_version_named_is_found():
    named = "rehearsal_torch.search.astar.AStar"
    assert defined_in(named, ["rehearsal_torch.search"]) is found_at(named)
    assert found_at(named).__module__ == "rehearsal_torch.search.sequences.astar"
    assert defined_in(named, ["rehearsal_torch.problems"]) is None


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


def test_classes_and_files_of_conf_with_another_name_today_are_there():
    for old, new in RENAMED_CLASSES.items():
        assert found_at(f"rehearsal_torch.{new}").__name__ == new.rpartition(".")[2]
        assert current(f"rehearsal_torch.{old}") == f"rehearsal_torch.{new}"
    for old, new in RENAMED_CHOICES.items():
        group, _, name = new.partition("=")
        assert (CONF / group / f"{name}.yaml").exists()
        assert not (CONF / group / f"{old.partition('=')[2]}.yaml").exists()


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
    today = flat(content)
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


def test_fields_of_earlier_versions_are_translated_where_they_stand():
    before = {
        "trace": {"search": "x", "believed": 1.0, "pushes": [0.5], "steps": 3},
        "score": {"brier_untouched": 0.25, "believed": 2.0},
        "believed": 3.0,
    }
    after = current_fields(before, RENAMED_FIELDS)
    assert after == {
        "trace": {"search": "x", "predicted_reward": 1.0, "perturbations": [0.5], "steps": 3},
        "score": {"brier_no_action": 0.25, "believed": 2.0},
        "believed": 3.0,
    }
    assert list(after["trace"]) == ["search", "predicted_reward", "perturbations", "steps"]
    assert before["trace"]["believed"] == 1.0, "the original is unchanged"


def test_any_name_may_stand_where_the_table_has_a_star():
    table = {"a.*.old": "a.*.new", "a.b.other": "a.b.another"}
    content = {"a": {"b": {"old": 1, "other": 2}, "c": {"old": 3, "other": 4}, "old": 5}}
    assert current_fields(content, table) == {
        "a": {"b": {"new": 1, "another": 2}, "c": {"new": 3, "other": 4}, "old": 5}
    }


def test_what_is_no_mapping_or_has_both_names_stays():
    assert current_fields({"trace": None, "score": [1]}, RENAMED_FIELDS) == {"trace": None, "score": [1]}
    both = {"trace": {"believed": 1, "predicted_reward": 2}}
    assert current_fields(both, RENAMED_FIELDS) == both


def test_cells_are_translated_in_their_own_column():
    assert current_cell("estimator", "observed course") == "observed trajectory"
    assert current_cell("name", "observed course") == "observed course"
    assert current_cell("quantity", "mean") == "mean"
