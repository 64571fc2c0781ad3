"""Saved models: a checkpoint with the method by which it decides.

    config.yaml, weights.safetensors, card.yaml     the checkpoint (`rehearsal_torch.checkpoint`)
    method.yaml                                     objective, search, seed, strengths of covariates, units of
                                                    variables, and which bounds were left behind

Loading runs no code from the folder: objective and search must be classes of this package, or of a module
that the caller trusts, and no configuration files are read. The card holds the SHA-256 of method.yaml, as it
holds that of the weights, so that files of two models are never mixed.
"""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal_torch.api.configured import in_words
from rehearsal_torch.api.episode_model import EpisodeModel
from rehearsal_torch.api.rehearsal_model import SHA, RehearsalModel
from rehearsal_torch.api.saving.saved_episodes import model_of
from rehearsal_torch.api.saving.saved_folder import METHOD
from rehearsal_torch.api.saving.saved_run import model_of_run, notes
from rehearsal_torch.checkpoint import CheckpointError, configuration
from rehearsal_torch.checkpoint import card as card_of
from rehearsal_torch.checkpoint import load as load_surrogate
from rehearsal_torch.data.sizes import check_seed
from rehearsal_torch.evaluation.recorded_run import read
from rehearsal_torch.files.dotted import defined_in, mappings
from rehearsal_torch.files.plain import PlainFileError, yaml_of
from rehearsal_torch.methods.build import made
from rehearsal_torch.methods.run import Method, suits
from rehearsal_torch.search.search import Search
from rehearsal_torch.surrogates.overturning import RecordedStrengths
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate, Surrogate
from rehearsal_torch.user_error import RequestWarning, UserError

READING = "reading"
ROOMS = {"objective": "rehearsal_torch.objectives", "search": "rehearsal_torch.search"}
INSTRUCTIONS = ("_target_", "_partial_")
LARGEST = 2**20


def load(
    folder: str | Path, task: object = None, trusted: Sequence[str] = ()
) -> Surrogate | RehearsalModel | EpisodeModel:
    """Reads a saved model, a checkpoint, or the checkpoint of a run folder; runs no code from it.

    Args:
        folder: The folder of a model (`RehearsalModel.save`), of a checkpoint, or of a run.
        task: The question to answer: a task or its plain data, or, for episodes, their column names. It is
            compared with the task of the fit, field by field; fields that the fit did not use (such as
            bounds) are taken over. None skips the comparison.
        trusted: Modules outside this package, or single classes, as dotted names, whose classes may be built;
            importing them runs their code, never code from the folder.

    Returns:
        The model, ready to decide or to look back: that of a saved model, or of the folder of a run on cases
        or on a table of episodes. Of a checkpoint alone, of trials and of online runs, the surrogate, in
        evaluation mode.

    Warns:
        RequestWarning: what the decisions of a run rest on besides the model that is returned.

    Raises:
        CheckpointError: if a file is missing or damaged, belongs to another model, or asks for a class that
            is not trusted; or if it was fitted for another question than `task`, naming each field that
            differs.
    """
    folder = Path(folder)
    surrogate = load_surrogate(folder, task, trusted)
    card = card_of(folder)
    if isinstance(surrogate, EpisodeSurrogate) and READING in card:
        return model_of(folder, surrogate, card)
    if SHA in card:
        return _model(folder, surrogate, card, trusted)
    return surrogate if (found := _of_run(folder, surrogate, card, trusted)) is None else found


def _of_run(
    folder: Path, surrogate: Any, card: Mapping[str, Any], trusted: Sequence[str]
) -> RehearsalModel | None:
    """The model of the folder of a run on cases; None for other folders, and for online runs."""
    if not isinstance(surrogate, RehearsalSurrogate) or not (folder / "run.json").is_file():
        return None
    try:
        run = read(folder)
        if run.kind != "rehearse" or run.config.get("learn"):
            return None
        model = model_of_run(run, surrogate, configuration(folder / "checkpoint"), card, trusted)
    except (UserError, ValueError) as error:
        raise CheckpointError(f"{error} (the surrogate alone: load {folder / 'checkpoint'})") from None
    for sentence in notes(run.config):
        warnings.warn(sentence, RequestWarning, stacklevel=3)
    return model


def _model(folder: Path, surrogate: Any, card: dict[str, Any], trusted: Sequence[str]) -> RehearsalModel:
    path = folder / METHOD
    content = _content(path, card[SHA])
    for group, room in ROOMS.items():
        _allowed(content[group], group, room, trusted, path)
    if not isinstance(surrogate, RehearsalSurrogate):
        raise CheckpointError(
            f"{path}: expected a model of a rehearsal task beside it; got a {type(surrogate).__name__}"
        )
    with in_words():
        objective, search = (made(content[group], group) for group in ROOMS)
        if not isinstance(search, Search):
            raise CheckpointError(f"{path}: search: expected a search; got a {type(search).__name__}")
        method = Method(objective, search, None)
        suits(method, surrogate)
    nodes = {"surrogate": configuration(folder), **{group: content[group] for group in ROOMS}}
    overturning = RecordedStrengths(surrogate.task, _strengths(content["strengths"], path))
    return RehearsalModel(
        surrogate,
        method,
        nodes,
        str(card.get("method", "")),
        content["seed"],
        overturning,
        lambda: card,
        bounds_left=content["left"],
        units=content["units"],
    )


def _content(path: Path, expected: object) -> dict[str, Any]:
    """The content of method.yaml, if it is the file that the card was written for."""
    try:
        size = path.stat().st_size
        written = path.read_bytes() if size <= LARGEST else b""
    except OSError as error:
        raise CheckpointError(
            f"{path} is missing ({error.strerror}), which the card names: fetch the whole folder again"
        ) from error
    if hashlib.sha256(written).hexdigest() != expected:
        raise CheckpointError(
            f"{path} is not the file that card.yaml was written for: fetch the model again, or save it again"
        )
    try:
        content = yaml_of(written.decode(), str(path))
    except (PlainFileError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is not plain YAML ({error}): fetch the model again") from error
    kinds = {"objective": dict, "search": dict, "seed": int, "strengths": list, "units": dict, "left": str}
    wrong = [
        f"{name}: expected a {kind.__name__}"
        for name, kind in kinds.items()
        if not isinstance(content, dict) or type(content.get(name)) is not kind
    ]
    if not wrong:
        try:
            check_seed(content["seed"])
        except ValueError as error:
            wrong = [str(error)]
    if not wrong and not all(isinstance(text, str) for pair in content["units"].items() for text in pair):
        wrong = ["units: expected names of variables with texts"]
    if wrong:
        raise CheckpointError(f"{path}: {'; '.join(wrong)}: fetch the model again, or save it again")
    return content


def _allowed(node: Mapping[str, Any], group: str, room: str, trusted: Sequence[str], path: Path) -> None:
    """Refuses everything that would build something else than a class of a room, or of a trusted module."""
    for where, each in mappings(node, group):
        odd = [key for key in each if str(key).startswith("_") and key not in INSTRUCTIONS]
        if odd or any(isinstance(value, str) and "${" in value for value in each.values()):
            raise CheckpointError(
                f"{path}: {where}: unknown instruction {odd or 'in ${...}'}; nothing was built"
            )
        target = each.get("_target_")
        if where != group and target is None:
            continue
        named = [str(target).rpartition(".")[0]] if target in trusted else []
        if not isinstance(defined_in(target, (room, *trusted, *named)), type):
            raise CheckpointError(
                f"{path}: {where} asks to build {target!r}, which is not a class of {room}; nothing was "
                "built. Load only models that rehearsal_torch wrote; to load a class of your own, name its "
                "module: load(folder, trusted=['my_lab'])"
            )


def _strengths(plain: list[Any], path: Path) -> dict[tuple[str, ...], Mapping[str, float] | None]:
    """The strengths of covariates by altered variables."""
    found: dict[tuple[str, ...], Mapping[str, float] | None] = {}
    for each in plain:
        names = each.get("altered") if isinstance(each, dict) else None
        known = each.get("covariates") if isinstance(each, dict) else None
        fits = isinstance(names, list) and all(isinstance(name, str) for name in names)
        pairs = known.items() if isinstance(known, dict) else ()
        if not fits or not all(
            isinstance(name, str) and type(one) is float and one >= 1 for name, one in pairs
        ):
            raise CheckpointError(
                f"{path}: strengths: expected altered variables, with numbers of at least 1 for their "
                "covariates: fetch the model again, or save it again"
            )
        found[tuple(names or ())] = known if isinstance(known, dict) else None
    return found
