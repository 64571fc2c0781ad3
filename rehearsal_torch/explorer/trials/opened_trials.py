"""A file of trials: named itself, or the only one in a folder."""

from pathlib import Path

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.data.trials.file import BYTES, FAMILY
from rehearsal_torch.explorer.trials.trial_session import TrialSession
from rehearsal_torch.optimiser import CausalOptimiser

# Files that make a folder that of a run.
RUN = ("run.json", "config.yaml", "sweep.json")


def file_of(place: Path) -> Path | None:
    """The file of trials that a path stands for; None if it stands for something else.

    Args:
        place: A file that ends in .json, or a folder with one file of trials.

    Raises:
        UserError: if a folder holds several.
    """
    if place.suffix == ".json" and not place.is_dir():
        return place
    if not place.is_dir() or any((place / name).exists() for name in RUN):
        return None
    found = [each for each in sorted(place.glob("*.json")) if _holds_trials(each)]
    if len(found) > 1:
        names = ", ".join(each.name for each in found[:4])
        raise UserError(f"holds {len(found)} files of trials ({names})", str(place), "Name one of them")
    return found[0] if found else None


def opened_trials(file: Path, method: str) -> TrialSession:
    """The session of a file of trials.

    Args:
        file: The file.
        method: The name of the method that proposes.

    Raises:
        ValueError: if it cannot be read, holds something else, or there is no such method for trials.
    """
    session = TrialSession(CausalOptimiser.load(file, method=method), file, method)
    session.trials()
    return session


def _holds_trials(file: Path) -> bool:
    """Whether a file begins as one of trials does."""
    try:
        if file.stat().st_size > BYTES:
            return False
        with file.open(encoding="utf-8", errors="replace") as stream:
            return f'"{FAMILY}/' in stream.read(4096)
    except OSError:
        return False
