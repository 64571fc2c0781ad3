"""Errors that the person at the keyboard can mend.

Such an error is one paragraph: what is wrong, where, and what to do. It ends a command with exit code 2 and
shows no traceback (``HYDRA_FULL_ERROR=1`` does). Whatever else goes wrong is a fault of ours and keeps its
traceback.

Where a command writes files of its own: never over somebody else's.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from rehearsal_torch.cli.signals import Stopped, code_of, stopping
from rehearsal_torch.files.lock import InUseError
from rehearsal_torch.files.plain import PlainFileError

# What a disk or a folder refuses, whoever writes to it.
_REFUSED = {
    errno.ENOSPC: "make room on the disk, then type the same again",
    errno.EDQUOT: "make room on the disk, then type the same again",
    errno.EFBIG: "make room on the disk, then type the same again",
    errno.EROFS: "choose a folder that may be written to",
    errno.EACCES: "choose a folder that may be written to, or change its rights",
    errno.EPERM: "choose a folder that may be written to, or change its rights",
    errno.ENOTDIR: "a part of the path is a file: choose another folder",
    errno.EEXIST: "a part of the path is a file: choose another folder",
    errno.EISDIR: "a folder lies where a file is written: move it away",
    errno.ENOTEMPTY: "a folder lies where a file is written: move it away",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "the path runs in a circle of links: choose another folder",
    errno.EIO: "the disk has failed: choose another folder",
}

# What joblib and concurrent.futures raise when a worker is gone; asked by name, as importing them takes time.
_KILLED = ("TerminatedWorkerError", "BrokenProcessPool")


class UserError(Exception):
    """What is wrong, where, and what to do.

    Args:
        what: The fault, in words.
        where: The key, file or folder; empty where `what` says it.
        remedy: What to do.
    """

    def __init__(self, what: str, where: str = "", remedy: str = "") -> None:
        super().__init__(what, where, remedy)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        end = "" if self.remedy.endswith(("?", ".")) or not self.remedy else "."
        return f"{place}{self.what}." + (f" {self.remedy}{end}" if self.remedy else "")


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """A question that names the nearest choices, or what there is to choose from."""
    known = sorted(set(choices))
    close = get_close_matches(word, known, n=2, cutoff=0.6)
    if close:
        return f"Did you mean {' or '.join(close)}?"
    return f"Choose from {', '.join(known)}" if 0 < len(known) <= 12 else ""


def mendable(error: BaseException) -> UserError | None:
    """The error in words where the person at the keyboard can mend it, else None.

    These are our own `UserError`, a file that cannot be read, a folder that another process works in, a
    worker that was killed, and a disk or folder that refuses what is written.
    """
    if isinstance(error, UserError):
        return error
    if isinstance(error, PlainFileError | InUseError):
        return UserError(str(error).rstrip("."))
    if type(error).__name__ in _KILLED:
        what = (
            "a process that worked for this command was killed, by the system where memory ran out, or by "
            "hand"
        )
        return UserError(
            what,
            "",
            "What was done before is kept: type the same with resume=FOLDER, with fewer processes if memory "
            "ran out",
        )
    if isinstance(error, OSError) and error.errno in _REFUSED:
        place = "" if error.filename is None else str(error.filename)
        return UserError(
            f"the system refuses to write here, or to read ({error.strerror})",
            place,
            _REFUSED[error.errno].capitalize(),
        )
    return None


def exit_code(run: Callable[[], int], interrupted: str) -> int:
    """What a command ends with: the code of `run`; 2 after an error that can be mended, 128 + n after signal
    n, each told.

    Args:
        run: What the command does.
        interrupted: What is said of an interruption: how to go on.
    """
    full = os.environ.get("HYDRA_FULL_ERROR") == "1"
    try:
        with stopping():
            return run()
    except KeyboardInterrupt as error:
        named = f" by {error}" if isinstance(error, Stopped) else ""
        print(interrupted.replace("Interrupted", f"Interrupted{named}", 1), file=sys.stderr, flush=True)
        return code_of(error)
    except Exception as error:
        wrong = mendable(error)
        if wrong is None or full:
            raise
        print(wrong, file=sys.stderr, flush=True)
        return 2


@contextmanager
def as_user_error(where: str) -> Iterator[None]:
    """Turns what our classes say of wrong values, missing files or missing devices into an error for the
    person at the keyboard.

    Args:
        where: What was being done or built.

    Raises:
        UserError: for a value, file, name or device that the classes refused in words.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        cause = _refusal(error)
        if cause is None:
            raise
        raise UserError(
            str(cause.args[0] if isinstance(cause, KeyError) and cause.args else cause).strip().rstrip("."),
            where,
        ) from error


def _refusal(error: BaseException) -> BaseException | None:
    """The error itself, or what Hydra wrapped, if it is one that a class raises on purpose; none for a fault
    of ours.
    """
    if type(error).__name__ == "InstantiationException":
        return error if error.__cause__ is None else _refusal(error.__cause__) or error.__cause__
    if isinstance(
        error,
        ValueError
        | FileNotFoundError
        | IsADirectoryError
        | NotADirectoryError
        | PermissionError
        | ModuleNotFoundError,
    ):
        return error
    # Looking a name up, or asking for a device, may go wrong by accident as well; on purpose it is said in
    # words.
    return error if isinstance(error, KeyError | RuntimeError) and len(str(error).split()) > 3 else None


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
        what = (
            f"{' and '.join(there[:3])} {'lies' if len(there) == 1 else 'lie'} there already, and this "
            f"command did not write {mark} there"
        )
        raise UserError(what, f"out={out}", "Name another folder, or move them away")


def begins(path: Path, beginning: str) -> bool:
    """Whether a file is there that begins with a text."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(beginning.encode("utf-8"))) == beginning.encode("utf-8")
