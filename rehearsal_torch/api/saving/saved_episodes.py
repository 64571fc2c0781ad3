"""Saved models of episodes: a checkpoint whose card says how their tables are read, and how it looks back.

    reading    the task (`problems.episodes.task`), the length of a step, the time of the first one, and how
               many actions at the end of a unit stay as they were
    looking    method, number of changes, and settings of search and objective; checkpoints of runs have none

Both are plain data. They are read by the same readers as a user's, and settings that say what is built are
refused, so that loading runs no code from the folder.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rehearsal_torch.api.configured import configuration as method_configuration
from rehearsal_torch.api.configured import in_words
from rehearsal_torch.api.episode_model import CHANGES, METHOD, EpisodeModel, EpisodeReading
from rehearsal_torch.api.one_episode import GROUPS, TAKEN
from rehearsal_torch.checkpoint import CheckpointError, configuration
from rehearsal_torch.data.question import Columns, OtherQuestionError
from rehearsal_torch.data.sizes import LARGEST_SEED
from rehearsal_torch.data.task_file import TaskError
from rehearsal_torch.files.plain import PlainFileError, opened
from rehearsal_torch.methods.presets import check_method
from rehearsal_torch.methods.run import method_of
from rehearsal_torch.problems.episodes.roles import EpisodeRoles
from rehearsal_torch.problems.episodes.task import episode_task
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate

AGAIN = "fetch the model again, or save it again"
MOST_CHANGES = 10_000


def model_of(folder: Path, surrogate: EpisodeSurrogate, card: Mapping[str, Any]) -> EpisodeModel:
    """The model of a checkpoint, or of a run folder with one, whose card says how episodes are read.

    Raises:
        CheckpointError: if the card is damaged, or belongs to another model.
    """
    place = folder if (folder / "card.yaml").is_file() else folder / "checkpoint"
    path = place / "card.yaml"
    reading = _reading(card["reading"], path)
    _same(surrogate, reading.roles, path)
    looking = _part(card["looking"], f"{path}: looking") if "looking" in card else {}
    method, changes = looking.get("method", METHOD), looking.get("changes", CHANGES)
    settings, seed = looking.get("settings", {}), 0 if card.get("seed") is None else card["seed"]
    if not _whole(changes, 0, MOST_CHANGES) or not _whole(seed, 0, LARGEST_SEED):
        raise CheckpointError(
            f"{path}: expected whole numbers of changes (at most {MOST_CHANGES}) and seed; got {changes!r} "
            f"and {seed!r}: {AGAIN}"
        )
    if not isinstance(settings, Mapping) or not _harmless(settings):
        raise CheckpointError(
            f"{path}: looking.settings: expected names and plain values, none of which says what is built; "
            f"nothing was built: {AGAIN}"
        )
    try:
        with in_words():
            check_method(method if isinstance(method, str) else str(method), "look_back")
            if taken := [key for key in settings if key in TAKEN]:
                raise ValueError(f"settings: {taken[0]!r} is none that a model keeps")
            # Values of a wrong kind are refused here, and not when somebody asks.
            method_of(method_configuration(method, dict(settings), GROUPS))
    except ValueError as error:
        raise CheckpointError(f"{path}: looking: {error}") from None
    node = configuration(place)
    return EpisodeModel(surrogate, reading, method, seed, dict(settings), node, changes, None, dict(card))


def _reading(plain: object, path: Path) -> EpisodeReading:
    """How episodes are read."""
    known = _part(plain, f"{path}: reading")
    step, first, kept = known.get("step"), known.get("first"), known.get("keep_last", 1)
    amounts = known.get("amounts", {})
    sound = isinstance(step, int | float) and _number(step) and step > 0
    if (
        not isinstance(known.get("task"), Mapping)
        or not sound
        or not (first is None or _whole(first, -(2**63), 2**63))
        or not _whole(kept, 0, 2**31)
        or not (isinstance(amounts, Mapping) and all(map(_number, amounts.values())))
    ):
        raise CheckpointError(
            f"{path}: reading: expected a task, step (a length above 0), first and keep_last (whole "
            f"numbers) and amounts: {AGAIN}"
        )
    try:
        roles = episode_task(known["task"])
    except TaskError as error:
        raise CheckpointError(f"{path}: reading: {'; '.join(error.faults)}: {AGAIN}") from None
    if odd := [name for name in amounts if name not in [each.name for each in roles.actions]]:
        raise CheckpointError(f"{path}: reading: amounts: {odd[0]!r} is no action: {AGAIN}")
    return EpisodeReading(roles, float(step or 1), first, int(kept), dict(amounts))


def _same(surrogate: EpisodeSurrogate, roles: EpisodeRoles, path: Path) -> None:
    """Refuses a card that belongs to another model."""
    actions = tuple(each.name for each in roles.actions)
    try:
        surrogate.adopt(Columns(roles.names))
    except OtherQuestionError as error:
        raise CheckpointError(f"{path}: reading: {error}: {AGAIN}") from None
    if tuple(surrogate.dose_names) != actions:
        raise CheckpointError(
            f"{path}: reading: expected the actions {list(surrogate.dose_names)}; got {list(actions)}: "
            f"{AGAIN}"
        )


def _part(plain: object, where: str) -> dict[str, Any]:
    """A sealed part of the card."""
    try:
        return opened(plain, where)
    except PlainFileError as error:
        raise CheckpointError(f"{error}: {AGAIN}") from None


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e150


def _whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _harmless(plain: object) -> bool:
    """Whether plain data say nothing of what is built, and refer to nothing outside."""
    if isinstance(plain, Mapping):
        return all(
            isinstance(key, str) and not key.rpartition(".")[2].startswith("_") and _harmless(value)
            for key, value in plain.items()
        )
    if isinstance(plain, list):
        return all(map(_harmless, plain))
    if isinstance(plain, str):
        return "${" not in plain
    return plain is None or isinstance(plain, bool | int | float)
