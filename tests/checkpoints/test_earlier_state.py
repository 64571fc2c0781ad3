"""Checkpoints whose tensors have the names of earlier versions load, and hold the same numbers."""

import hashlib

import pytest
import torch
import yaml
from hydra.utils import instantiate
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of

import rehearsal_torch as rt
from rehearsal_torch.checkpoint import CheckpointError, save
from rehearsal_torch.data.part import Part
from rehearsal_torch.files.dotted import found_at
from rehearsal_torch.files.renamed_fields import RENAMED_STATE, renamed_state
from rehearsal_torch.surrogates.derived_state import source_names
from rehearsal_torch.training.fit import fit
from tests.places import ROOT
from tests.toys.linear_truth import chain
from tests.toys.rehearsal_methods import plain

WORLD = chain()


def earlier(surrogate, state):
    """The state under the names of earlier versions, and the classes that had others."""
    found, classes = dict(state), set()
    # The innermost parts first, so that the paths of the outer ones still hold.
    for path, part in reversed(list(surrogate.named_modules())):
        begin = f"{path}." if path else ""
        for old, new in renamed_state(type(part)).items():
            for name in list(found):
                if f"{name}.".startswith(f"{begin}{new}."):
                    found[begin + old + name.removeprefix(begin + new)] = found.pop(name)
                    classes.add(type(part))
    return found, classes


def write(folder, state):
    weights = bytes_of({name: value.clone() for name, value in state.items()})
    (folder / "weights.safetensors").write_bytes(weights)
    (folder / "card.yaml").write_text(yaml.safe_dump({"weights_sha256": hashlib.sha256(weights).hexdigest()}))


@pytest.fixture
def kept(tmp_path):
    """Fits a surrogate of conf and saves it."""

    def made(name, **settings):
        config = plain(name, WORLD.task) | settings
        fitted = fit(instantiate(config, _convert_="all"), WORLD.table(60))
        return fitted, save(fitted, config, tmp_path / name)

    return made


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("nested_ridge", {}),
        ("structural_posterior", {}),
        ("structural_posterior", {"regression": "ridge"}),
        ("drifting_linear", {}),
    ],
)
def test_tensors_of_earlier_versions_are_read(kept, name, settings):
    fitted, folder = kept(name, **settings)
    # Derived tensors were written, and what they are computed from was not.
    sources = source_names(fitted)
    state = {key: value for key, value in fitted.state_dict().items() if key not in sources}
    old, classes = earlier(fitted, state)
    assert classes
    assert set(old) != set(state)
    write(folder, old)
    found = rt.load(folder).state_dict()
    assert set(found) == {*state, *sources}
    assert not any(found[key].numel() for key in sources)
    assert all(torch.equal(found[key], value) for key, value in state.items())


def test_a_tensor_under_both_names_is_refused(kept):
    fitted, folder = kept("drifting_linear")
    state = tensors_of((folder / "weights.safetensors").read_bytes())
    write(folder, state | earlier(fitted, state)[0])
    with pytest.raises(CheckpointError, match="Unexpected key"):
        rt.load(folder)


def test_every_name_of_today_is_that_of_a_tensor_or_a_part():
    for path, names in RENAMED_STATE.items():
        kind = found_at(f"rehearsal_torch.{path}")
        assert renamed_state(kind) == names
        assert renamed_state(type("Mine", (kind,), {})) == names, "classes that inherit from it have them too"
        assert not set(names) & set(names.values())
    assert renamed_state(Part) == {}


def test_the_state_of_shipped_checkpoints_has_the_names_of_today():
    for name in ("loan", "two_stores", "dropwave", "sepsis"):
        surrogate = rt.load(ROOT / "checkpoints" / name)
        before = {
            f"{path}.{old}".lstrip(".")
            for path, part in surrogate.named_modules()
            for old in renamed_state(type(part))
        }
        assert not [
            key for key in surrogate.state_dict() if any(f"{key}.".startswith(f"{old}.") for old in before)
        ]
