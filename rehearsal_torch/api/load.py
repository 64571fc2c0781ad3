"""Saved models: a checkpoint with the method by which it decides.

    config.yaml, weights.safetensors, card.yaml     the checkpoint (`rehearsal_torch.checkpoint`)
    method.yaml                                     objective, search, seed, strengths of covariates, units of
                                                    variables, and which bounds were left behind
    graphs/0, graphs/1, ...                         where the graph is doubted, checkpoints of the fits under
                                                    others

Loading runs no code from the folder: objective and search must be classes of this package, or of a module
that the caller trusts, and no configuration files are read. The card holds the SHA-256 of method.yaml, as it
holds that of the weights, so that files of two models are never mixed.
"""

import hashlib
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from rehearsal_torch.api.episode_model import CHANGES, LOOKING_BACK, EpisodeModel, EpisodeReading
from rehearsal_torch.api.episode_query import GROUPS, TAKEN
from rehearsal_torch.api.fit_and_decide import configuration as method_configuration
from rehearsal_torch.api.fit_and_decide import in_words
from rehearsal_torch.api.rehearsal_model import LIMITS, NODES, SHA, RehearsalModel, intended_use, left_behind
from rehearsal_torch.checkpoint import METHOD, UNDER, CheckpointError, configuration
from rehearsal_torch.checkpoint import card as card_of
from rehearsal_torch.checkpoint import load as load_surrogate
from rehearsal_torch.claims.graph_robustness import Doubts
from rehearsal_torch.data.graph_check import Refuted
from rehearsal_torch.data.problem_file.diagnostics import TaskError
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.data.size_limits import LARGEST_SEED, check_seed
from rehearsal_torch.data.task_compatibility import Columns, OtherQuestionError
from rehearsal_torch.evaluation.run_record import Decided, Recorded, read
from rehearsal_torch.files.bounded_yaml import PlainFileError, opened, yaml_of
from rehearsal_torch.files.dotted_path import defined_in, mappings
from rehearsal_torch.graphs.equivalence import signature
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.methods.hydra_config import plain
from rehearsal_torch.methods.instantiate import made, pooled
from rehearsal_torch.methods.presets import check_method
from rehearsal_torch.methods.run_parts import Method, method_of, suits
from rehearsal_torch.problems.sequences.sequence_schema import SequenceProblem
from rehearsal_torch.reporting.page.page_content import finite, mapping
from rehearsal_torch.search.search import Search
from rehearsal_torch.surrogates.imputation_ensemble import ImputedSurrogate
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate, Surrogate
from rehearsal_torch.surrogates.tipping_strength import RecordedStrengths
from rehearsal_torch.user_error import RequestWarning, UserError

READING = "reading"
ROOMS = {"objective": "rehearsal_torch.objectives", "search": "rehearsal_torch.search"}
INSTRUCTIONS = ("_target_", "_partial_")
LARGEST = 2**20
# Fits under other graphs that a folder may have.
MOST_FITS = 20
AGAIN = "fetch the model again, or save it again"


def load(
    folder: str | Path, task: object = None, trusted: Sequence[str] = ()
) -> Surrogate | RehearsalModel | EpisodeModel:
    """Reads a saved model, a checkpoint, or the checkpoint of a run folder; runs no code from it. A
    CheckpointError if a file is missing or damaged, belongs to another model, asks for an untrusted class, or
    was fitted for another question than `task`, naming the differing fields.

    Args:
        folder: The folder of a model (`RehearsalModel.save`), of a checkpoint, or of a run.
        task: The question to answer: a task or its plain data, or, for episodes, their column names. It is
            compared with the task of the fit, field by field; fields that the fit did not use (such as
            bounds) are taken over. None skips the comparison.
        trusted: Modules outside this package, or single classes, as dotted names, whose classes may be built;
            importing them runs their code, never code from the folder.

    Returns:
        The model, ready to decide or to look back: of a saved model, or of a run on cases or episodes. Of a
        checkpoint alone, of trials and of online runs, the surrogate, in evaluation mode.

    Warns:
        RequestWarning: what the decisions of a run rest on besides the model that is returned.
    """
    folder = Path(folder)
    surrogate = load_surrogate(folder, task, trusted)
    card = card_of(folder)
    if isinstance(surrogate, EpisodeSurrogate) and READING in card:
        return model_of(folder, surrogate, card)
    if SHA in card:
        return _saved(folder, surrogate, card, trusted)
    return surrogate if (model := _model_of_run_folder(folder, surrogate, card, trusted)) is None else model


def _model_of_run_folder(
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
    reasons = [mapping(decision.get("reason")).get("kind") for decision in run.decisions]
    for sentence in notes(run.config, "refuted_graph" in reasons):
        warnings.warn(sentence, RequestWarning, stacklevel=3)
    return model


def _saved(folder: Path, surrogate: Any, card: dict[str, Any], trusted: Sequence[str]) -> RehearsalModel:
    path = folder / METHOD
    content = _method_content(path, card[SHA])
    for group, room in ROOMS.items():
        _check_class(content[group], group, room, trusted, path)
    if not isinstance(surrogate, RehearsalSurrogate):
        raise CheckpointError(
            f"{path}: expected a model of a rehearsal task beside it; got a {type(surrogate).__name__}"
        )
    doubts = _doubts(content.get("doubts"), folder, surrogate.task, trusted)
    with in_words():
        objective, search = (made(content[group], group) for group in ROOMS)
        if not isinstance(search, Search):
            raise CheckpointError(f"{path}: search: expected a search; got a {type(search).__name__}")
        method = Method(objective, search, None)
        suits(method, surrogate)
    return RehearsalModel(
        surrogate,
        method,
        {"surrogate": configuration(folder), **{group: content[group] for group in ROOMS}},
        str(card.get("method", "")),
        content["seed"],
        RecordedStrengths(surrogate.task, _strengths(content["strengths"], path)),
        lambda: card,
        bounds_left=content["left"],
        units=content["units"],
        doubts=doubts,
    )


def _doubts(content: object, folder: Path, task: RehearsalTask, trusted: Sequence[str]) -> Doubts | None:
    """What is doubted of the graph, with the fits that the folder has under other graphs."""
    if content is None:
        return None
    record, fits = mapping(content), dict[Hashable, RehearsalSurrogate]()
    try:
        refuted = tuple(_refuted(arrow) for arrow in record["refuted"])
        members, count = bool(record["members"]), range(min(int(record["fits"]), MOST_FITS))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{folder / METHOD}: doubts: cannot be read ({error}): {AGAIN}") from None
    for index in count:
        surrogate: Any = load_surrogate(folder / UNDER / str(index), None, trusted)
        # Bounds that the caller gave count under every graph.
        surrogate.adopt(replace(task, graph=surrogate.task.graph))
        fits[signature(surrogate.task.graph)] = surrogate

    def missing_fit(graph: RehearsalGraph) -> RehearsalSurrogate:
        raise CheckpointError(f"{folder}: holds no fit under {graph.to_plain()}: {AGAIN}")

    return Doubts(refuted, members, missing_fit, fits)


def _refuted(plain: Mapping[str, Any]) -> Refuted:
    """A refuted arrow from plain data; KeyError, TypeError or ValueError if it is invalid."""
    sets = {name: tuple(map(str, plain[name])) for name in ("first", "second", "given")}
    size, lower, upper, p = (float(plain[name]) for name in ("size", "lower", "upper", "p"))
    return Refuted(**sets, size=size, lower=lower, upper=upper, p=p, claims=int(plain["claims"]))


def _method_content(path: Path, expected: object) -> dict[str, Any]:
    """The content of method.yaml, if it is the file that the card was written for."""
    try:
        size = path.stat().st_size
        content_bytes = path.read_bytes() if size <= LARGEST else b""
    except OSError as error:
        raise CheckpointError(
            f"{path} is missing ({error.strerror}), which the card names: fetch the whole folder again"
        ) from error
    if hashlib.sha256(content_bytes).hexdigest() != expected:
        raise CheckpointError(f"{path} is not the file that card.yaml was written for: {AGAIN}")
    try:
        content = yaml_of(content_bytes.decode(), str(path))
    except (PlainFileError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is not plain YAML ({error}): fetch the model again") from error
    kinds = {"objective": dict, "search": dict, "seed": int, "strengths": list, "units": dict, "left": str}
    faults = [
        f"{name}: expected a {kind.__name__}"
        for name, kind in kinds.items()
        if not isinstance(content, dict) or type(content.get(name)) is not kind
    ]
    if not faults:
        try:
            check_seed(content["seed"])
        except ValueError as error:
            faults = [str(error)]
    if not faults and not all(isinstance(text, str) for pair in content["units"].items() for text in pair):
        faults = ["units: expected names of variables with texts"]
    if faults:
        raise CheckpointError(f"{path}: {'; '.join(faults)}: {AGAIN}")
    return content


def _check_class(node: Mapping[str, Any], group: str, room: str, trusted: Sequence[str], path: Path) -> None:
    """Refuses everything that would build something else than a class of a room, or of a trusted module."""
    for where, mapping_at in mappings(node, group):
        instructions = [key for key in mapping_at if str(key).startswith("_") and key not in INSTRUCTIONS]
        if instructions or any(isinstance(value, str) and "${" in value for value in mapping_at.values()):
            raise CheckpointError(
                f"{path}: {where}: unknown instruction {instructions or 'in ${...}'}; nothing was built"
            )
        target = mapping_at.get("_target_")
        if where != group and target is None:
            continue
        module = [str(target).rpartition(".")[0]] if target in trusted else []
        if not isinstance(defined_in(target, (room, *trusted, *module)), type):
            raise CheckpointError(
                f"{path}: {where} asks to build {target!r}, which is not a class of {room}; nothing was "
                "built. Load only models that rehearsal_torch wrote; to load a class of your own, name its "
                "module: load(folder, trusted=['my_lab'])"
            )


def _strengths(plain: list[Any], path: Path) -> dict[tuple[str, ...], Mapping[str, float] | None]:
    strengths: dict[tuple[str, ...], Mapping[str, float] | None] = {}
    for entry in plain:
        names, covariates = (mapping(entry).get(key) for key in ("altered", "covariates"))
        sound = isinstance(names, list) and all(isinstance(name, str) for name in names)
        sound = sound and all(
            isinstance(name, str) and type(strength) is float and strength >= 1
            for name, strength in mapping(covariates).items()
        )
        if not sound:
            raise CheckpointError(
                f"{path}: strengths: expected altered variables, with numbers of at least 1 for their "
                f"covariates: {AGAIN}"
            )
        strengths[tuple(names or ())] = covariates if isinstance(covariates, dict) else None
    return strengths


NEEDED = ("objective", "search", "seed")


def needed(run: Recorded, names: tuple[str, ...] = NEEDED) -> None:
    """Refuses online runs, whose checkpoint answers for no round, and incomplete configurations."""
    folder = str(run.path)
    if run.config.get("learn"):
        fault = "is an online run, which fits again after every round: its checkpoint answers for no round"
        raise UserError(fault, folder)
    if absent := [name for name in names if name not in run.config]:
        fault = f"config.yaml has no {' and no '.join(absent)}"
        raise UserError(fault, folder, "Restore the file from a copy")


def model_of_run(
    run: Recorded,
    surrogate: object,
    node: Mapping[str, Any],
    card: Mapping[str, Any],
    trusted: Sequence[str] = (),
) -> RehearsalModel:
    """The model of a run from surrogate, configuration `node` and card; UserError if parts are missing."""
    needed(run)
    seed = run.config["seed"]
    try:
        check_seed(seed)
    except ValueError as error:
        raise UserError(f"config.yaml: {error}", str(run.path), "Restore the file from a copy") from None
    if not isinstance(surrogate, RehearsalSurrogate):
        kind = type(surrogate).__name__
        raise UserError(f"expected the model of a rehearsal task; got a {kind}", str(run.path))
    config = OmegaConf.create({**run.config, "trusted": list(trusted)})
    with in_words():
        if isinstance(surrogate, ImputedSurrogate):
            pooled(config, len(surrogate.each))
        method = method_of(config)
        suits(method, surrogate)
    nodes = plain(config)
    own_bounds = {name for decision in run.decisions for name in mapping(decision.get("bounds"))}
    name, use = run.choices.get("decision", ""), intended_use(surrogate.task)
    held_out = "see the report of the run"
    card_fields = {"intended_use": use, "limits": list(LIMITS), "held_out": held_out, "method": name}
    return RehearsalModel(
        surrogate,
        method,
        {**{group: nodes.get(group, {}) for group in NODES}, "surrogate": dict(node)},
        name,
        seed,
        RecordedStrengths(surrogate.task, _decided_strengths(run.decisions)),
        lambda: {**card_fields, **card},
        bounds_left=left_behind("cases of this run have of their own", own_bounds, surrogate.task),
        units={name: str(unit) for name, unit in mapping(run.words.get("units_of")).items() if unit},
    )


def notes(config: Mapping[str, Any], refuted: bool = False) -> list[str]:
    """What the decisions of a run rest on besides its model; `refuted` if rows contradict the graph."""
    texts = []
    if config.get("claims") == "cross_fitted":
        texts.append(
            "The decisions of this run have claims from rows that did not choose (claims=cross_fitted). The "
            "numbers here are the method's own, and may be too optimistic for actions that it chose itself."
        )
    if mapping(config.get("certificate")):
        texts.append("Certificates are not computed here; those of the decisions are in the run's report.")
    if config.get("graphs"):
        texts.append("The other graphs that may be true (graphs=...) are not judged here.")
    if refuted:
        texts.append(
            "The rows of this run contradict its graph. What becomes of a decision with what is missing "
            "drawn is not judged here: it may be recommended where the run withdrew it."
        )
    return texts


def _decided_strengths(decisions: Sequence[Decided]) -> dict[tuple[str, ...], Mapping[str, float] | None]:
    """The strongest covariate for each set of variables that a decision of the run alters."""
    strengths: dict[tuple[str, ...], Mapping[str, float] | None] = {}
    for decision in decisions:
        sensitivity = mapping(decision.get("sensitivity"))
        strength, covariate = finite(sensitivity.get("yardstick")), sensitivity.get("covariate")
        if strength is not None and strength >= 1 and isinstance(covariate, str) and covariate:
            strengths[tuple(mapping(decision.get("alteration")))] = {covariate: strength}
    return strengths


MOST_CHANGES = 10_000


def model_of(folder: Path, surrogate: EpisodeSurrogate, card: Mapping[str, Any]) -> EpisodeModel:
    """The model of a checkpoint, or of a run folder with one, whose card says how episodes are read."""
    checkpoint_folder = folder if (folder / "card.yaml").is_file() else folder / "checkpoint"
    path = checkpoint_folder / "card.yaml"
    reading = _reading(card["reading"], path)
    actions = tuple(action.name for action in reading.roles.actions)
    try:
        surrogate.adopt(Columns(reading.roles.names))
    except OtherQuestionError as error:
        raise CheckpointError(f"{path}: reading: {error}: {AGAIN}") from None
    if (doses := tuple(surrogate.dose_names)) != actions:
        raise CheckpointError(
            f"{path}: reading: expected the actions {list(doses)}; got {list(actions)}: {AGAIN}"
        )
    looking = _opened_part(card["looking"], f"{path}: looking") if "looking" in card else {}
    method, changes = looking.get("method", LOOKING_BACK), looking.get("changes", CHANGES)
    settings, seed = looking.get("settings", {}), 0 if card.get("seed") is None else card["seed"]
    if not _is_whole(changes, 0, MOST_CHANGES) or not _is_whole(seed, 0, LARGEST_SEED):
        expected = f"expected whole numbers of changes (at most {MOST_CHANGES}) and seed"
        raise CheckpointError(f"{path}: {expected}; got {changes!r} and {seed!r}: {AGAIN}")
    if not isinstance(settings, Mapping) or not _is_plain_setting(settings):
        raise CheckpointError(
            f"{path}: looking.settings: expected names and plain values, none of which says what is built; "
            f"nothing was built: {AGAIN}"
        )
    try:
        with in_words():
            check_method(method if isinstance(method, str) else str(method), "look_back")
            if argument_keys := [key for key in settings if key in TAKEN]:
                raise ValueError(f"settings: {argument_keys[0]!r} is none that a model keeps")
            # Values of a wrong kind are refused here, and not when somebody asks.
            method_of(method_configuration(method, dict(settings), GROUPS))
    except ValueError as error:
        raise CheckpointError(f"{path}: looking: {error}") from None
    node = configuration(checkpoint_folder)
    return EpisodeModel(surrogate, reading, method, seed, dict(settings), node, changes, None, dict(card))


def _reading(plain: object, path: Path) -> EpisodeReading:
    record = _opened_part(plain, f"{path}: reading")
    step, first, keep_last = record.get("step"), record.get("first"), record.get("keep_last", 1)
    amounts = record.get("amounts", {})
    valid = (
        isinstance(record.get("task"), Mapping)
        and isinstance(step, int | float)
        and (_is_number(step) and step > 0)
        and (first is None or _is_whole(first, -(2**63), 2**63))
        and _is_whole(keep_last, 0, 2**31)
        and (isinstance(amounts, Mapping) and all(map(_is_number, amounts.values())))
    )
    if not valid:
        raise CheckpointError(
            f"{path}: reading: expected a task, step (a length above 0), first and keep_last (whole "
            f"numbers) and amounts: {AGAIN}"
        )
    try:
        roles = SequenceProblem.of(record["task"]).roles()
    except TaskError as error:
        raise CheckpointError(f"{path}: reading: {'; '.join(error.faults)}: {AGAIN}") from None
    if unknown := [name for name in amounts if name not in [action.name for action in roles.actions]]:
        raise CheckpointError(f"{path}: reading: amounts: {unknown[0]!r} is no action: {AGAIN}")
    return EpisodeReading(roles, float(step or 1), first, int(keep_last), dict(amounts))


def _opened_part(plain: object, where: str) -> dict[str, Any]:
    try:
        return opened(plain, where)
    except PlainFileError as error:
        raise CheckpointError(f"{error}: {AGAIN}") from None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e150


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_plain_setting(plain: object) -> bool:
    """Whether plain data say nothing of what is built, and refer to nothing outside."""
    if isinstance(plain, Mapping):
        keys = all(isinstance(key, str) and not key.rpartition(".")[2].startswith("_") for key in plain)
        return keys and all(map(_is_plain_setting, plain.values()))
    if isinstance(plain, list):
        return all(map(_is_plain_setting, plain))
    return "${" not in plain if isinstance(plain, str) else isinstance(plain, bool | int | float | None)
