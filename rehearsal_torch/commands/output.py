"""Where a command writes files of its own: never over somebody else's."""

from collections.abc import Iterable
from pathlib import Path

from rehearsal_torch.commands.user_error import UserError


def check_output(out: Path, names: Iterable[str], mark: str, beginning: str) -> None:
    """Whether a folder may be written into; nothing of it is touched.

    Args:
        out: The folder.
        names: What is going to be written there.
        mark: The file among them by which this command knows what it has written itself.
        beginning: How that file begins then.

    Raises:
        UserError: if one of the files is there already and is not this command's, or the folder is a file.
    """
    if out.exists() and not out.is_dir():
        raise UserError("is a file", f"out={out}", "Name a folder")
    there = [name for name in names if (out / name).exists() or (out / name).is_symlink()]
    if there and not begins(out / mark, beginning):
        what = f"{' and '.join(there[:3])} {'lies' if len(there) == 1 else 'lie'} there already, and this command did not write {mark} there"
        raise UserError(what, f"out={out}", "Name another folder, or move them away")


def begins(path: Path, beginning: str) -> bool:
    """Whether a file is there that begins with a text."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(beginning.encode("utf-8"))) == beginning.encode("utf-8")
