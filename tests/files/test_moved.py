from importlib import import_module

import pytest

from rehearsal_torch.files.dotted import defined_in, found_at
from rehearsal_torch.files.moved import (
    MOVED,
    RENAMED_BY_ROOM,
    RENAMED_CHOICES,
    RENAMED_CLASSES,
    RENAMED_KEYS,
    current,
    current_key,
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
