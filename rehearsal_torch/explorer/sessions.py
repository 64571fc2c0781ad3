"""Which session answers for a folder, or a file of trials: by the kind of problem that it records."""

from pathlib import Path

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.explorer.episode_session import EpisodeSession
from rehearsal_torch.explorer.recorded_episodes import opened_episodes
from rehearsal_torch.explorer.recorded_model import opened
from rehearsal_torch.explorer.rehearsal_session import RehearsalSession
from rehearsal_torch.explorer.run_material import existing, recorded
from rehearsal_torch.explorer.server import Session
from rehearsal_torch.explorer.trials.opened_trials import file_of, opened_trials
from rehearsal_torch.explorer.trials.recorded_trials import RecordedTrials
from rehearsal_torch.verbs.saving.saved_folder import METHOD as SAVED
from rehearsal_torch.verbs.trial_method import METHOD


def session_for(folder: Path, method: str = METHOD) -> Session:
    """What answers for a folder; one answer has been tried.

    Args:
        folder: The folder of a run, or of a saved model; or a file of trials, or a folder that holds one.
        method: The method that proposes trials.

    Raises:
        UserError: if the folder cannot be explored, or the method is one for trials and there are none.
    """
    try:
        file = file_of(folder)
        if file is not None:
            return opened_trials(file, method)
        if method != METHOD:
            raise UserError(
                "is for files of trials; a run has the method that it decided with", f"method={method}"
            )
        return _opened(folder)
    except UserError:
        raise
    except ValueError as error:
        said = str(error).rstrip(".")
        raise UserError(said, "" if str(folder) in said else str(folder)) from error


def _opened(folder: Path) -> Session:
    folder = existing(folder)
    of = None if (folder / SAVED).is_file() else recorded(folder)
    if of is not None and of.run.kind == "look_back":
        episodes = EpisodeSession(opened_episodes(of))
        episodes.first_answer()
        return episodes
    if of is not None and of.run.kind == "optimise":
        return RecordedTrials(of)
    session = RehearsalSession(opened(folder))
    session.first_answer()
    return session
