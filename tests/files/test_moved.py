from importlib import import_module

import pytest

from rehearsal_torch.files.dotted import defined_in, found_at
from rehearsal_torch.files.moved import MOVED, RENAMED_KEYS, current, current_key


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
