"""How errors end a command, and the check that no foreign files are overwritten.

An error that the user can correct (`user_error`) ends a command with exit code 2 and without a traceback
(``HYDRA_FULL_ERROR=1`` shows it). Any other error is a bug and keeps its traceback.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rehearsal_torch.cli.signals import Stopped, code_of, stopping
from rehearsal_torch.user_error import UserError, user_error_from

# Of these, those of a place that cannot be written to.
UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def exit_code(run: Callable[[], int], interrupted: str | Callable[[], str]) -> int:
    """The exit code of a command: that of `run`; 2 after an error that the user can correct, 128 + n after
    signal n; both are printed.

    Args:
        interrupted: The message after an interruption, or a function that makes it: how to continue.
    """
    full = os.environ.get("HYDRA_FULL_ERROR") == "1"
    try:
        with stopping():
            return run()
    except KeyboardInterrupt as error:
        named = f" by {error}" if isinstance(error, Stopped) else ""
        message = interrupted if isinstance(interrupted, str) else interrupted()
        print(message.replace("Interrupted", f"Interrupted{named}", 1), file=sys.stderr, flush=True)
        return code_of(error)
    except Exception as error:
        wrong = user_error_from(error)
        if wrong is None or full:
            raise
        print(wrong, file=sys.stderr, flush=True)
        return 2


@contextmanager
def writing_to(place: Path, remedy: str) -> Iterator[None]:
    """Gives errors of a place that may not be written to a remedy of their own.

    Raises:
        UserError: if the operating system does not let it be written to.
    """
    try:
        yield
    except OSError as error:
        wrong = user_error_from(error)
        if wrong is None or error.errno not in UNWRITABLE or not lies_in(wrong.where, place):
            raise
        raise UserError(wrong.what, wrong.where, remedy) from error


def lies_in(named: str, place: Path) -> bool:
    """Whether a file is some place, one that it lies in, or one that lies in it.

    Args:
        named: The file; empty if it is unknown.
    """
    one, other = Path(named).absolute(), place.absolute()
    return bool(named) and (one.is_relative_to(other) or other.is_relative_to(one))


def check_output(out: Path, names: Iterable[str], mark: str, beginning: str) -> None:
    """Checks that a folder may be written to, without changing it.

    Args:
        mark: The file among them by which this command recognises its own output.

    Raises:
        UserError: if one of the files exists and was not written by this command, or the folder is a file.
    """
    if out.exists() and not out.is_dir():
        raise UserError("is a file", f"out={out}", "Name a folder")
    there = [name for name in names if (out / name).exists() or (out / name).is_symlink()]
    if there and not begins(out / mark, beginning):
        what = (
            f"{' and '.join(there[:3])} {'exists' if len(there) == 1 else 'exist'} there already, and {mark} "
            "was not written by this command"
        )
        raise UserError(what, f"out={out}", "Name another folder, or move them elsewhere")


def begins(path: Path, beginning: str) -> bool:
    """Whether a file exists and begins with the given text."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(beginning.encode("utf-8"))) == beginning.encode("utf-8")
