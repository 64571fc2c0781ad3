"""Checkpoints: saved, loaded, equal; and nothing from the folder is ever run."""

import pickle
from functools import partial
from pathlib import Path

import pytest
import torch
import yaml

import rehearsal_torch as rt
from rehearsal_torch.checkpoint import CheckpointError, card, load, save
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.surrogates.transition import TransitionModel

COLUMNS = ("x", "y", "age", "vent", "drug")
CONFIG = {
    "_target_": "rehearsal_torch.surrogates.transition.TransitionModel",
    "varying": ["x", "y"],
    "static": ["age"],
    "contextual": ["vent"],
    "doses": ["drug"],
    "levels": 3,
    "mechanism": {"_target_": "rehearsal_torch.mechanisms.location_scale.LocationScale", "_partial_": True, "hidden": 7},
}


@pytest.fixture
def episode() -> Episode:
    generator = torch.Generator().manual_seed(3)
    return Episode("1", COLUMNS, torch.rand(40, 5, generator=generator, dtype=torch.float64))


@pytest.fixture
def model(episode: Episode) -> TransitionModel:
    torch.manual_seed(0)
    model = TransitionModel(["x", "y"], ["age"], ["vent"], ["drug"], partial(LocationScale, hidden=7), levels=3)
    table = transitions([episode])
    model.rescale.solve(torch.cat([table.columns(model.rescale.names), table.columns([f"{name}'" for name in model.rescale.names])]))
    model.levels.solve(table.columns(["drug"]))
    return model


@pytest.fixture
def folder(model: TransitionModel, tmp_path: Path) -> Path:
    return save(model, CONFIG, tmp_path / "model", {"seed": 0})


def edit(folder: Path, **changes: object) -> None:
    config = yaml.safe_load((folder / "config.yaml").read_text())
    (folder / "config.yaml").write_text(yaml.safe_dump(config | changes))


def test_what_was_saved_is_loaded(model: TransitionModel, folder: Path, episode: Episode) -> None:
    again = rt.load(folder)
    assert isinstance(again, TransitionModel)
    assert not again.training
    assert set(again.state_dict()) == set(model.state_dict())
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor)
    assert torch.equal(again.course(episode).noise, model.course(episode).noise)
    assert card(folder)["seed"] == 0


def test_a_run_folder_is_loaded_by_its_checkpoint(model: TransitionModel, tmp_path: Path) -> None:
    save(model, CONFIG, tmp_path / "run" / "checkpoint")
    (tmp_path / "run" / "config.yaml").write_text("dataset: {}\n")
    assert isinstance(load(tmp_path / "run"), TransitionModel)


def test_saving_refuses_a_configuration_of_something_else(model: TransitionModel, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="does not fit the configuration"):
        save(model, CONFIG | {"levels": 4, "varying": ["x"]}, tmp_path)
    assert not (tmp_path / "weights.safetensors").exists()


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "builtins.eval",
        "subprocess.Popen",
        "torch.load",
        "rehearsal_torch.checkpoint.import_module",
        "rehearsal_torch.checkpoint.save",
        "rehearsal_torch.checkpoint.Path",
        "rehearsal_torch.checkpoint.yaml.load",
        "rehearsal_torch.surrogates.transition.torch.load",
        "rehearsal_torch.surrogates.transition.LocationScale",
        "rehearsal_torch.surrogates.transition.TransitionModel.load_state_dict",
        "rehearsal_torch.data.fitted.nn.Module",
        "rehearsal_torch.nowhere.Thing",
        "rehearsal_torch.data.fitted.__builtins__.eval",
        "rehearsal_torch",
        "",
        7,
        None,
    ],
)
def test_a_tampered_target_is_refused(folder: Path, target: object) -> None:
    edit(folder, _target_=target)
    with pytest.raises(CheckpointError, match="nothing was built"):
        load(folder)


def test_a_tampered_part_is_refused(folder: Path, tmp_path: Path) -> None:
    edit(folder, mechanism={"_target_": "os.mkdir", "path": str(tmp_path / "ran")})
    with pytest.raises(CheckpointError, match=r"os\.mkdir"):
        load(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("instruction", [{"_args_": [1]}, {"_convert_": "all"}, {"_recursive_": False}])
def test_unknown_instructions_are_refused(folder: Path, instruction: dict[str, object]) -> None:
    edit(folder, **instruction)
    with pytest.raises(CheckpointError, match="unknown instruction"):
        load(folder)


def test_yaml_that_runs_code_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "config.yaml").write_text(f"!!python/object/apply:os.mkdir ['{tmp_path / 'ran'}']\n")
    with pytest.raises(CheckpointError, match="not plain YAML"):
        load(folder)
    assert not (tmp_path / "ran").exists()


def test_interpolations_stay_texts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    edit(folder, varying=["${oc.env:SECRET}", "y"])
    assert load_names(folder) == ("${oc.env:SECRET}", "y")


def load_names(folder: Path) -> tuple[str, ...]:
    surrogate = load(folder)
    assert isinstance(surrogate, TransitionModel)
    return surrogate.varying


class Bomb:
    """Unpickled, it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        import os

        return os.mkdir, (self.path,)


@pytest.mark.parametrize("keep_card", [True, False])
def test_a_pickle_bomb_is_refused(folder: Path, tmp_path: Path, keep_card: bool) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "ran"))
    (folder / "weights.safetensors").write_bytes(bomb)
    if not keep_card:
        (folder / "card.yaml").unlink()
    with pytest.raises(CheckpointError, match="not the file that card" if keep_card else "nothing was read from it"):
        load(folder)
    assert not (tmp_path / "ran").exists()


def test_damage_and_absence_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no config\.yaml and no weights"):
        load(tmp_path / "nothing")
    (folder / "card.yaml").write_text("just a text")
    with pytest.raises(CheckpointError, match=r"card\.yaml is not plain YAML"):
        load(folder)
    (folder / "card.yaml").unlink()
    whole = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match="safetensors format"):
        load(folder)


def test_arguments_that_do_not_fit_are_named(folder: Path) -> None:
    edit(folder, width=3)
    with pytest.raises(CheckpointError, match=r"cannot build .*width"):
        load(folder)
