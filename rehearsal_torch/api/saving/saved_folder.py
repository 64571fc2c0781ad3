"""The folder of a saved model, which is written as a whole or not at all.

    config.yaml, weights.safetensors, card.yaml     the checkpoint (`rehearsal_torch.checkpoint`)
    method.yaml                                     of a model for cases: how it decides

It replaces the folder of an earlier saved model, and nothing else.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from rehearsal_torch.checkpoint import CheckpointError
from rehearsal_torch.run_folder import write_folder

METHOD = "method.yaml"
FILES = {"config.yaml", "weights.safetensors", "card.yaml", METHOD}


def written(folder: str | Path, write: Callable[[Path], None]) -> Path:
    """Writes a folder beside its place, and moves it there once it is complete.

    Args:
        write: Writes all files into the folder that it is given.

    Raises:
        CheckpointError: if something else than a saved model would be replaced; nothing is written then.
    """
    folder = Path(folder)
    _free(folder)
    beside = folder.with_name(f".{folder.name}.part")
    if beside.exists():
        shutil.rmtree(beside)
    try:
        write(beside)
        write_folder(folder, beside)
    finally:
        if beside.exists():
            shutil.rmtree(beside)
    return folder


def _free(folder: Path) -> None:
    """Refuses a place at which something else than a saved model would be replaced."""
    if not folder.name or folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise CheckpointError(f"{folder}: expected the name of a folder for the model; choose another name")
    found = {each.name for each in folder.iterdir()} if folder.exists() else set()
    others = sorted(found - FILES)
    if others:
        raise CheckpointError(
            f"{folder} holds {', '.join(others[:3])}{', ...' if len(others) > 3 else ''}, which is not part "
            "of a saved model, and saving replaces the folder: choose a new folder"
        )
