"""Errors that the user can correct, as one paragraph each: fault, place and remedy."""

import errno
import shutil
import subprocess
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

from rehearsal_torch.files.bounded_yaml import PlainFileError
from rehearsal_torch.files.lock import InUseError
from rehearsal_torch.files.redaction import InputError, without_password

# Remedies for errors of the operating system.
_REMEDIES = {
    "free some space on the disk, then run the same command again": ("ENOSPC", "EDQUOT", "EFBIG"),
    "choose a writable folder": ("EROFS",),
    "choose a writable folder, or change its permissions": ("EACCES", "EPERM"),
    "a part of the path is a file: choose another folder": ("ENOTDIR", "EEXIST"),
    "a folder has the name of a file to write: move it elsewhere": ("EISDIR", "ENOTEMPTY"),
    "choose a shorter name": ("ENAMETOOLONG",),
    "the path contains a loop of links: choose another folder": ("ELOOP",),
    "the disk has failed: choose another folder": ("EIO",),
}
_REMEDY_OF_CODE = {getattr(errno, name): remedy for remedy, names in _REMEDIES.items() for name in names}

# Exceptions of joblib and concurrent.futures for a killed worker, and of submitit for a killed job, by name:
# importing them takes time.
_WORKER_DEATHS = ("TerminatedWorkerError", "BrokenProcessPool")
_JOB_DEATHS = ("FailedJobError", "UncompletedJobError")


class UserError(Exception):
    """An error that the user can correct: what is wrong, where (a key, file or folder), and the remedy."""

    def __init__(self, what: str, where: str = "", remedy: str = "") -> None:
        super().__init__(what, where, remedy)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self) -> str:
        prefix = f"{self.where}: " if self.where else ""
        end = "" if self.remedy.endswith(("?", ".")) or not self.remedy else "."
        return without_password(f"{prefix}{self.what}." + (f" {self.remedy}{end}" if self.remedy else ""))


class RequestError(InputError):
    """A request that cannot be fulfilled; the message says what to change."""


class RequestWarning(UserWarning):
    """A request that is fulfilled, but may not mean what was intended; the message says why."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """A question with the closest choices, or the list of choices."""
    options = sorted(set(choices))
    close = get_close_matches(word, options, n=2, cutoff=0.6)
    return f"Did you mean {' or '.join(close)}?" if close else choose_from(options)


def choose_from(choices: Iterable[str]) -> str:
    """The choices, if they are few; else empty."""
    options = sorted(set(choices))
    return f"Choose from {', '.join(options)}" if 0 < len(options) <= 12 else ""


@contextmanager
def as_user_error(where: str) -> Iterator[None]:
    """Turns errors about invalid values, missing files or missing devices into a `UserError` at `where`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if (cause := _intended_error(error)) is None:
            raise
        message = cause.args[0] if isinstance(cause, KeyError) and cause.args else cause
        raise UserError(str(message).strip().rstrip("."), where) from error


def _intended_error(error: BaseException) -> BaseException | None:
    """The error, or the one that Hydra wrapped, if a class raised it on purpose; None for a bug."""
    if type(error).__name__ == "InstantiationException":
        return error if error.__cause__ is None else _intended_error(error.__cause__) or error.__cause__
    paths = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
    if isinstance(error, (ValueError, ModuleNotFoundError, *paths)):
        return error
    # Look-ups and device errors can also be bugs; those raised on purpose have a message of several words.
    return error if isinstance(error, KeyError | RuntimeError) and len(str(error).split()) > 3 else None


def user_error_from(error: BaseException) -> UserError | None:
    """The error as a `UserError`, or None for a bug: unreadable files, folders locked by another process,
    killed workers or submissions, submissions that the cluster refuses, disks or folders that cannot be
    written.
    """
    if isinstance(error, UserError):
        return error
    if isinstance(error, PlainFileError | InUseError):
        return UserError(str(error).rstrip("."))
    if type(error).__name__ in _WORKER_DEATHS:
        return UserError(
            "a worker process of this command was killed, by the system because memory ran out, or by hand",
            remedy="Earlier results are kept: run the same command with resume=FOLDER, and with fewer "
            "processes if memory ran out",
        )
    if _refused_by_cluster(error):
        lines = str(error).strip().splitlines() or ["no reason given"]
        reason = lines[-1].removeprefix("sbatch: error: ").strip(" .")
        fault = f"the cluster refused the submission, and no job was started ({reason})"
        remedy = "Correct the settings hydra.launcher.*, and run the same command with resume=FOLDER"
        return UserError(fault, "hydra/launcher", remedy)
    if isinstance(error, RuntimeError) and _raised_by(error, "submitit") and shutil.which("srun") is None:
        fault = "the commands of SLURM (sbatch, srun) are not on this machine"
        remedy = "Type the command on a machine of the cluster, or take hydra/launcher=submitit_local"
        return UserError(fault, "hydra/launcher", remedy)
    if type(error).__name__ in _JOB_DEATHS:
        return UserError(
            "what was submitted ended before its jobs did: it was killed, or its time was over",
            "",
            "What it printed is in the folder .submitit of the sweep. Results are kept: run the same command "
            "with resume=FOLDER",
        )
    if isinstance(error, OSError) and error.errno in _REMEDY_OF_CODE:
        # The second file name of an error is the target of a copy or renaming.
        target = next((str(path) for path in (error.filename2, error.filename) if path is not None), "")
        fault = f"the operating system cannot read or write here ({error.strerror})"
        return UserError(fault, target, _REMEDY_OF_CODE[error.errno].capitalize())
    return None


def _raised_by(error: BaseException, package: str) -> bool:
    """Whether a package raised an error itself."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and frames[-1].f_globals["__name__"].partition(".")[0] == package


def _refused_by_cluster(error: BaseException) -> bool:
    """Whether sbatch ended with an error: submitit raises the same class as for a job that failed."""
    return type(error).__name__ == "FailedSubmissionError" or (
        type(error).__name__ == "FailedJobError"
        and isinstance(error.__cause__, subprocess.CalledProcessError)
    )
