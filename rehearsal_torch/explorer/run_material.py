"""A run folder, read for a page: what it records, the settings of its method, and its checkpoint.

As with every folder that may come from somebody else, nothing in it is unpickled, and only classes of this
package are built of its configuration (`cli.allowed`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.files.checkpoint_folders import checkpoint_in
from rehearsal_torch.reporting.page.material import Material, material
from rehearsal_torch.verbs.saving.saved_run import NEEDED
from rehearsal_torch.verbs.saving.saved_run import needed as complete


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
    for place in (folder, *([Path(given)] if isinstance(given, str) else [])):
        found = checkpoint_in(place)
        if found is not None:
            return found
    elsewhere = f"; it decided with {given}, which is not there" if isinstance(given, str) else ""
    raise UserError(f"holds no checkpoint{elsewhere}", str(folder), "Run it again in another folder")
