"""Checkpoints: saved, loaded, equal; and nothing from the folder is ever run."""

import hashlib
import pickle
import time
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path

import pytest
import safetensors.torch
import torch
import yaml

import rehearsal_torch as rt
from rehearsal_torch.checkpoint import CheckpointError, annotate, card, configuration, load, savable, save
from rehearsal_torch.data.episode import Episode, transitions
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.surrogates.transition_ensemble import TransitionEnsemble
from tests.places import PUBLISHED_SEPSIS, ROOT

COLUMNS = ("x", "y", "age", "vent", "drug")
CONFIG = {
    "_target_": "rehearsal_torch.surrogates.transition.TransitionModel",
    "varying": ["x", "y"],
    "static": ["age"],
    "contextual": ["vent"],
    "doses": ["drug"],
    "levels": 3,
    "mechanism": {
        "_target_": "rehearsal_torch.mechanisms.location_scale.LocationScale",
        "_partial_": True,
        "hidden": 7,
    },
}


@pytest.fixture
def episode() -> Episode:
    generator = torch.Generator().manual_seed(3)
    return Episode("1", COLUMNS, torch.rand(40, 5, generator=generator, dtype=torch.float64))


@pytest.fixture
def model(episode: Episode) -> TransitionModel:
    torch.manual_seed(0)
    model = TransitionModel(
        ["x", "y"], ["age"], ["vent"], ["drug"], partial(LocationScale, hidden=7), levels=3
    )
    table = transitions([episode])
    model.rescale.solve(
        torch.cat(
            [table.columns(model.rescale.names), table.columns([f"{name}'" for name in model.rescale.names])]
        )
    )
    model.levels.solve(table.columns(["drug"]))
    model.mechanism.finish()
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
    assert torch.equal(again.trajectory(episode).noise, model.trajectory(episode).noise)
    assert card(folder)["seed"] == 0


def test_the_configuration_is_read_without_building_anything(folder: Path) -> None:
    assert configuration(folder) == CONFIG
    edit(folder, _target_="os.system")
    assert configuration(folder)["_target_"] == "os.system"
    (folder / "config.yaml").write_text("- 1\n")
    with pytest.raises(CheckpointError, match=r"config\.yaml: expected names and values; got list"):
        configuration(folder)


@pytest.mark.parametrize(("name", "got"), [("", "a folder without either"), ("nowhere", "no such folder")])
def test_a_card_of_nothing_is_refused(tmp_path, name, got):
    with pytest.raises(
        CheckpointError, match=f"expected a checkpoint, which is .*; got {got}: name a folder"
    ):
        card(tmp_path / name)


def test_notes_are_added_to_a_card_and_the_weights_stay_named(folder: Path, tmp_path: Path) -> None:
    before = card(folder)
    annotate(folder, {"held_out": {"cme": {"probability": 0.5}}, "seed": 3})
    assert card(folder) == before | {"held_out": {"cme": {"probability": 0.5}}, "seed": 3}
    assert list(card(folder))[-1] == "weights_sha256"
    load(folder)
    with pytest.raises(CheckpointError, match="weights_sha256, which `save` alone writes"):
        annotate(folder, {"weights_sha256": "0"})
    with pytest.raises(CheckpointError, match=r"got none in .*card\.yaml"):
        annotate(tmp_path, {"held_out": {}})
    assert not (tmp_path / "card.yaml").exists()


def test_a_configuration_of_another_question_is_refused_though_its_sizes_fit(folder: Path) -> None:
    edit(folder, varying=["x", "z"])
    with pytest.raises(CheckpointError, match=r"config\.yaml is not the file that card\.yaml was"):
        load(folder)


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
        "torch.load",
        "rehearsal_torch.checkpoint.import_module",
        "rehearsal_torch.surrogates.transition.torch.load",
        "rehearsal_torch.surrogates.transition.TransitionModel.load_state_dict",
        "rehearsal_torch.nowhere.Thing",
        "rehearsal_torch.data.trainable_part.__builtins__.eval",
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


def test_interpolations_stay_texts(model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    folder = save(model, CONFIG | {"varying": ["${oc.env:SECRET}", "y"]}, tmp_path / "model")
    assert load(folder).varying == ("${oc.env:SECRET}", "y")


class Bomb:
    """Unpickled, it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        import os

        return os.mkdir, (self.path,)


def put(folder: Path, weights: bytes) -> None:
    """Other weights, with the card that goes with them."""
    (folder / "weights.safetensors").write_bytes(weights)
    (folder / "card.yaml").write_text(yaml.safe_dump({"weights_sha256": hashlib.sha256(weights).hexdigest()}))


def spoil(folder: Path, **tensors: torch.Tensor) -> None:
    """Other tensors in a checkpoint, as somebody who knows the format would put them there."""
    state = safetensors.torch.load((folder / "weights.safetensors").read_bytes())
    put(
        folder,
        safetensors.torch.save(state | {name.replace("__", "."): value for name, value in tensors.items()}),
    )


@pytest.mark.parametrize("keep_card", [True, False])
def test_a_pickle_bomb_is_refused(folder: Path, tmp_path: Path, keep_card: bool) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "ran"))
    (folder / "weights.safetensors").write_bytes(bomb)
    if not keep_card:
        put(folder, bomb)
    with pytest.raises(
        CheckpointError, match="not the file that card" if keep_card else "nothing was read from it"
    ):
        load(folder)
    assert not (tmp_path / "ran").exists()


def test_damage_and_absence_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointError, match=r"there is no folder .*nothing: expected a checkpoint or a run"
    ):
        load(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"no config\.yaml and no weights"):
        load(tmp_path / "empty")
    (folder / "card.yaml").write_text("just a text")
    with pytest.raises(CheckpointError, match=r"card\.yaml is not plain YAML"):
        load(folder)
    (folder / "card.yaml").unlink()
    whole = (folder / "weights.safetensors").read_bytes()
    with pytest.raises(
        CheckpointError, match=f"holds no SHA-256 of the weights.*{hashlib.sha256(whole).hexdigest()}"
    ):
        load(folder)
    put(folder, whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match="safetensors format"):
        load(folder)


def test_arguments_that_do_not_fit_are_named(folder: Path) -> None:
    edit(folder, width=3)
    with pytest.raises(CheckpointError, match=r"cannot build .*width"):
        load(folder)


NAN = torch.tensor([float("nan"), 0.0, 0.0, 0.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"rescale__lower": NAN}, r"rescale\.lower: 1 of 4 numbers are not finite"),
        (
            {"mechanism__networks__shift": torch.full((2, 2), float("inf"))},
            r"mechanism\.networks\.shift: 4 of 4 numbers are not finite",
        ),
        (
            {"levels__edges": torch.zeros(1, 0, dtype=torch.float64)},
            r"levels\.edges: expected the size \(1, 1\); got \(1, 0\)",
        ),
        (
            {"levels__medians": torch.tensor([[0.1, 0.2, 0.3]])},
            r"levels\.medians: expected doses .* the first of each row 0",
        ),
        ({"rescale__upper": torch.zeros(3)}, r"rescale\.upper: expected the size \(4\); got \(3,\)"),
        ({"rescale__upper": torch.full((4,), -9.0)}, r"rescale\.upper: expected lower <= upper"),
        ({"rescale__lower": torch.zeros(0), "rescale__upper": torch.zeros(0)}, "rescale: not fitted"),
        (
            {"levels__medians": torch.zeros(1, 3, dtype=torch.long)},
            r"levels\.medians: expected floating-point numbers, float32 or float64; got torch\.int64",
        ),
        (
            {"levels__medians": torch.zeros(1, 3, dtype=torch.bfloat16)},
            r"levels\.medians: expected floating-point numbers, float32 or float64; got torch\.bf",
        ),
    ],
)
def test_a_damaged_state_is_refused_by_name(folder, tensors, words):
    spoil(folder, **tensors)
    with pytest.raises(CheckpointError, match=words):
        load(folder)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("rescale.lower", lambda tensor: torch.full_like(tensor, float("nan"))),
        ("rescale.upper", lambda tensor: tensor[:0]),
        ("levels.edges", lambda tensor: tensor[:, :-1]),
        ("rescale.upper", lambda tensor: tensor + 1),
    ],
)
def test_members_that_disagree_about_what_they_share_are_refused(model, tmp_path, name, damage):
    config = {
        "_target_": "rehearsal_torch.surrogates.transition_ensemble.TransitionEnsemble",
        "member": CONFIG | {"_partial_": True},
        "count": 2,
    }
    made = iter([model, deepcopy(model)])
    folder = save(TransitionEnsemble(lambda: next(made), 2), config, tmp_path / "ensemble")
    assert len(load(folder).each) == 2
    whole = safetensors.torch.load((folder / "weights.safetensors").read_bytes())
    spoil(folder, **{f"models.0.{name}": damage(whole[f"models.0.{name}"]).clone()})
    with pytest.raises(CheckpointError, match=rf"models\.1\.{name} differs from models\.0\.{name}: expected"):
        load(folder)


def test_a_damaged_state_is_not_written(model: TransitionModel, tmp_path: Path) -> None:
    model.rescale.lower[0] = float("nan")
    with pytest.raises(
        CheckpointError, match=r"rescale\.lower: 1 of 4 numbers are not finite.*nothing was written"
    ):
        save(model, CONFIG, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.bench
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"mechanism": CONFIG["mechanism"] | {"hidden": 1_000_000_000}},
            r"hidden: expected a whole number from 1 to 65536; got 1000000000",
        ),
        (
            {"mechanism": CONFIG["mechanism"] | {"hidden": 60_000}},
            r"hidden: expected at most the remaining \d+ numbers of the weights; got \d+",
        ),
        ({"mechanism": CONFIG["mechanism"] | {"hidden": "many"}}, "cannot build"),
        ({"levels": 1_000_000_000}, r"levels: expected a whole number from 2 to 1000; got 1000000000"),
        (
            {"levels": 900, "doses": ["a", "b", "c"]},
            r"levels \*\* doses: expected a whole number from 1 to 1048576; got 729000000",
        ),
        ({"varying": {"&": "x"} | {f"x{each}": each for each in range(250_000)}}, "at most"),
    ],
)
def test_sizes_are_bounded_before_anything_is_allocated(folder, changes, words):
    edit(folder, **changes)
    with pytest.raises(CheckpointError, match=words):
        load(folder)


def test_an_alias_bomb_is_refused_at_once(folder: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)
    ]
    (folder / "config.yaml").write_text("\n".join(lines))
    began = time.perf_counter()
    with pytest.raises(CheckpointError, match="at most 200000 values"):
        load(folder)
    assert time.perf_counter() - began < 1


def test_a_save_that_is_cut_off_leaves_the_old_checkpoint_or_a_refusal(model, folder, monkeypatch):
    from rehearsal_torch import checkpoint

    old, other = (
        load(folder),
        TransitionModel(
            ["x", "y"], ["age"], ["vent"], ["drug"], partial(LocationScale, hidden=7, floor=1e-2), levels=3
        ),
    )
    other.load_state_dict(model.state_dict() | {"mechanism.factor": torch.eye(2)})
    changed = CONFIG | {"mechanism": CONFIG["mechanism"] | {"floor": 1e-2}}
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    for last in range(4):
        for path, content in kept.items():
            path.write_bytes(content)
        left = iter([True] * last + [False])

        def written(path: Path, content: bytes, left: Iterator[bool] = left) -> Path:
            if not next(left):
                raise KeyboardInterrupt
            Path(path).write_bytes(content)
            return path

        monkeypatch.setattr(checkpoint, "write_bytes", written)
        monkeypatch.setattr(
            checkpoint, "write_text", lambda path, text, put=written: put(path, text.encode())
        )
        if last < 3:
            with pytest.raises(KeyboardInterrupt):
                save(other, changed, folder)
        else:
            save(other, changed, folder)
        if last in (1, 2):
            with pytest.raises(CheckpointError, match="not the file that card"):
                load(folder)
        else:
            factor = load(folder).state_dict()["mechanism.factor"]
            assert torch.equal(factor, (other if last == 3 else old).state_dict()["mechanism.factor"])


def test_weights_that_are_too_large_are_not_read(model, folder: Path, monkeypatch) -> None:
    from rehearsal_torch import checkpoint

    monkeypatch.setattr(checkpoint, "LARGEST", 100)
    with pytest.raises(CheckpointError, match="expected at most 0 GiB"):
        load(folder)
    with pytest.raises(CheckpointError, match="expected weights of at most"):
        save(model, CONFIG, folder)


def test_episodes_need_the_columns_that_were_fitted(folder: Path, episode: Episode) -> None:
    assert torch.equal(
        load(folder, task=[*reversed(COLUMNS), "more"]).trajectory(episode).noise,
        load(folder, task=None).trajectory(episode).noise,
    )
    with pytest.raises(
        CheckpointError,
        match=r"columns: it needs \['x', 'y', 'age', 'vent', 'drug'\]; the data have no \['age', 'drug'\]",
    ):
        load(folder, task=["x", "y", "vent", "medicine"])
    with pytest.raises(CheckpointError, match="expected episodes, by their columns; got a dict"):
        load(folder, task={"graph": {}})


class Own(TransitionModel):
    """A surrogate of somebody's own."""


def test_what_cannot_be_saved_is_said_before_it_is_fitted(model: TransitionModel) -> None:
    state = torch.random.get_rng_state()
    savable(CONFIG, model)
    assert torch.equal(torch.random.get_rng_state(), state)
    with pytest.raises(CheckpointError, match="expected a configuration that builds a Own; got one that"):
        savable(CONFIG, own())


def own() -> Own:
    return Own(["x", "y"], ["age"], ["vent"], ["drug"], partial(LocationScale, hidden=7), levels=3)


def test_a_class_of_ones_own_is_kept_and_loads_where_its_module_is_trusted(model, tmp_path):
    mine, config = own(), CONFIG | {"_target_": "tests.test_checkpoint.Own"}
    mine.load_state_dict(model.state_dict())
    savable(config, mine)
    save(mine, config, tmp_path)
    for trusted in ([], ["tests.toys"], ["tests.test_checkpoint.Other"], ["os"]):
        with pytest.raises(CheckpointError, match=r"nothing was built.*load\(folder, trusted=\['my_lab'\]\)"):
            load(tmp_path, trusted=trusted)
    for trusted in (["tests"], ["tests.test_checkpoint"], ["tests.test_checkpoint.Own"]):
        again = load(tmp_path, trusted=trusted)
        assert type(again).__qualname__ == "Own"
        assert all(torch.equal(again.state_dict()[key], value) for key, value in mine.state_dict().items())


@pytest.mark.parametrize("folder", [ROOT / "checkpoints" / "sepsis", PUBLISHED_SEPSIS], ids=str)
def test_committed_checkpoints_load(folder):
    assert load(folder).faults() == []
