"""A run folder, read for a page: what it records, the settings of its method, and its checkpoint.

As with every folder that may come from somebody else, nothing in it is unpickled, and only classes of this
package are built of its configuration (`methods.allowed`).

The page shows the decisions and the data card beside the answers of the method (`api.load`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal_torch.api.load import NEEDED, load, model_of_run, needed, notes
from rehearsal_torch.api.load import needed as complete
from rehearsal_torch.api.rehearsal_model import RehearsalModel
from rehearsal_torch.checkpoint import METHOD, configuration
from rehearsal_torch.checkpoint import load as load_surrogate
from rehearsal_torch.data.codings.texts import card_in_words
from rehearsal_torch.evaluation.recorded_run import Recorded
from rehearsal_torch.files.checkpoint_folders import checkpoint_in
from rehearsal_torch.reporting.page.material import Material, mapping, material
from rehearsal_torch.user_error import UserError


def existing(folder: str | Path) -> Path:
    """A folder that is there, and is not that of a sweep.

    Raises:
        UserError: if it is not.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(
            "there is no such folder",
            str(folder),
            "Give the folder of a run, such as runs/own_problem/FOLDER",
        )
    if (folder / "sweep.json").is_file():
        raise UserError(
            "is the folder of a sweep", str(folder), f"Give the folder of one of its jobs: {folder}/*/"
        )
    return folder


def recorded(folder: Path) -> Material:
    """What a run folder records.

    Raises:
        UserError: if it is not the folder of a run.
        ValueError: if its files are damaged.
    """
    try:
        return material(folder)
    except FileNotFoundError as error:
        remedy = "Give the folder of a run, or of a model that was saved"
        raise UserError(str(error), "", remedy) from None


def settings(of: Material, needed: tuple[str, ...] = NEEDED) -> dict[str, Any]:
    """The configuration of a run that is not an online one; nothing in it is trusted.

    Raises:
        UserError: if a group is missing, or the run is an online one.
    """
    complete(of.run, needed)
    return {**of.run.config, "trusted": []}


def checkpoint_of(folder: Path, config: Mapping[str, Any]) -> Path:
    """The checkpoint of a run: its own, or the one that it was given.

    Raises:
        UserError: if it has none.
    """
    given = config.get("checkpoint")
    for folder_tried in (folder, *([Path(given)] if isinstance(given, str) else [])):
        checkpoint = checkpoint_in(folder_tried)
        if checkpoint is not None:
            return checkpoint
    elsewhere = f"; it decided with {given}, which is not there" if isinstance(given, str) else ""
    raise UserError(f"holds no checkpoint{elsewhere}", str(folder), "Run it again in another folder")


_ELSEWHERE = {"look_back": "episodes", "optimise": "trials"}


@dataclass(frozen=True)
class Opened:
    """A fitted method, and what its folder says.

    Attributes:
        material: Data card, decisions and configuration; a saved model has a data card alone.
        notes: What its answers do not take into account, a sentence each.
    """

    model: RehearsalModel
    material: Material
    notes: tuple[str, ...] = ()


def opened(folder: str | Path) -> Opened:
    """Reads a run folder, or the folder of a saved model.

    Args:
        folder: A folder that ``rehearsal decide`` or `RehearsalModel.save` wrote.

    Raises:
        UserError: if there is no such folder, it is that of a sweep or of another kind of problem, or its
            method cannot be built.
        ValueError: if checkpoint or files are damaged.
    """
    folder = existing(folder)
    return _saved(folder) if (folder / METHOD).is_file() else _run(folder)


def _saved(folder: Path) -> Opened:
    model = load(folder)
    if not isinstance(model, RehearsalModel):
        raise UserError("card.yaml names no method.yaml, which is there", str(folder), "Save the model again")
    card = card_in_words(mapping(model.card.get("data")))
    return Opened(model, Material(Recorded(folder, kind="rehearse"), card))


def _run(folder: Path) -> Opened:
    of = recorded(folder)
    if of.run.kind != "rehearse":
        what = _ELSEWHERE.get(str(of.run.kind), "nothing that can be explored")
        raise UserError("holds no decisions for cases of a table", str(folder), f"It holds {what}")
    needed(of.run)
    checkpoint = checkpoint_of(folder, of.run.config)
    model = model_of_run(of.run, load_surrogate(checkpoint), configuration(checkpoint), {"data": of.card})
    return Opened(model, of, tuple(notes(of.run.config)))
