"""Errors that the user can correct, each one paragraph: what is wrong, where, and what to do."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

from rehearsal_torch.files.addresses import without_password


class UserError(Exception):
    """An error that the user can correct: what is wrong, where, and what to do.

    Args:
        where: The key, file or folder; empty if `what` contains it.
    """

    def __init__(self, what: str, where: str = "", remedy: str = "") -> None:
        super().__init__(what, where, remedy)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        end = "" if self.remedy.endswith(("?", ".")) or not self.remedy else "."
        return without_password(f"{place}{self.what}." + (f" {self.remedy}{end}" if self.remedy else ""))


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """A question with the closest choices, or the list of choices."""
    known = sorted(set(choices))
    close = get_close_matches(word, known, n=2, cutoff=0.6)
    if close:
        return f"Did you mean {' or '.join(close)}?"
    return choose_from(known)


def choose_from(choices: Iterable[str]) -> str:
    """The choices, if they are few; else empty."""
    known = sorted(set(choices))
    return f"Choose from {', '.join(known)}" if 0 < len(known) <= 12 else ""


@contextmanager
def as_user_error(where: str) -> Iterator[None]:
    """Turns the errors of classes for invalid values, missing files or missing devices into a `UserError`.

    Args:
        where: The operation, or the part being built, for the message.

    Raises:
        UserError: for a value, file, name or device that a class refused with a message.
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
    """The error itself, or the one that Hydra wrapped, if a class raised it on purpose; None for a bug."""
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
    # Look-ups and device errors can also be bugs; those raised on purpose have a message of several words.
    return error if isinstance(error, KeyError | RuntimeError) and len(str(error).split()) > 3 else None
