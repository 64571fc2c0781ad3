"""How errors end a command, and the check that no foreign files are overwritten.

An error that the user can correct (`user_error`) ends a command with exit code 2 and without a traceback
(``HYDRA_FULL_ERROR=1`` shows it). Any other error is a bug and keeps its traceback.
"""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rehearsal_torch.cli.signals import Stopped, code_of, stopping
from rehearsal_torch.files.lock import InUseError
from rehearsal_torch.files.plain import PlainFileError
from rehearsal_torch.user_error import UserError

# Remedies for errors of the operating system.
_REFUSED = {
    errno.ENOSPC: "free some space on the disk, then run the same command again",
    errno.EDQUOT: "free some space on the disk, then run the same command again",
    errno.EFBIG: "free some space on the disk, then run the same command again",
    errno.EROFS: "choose a writable folder",
    errno.EACCES: "choose a writable folder, or change its permissions",
    errno.EPERM: "choose a writable folder, or change its permissions",
    errno.ENOTDIR: "a part of the path is a file: choose another folder",
    errno.EEXIST: "a part of the path is a file: choose another folder",
    errno.EISDIR: "a folder has the name of a file to write: move it elsewhere",
    errno.ENOTEMPTY: "a folder has the name of a file to write: move it elsewhere",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "the path contains a loop of links: choose another folder",
    errno.EIO: "the disk has failed: choose another folder",
}

# Of these, those of a place that cannot be written to.
UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)

# Exceptions of joblib and concurrent.futures for a killed worker; compared by name, as importing them takes
# time.
_KILLED = ("TerminatedWorkerError", "BrokenProcessPool")
# Those of submitit.
_ENDED = ("FailedJobError", "UncompletedJobError")
# What submitit says where SLURM is not installed.
_NO_SLURM = 'Could not detect "srun"'


def user_error_from(error: BaseException) -> UserError | None:
    """The error as a `UserError` if the user can correct it, else None.

    These are `UserError` itself, an unreadable file, a folder locked by another process, a killed worker or
    submission, a submission that the cluster refuses, and a disk or folder that cannot be written.
    """
    if isinstance(error, UserError):
        return error
    if isinstance(error, PlainFileError | InUseError):
        return UserError(str(error).rstrip("."))
    if type(error).__name__ in _KILLED:
        what = "a worker process of this command was killed, by the system because memory ran out, or by hand"
        return UserError(
            what,
            "",
            "Earlier results are kept: run the same command with resume=FOLDER, and with fewer processes if "
            "memory ran out",
        )
    if _refused_by_cluster(error):
        lines = str(error).strip().splitlines() or ["no reason given"]
        said = lines[-1].removeprefix("sbatch: error: ").strip(" .")
        return UserError(
            f"the cluster refused the submission, and no job was started ({said})",
            "hydra/launcher",
            "Correct the settings hydra.launcher.*, and run the same command with resume=FOLDER",
        )
    if isinstance(error, RuntimeError) and str(error).startswith(_NO_SLURM):
        return UserError(
            "the commands of SLURM (sbatch, srun) are not on this machine",
            "hydra/launcher",
            "Type the command on a machine of the cluster, or take hydra/launcher=submitit_local",
        )
    if type(error).__name__ in _ENDED:
        return UserError(
            "what was submitted ended before its jobs did: it was killed, or its time was over",
            "",
            "What it printed is in the folder .submitit of the sweep. Results are kept: run the same command "
            "with resume=FOLDER",
        )
    if isinstance(error, OSError) and error.errno in _REFUSED:
        # Of a copy or a renaming, the place that is written to is named second.
        place = next((str(each) for each in (error.filename2, error.filename) if each is not None), "")
        return UserError(
            f"the operating system cannot read or write here ({error.strerror})",
            place,
            _REFUSED[error.errno].capitalize(),
        )
    return None


def _refused_by_cluster(error: BaseException) -> bool:
    """Whether sbatch ended with an error: submitit raises the same class as for a job that failed."""
    return type(error).__name__ == "FailedSubmissionError" or (
        type(error).__name__ == "FailedJobError"
        and isinstance(error.__cause__, subprocess.CalledProcessError)
    )


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
