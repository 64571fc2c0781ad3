"""Opens the session of an explorer page for a run folder or a file of trials, by its kind of problem.

A file of trials is named itself, or is the only one in a folder.
"""

from pathlib import Path

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.api.trial_method import METHOD
from rehearsal_torch.checkpoint import METHOD as SAVED
from rehearsal_torch.data.trials.trial_store import BYTES, FAMILY
from rehearsal_torch.explorer.episode_session import EpisodeSession
from rehearsal_torch.explorer.open_run import existing, opened, opened_episodes, recorded
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.explorer.server import Session
from rehearsal_torch.explorer.trial_session import RecordedTrials, TrialSession
from rehearsal_torch.user_error import UserError


def session_for(folder: Path, method: str = METHOD) -> Session:
    """The session of a folder or file; it has answered one question."""
    try:
        file = file_of(folder)
        if file is not None:
            return opened_trials(file, method)
        if method != METHOD:
            problem = "is for files of trials; a run has the method that it decided with"
            raise UserError(problem, f"method={method}")
        return _run_session(folder)
    except UserError:
        raise
    except ValueError as error:
        text = str(error).rstrip(".")
        raise UserError(text, "" if str(folder) in text else str(folder)) from error


def _run_session(folder: Path) -> Session:
    folder = existing(folder)
    content = None if (folder / SAVED).is_file() else recorded(folder)
    if content is not None and content.run.kind == "look_back":
        episodes = EpisodeSession(opened_episodes(content))
        episodes.first_answer()
        return episodes
    if content is not None and content.run.kind == "optimise":
        return RecordedTrials(content)
    session = RehearsalSession(opened(folder))
    session.first_answer()
    return session


# Files that make a folder that of a run.
RUN = ("run.json", "config.yaml", "sweep.json")


def file_of(path: Path) -> Path | None:
    """The file of trials that a path stands for; None if it stands for something else."""
    if path.suffix == ".json" and not path.is_dir():
        return path
    if not path.is_dir() or any((path / name).exists() for name in RUN):
        return None
    files = list(filter(_holds_trials, sorted(path.glob("*.json"))))
    if len(files) > 1:
        names = ", ".join(file.name for file in files[:4])
        raise UserError(f"holds {len(files)} files of trials ({names})", str(path), "Name one of them")
    return files[0] if files else None


def opened_trials(file: Path, method: str) -> TrialSession:
    """The session of a file of trials."""
    session = TrialSession(CausalOptimiser.load(file, method=method), file, method)
    session.trials()
    return session


def _holds_trials(file: Path) -> bool:
    try:
        if file.stat().st_size > BYTES:
            return False
        with file.open(encoding="utf-8", errors="replace") as stream:
            return f'"{FAMILY}/' in stream.read(4096)
    except OSError:
        return False
