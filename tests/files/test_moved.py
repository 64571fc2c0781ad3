from importlib import import_module

import pytest

from rehearsal_torch.files.dotted import defined_in, found_at
from rehearsal_torch.files.moved import MOVED, RENAMED_CLASSES, current
from rehearsal_torch.files.renamed_keys import (
    RENAMED_CHOICES,
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


def test_classes_and_files_of_conf_with_another_name_today_are_there():
    for old, new in RENAMED_CLASSES.items():
        assert found_at(f"rehearsal_torch.{new}").__name__ == new.rpartition(".")[2]
        assert current(f"rehearsal_torch.{old}") == f"rehearsal_torch.{new}"
    for old, new in RENAMED_CHOICES.items():
        group, _, name = new.partition("=")
        assert (CONF / group / f"{name}.yaml").exists()
        assert not (CONF / group / f"{old.partition('=')[2]}.yaml").exists()
