"""Checkpoints: a folder that says what to build and what it has learnt.

    config.yaml           the surrogate's resolved configuration: classes of this package and plain values
    weights.safetensors   every tensor of its state (nothing else fits into the format)
    card.yaml             for people: data, command, seed, commit, versions, held-out numbers; the weights'
                          SHA-256

Loading runs no code from the folder. The configuration is read as plain YAML; each ``_target_`` is looked up
among the classes that this package itself defines, or a module that the caller trusts, and judged by the
object found, not by how its dotted path begins: a path that walks from one of our modules into something
imported there is refused. Weights are read without unpickling. What the configuration builds holds no more
numbers than the weights bring.

A checkpoint is refused, when it is written and when it is read, if its state is damaged: numbers that are not
finite, or sizes that do not belong together. The weights are written first and the card, with their SHA-256,
last, so that a folder that was left in the middle of writing is refused as well.

A checkpoint answers the question that it was fitted for: `load(folder, task=...)` compares
(`Surrogate.adopt`).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors
from torch import Tensor
from torch.random import fork_rng

from rehearsal_torch.data.part import Part
from rehearsal_torch.data.question import OtherQuestionError
from rehearsal_torch.data.sizes import allowance
from rehearsal_torch.files.dotted import defined_in, mappings
from rehearsal_torch.files.plain import PlainFileError, read_yaml
from rehearsal_torch.files.writing import write_bytes, write_text
from rehearsal_torch.surrogates.surrogate import Surrogate

PACKAGE = "rehearsal_torch"
# Bytes of weights.safetensors.
LARGEST = 4 * 2**30


class CheckpointError(ValueError):
    """A folder that is no checkpoint, is damaged, or asks for what loading never does."""


def save(
    surrogate: Surrogate, config: Mapping[str, Any], folder: str | Path, card: Mapping[str, Any] | None = None
) -> Path:
    """Writes a checkpoint.

    Args:
        surrogate: What was fitted.
        config: The resolved ``surrogate`` node that builds it: plain dictionaries, lists, numbers and texts.
        folder: Where to; made if missing, files of the same names replaced.
        card: What to tell people about it; plain data.

    Returns:
        The folder.

    Raises:
        CheckpointError: if the configuration would be refused by `load`, or builds another state than the
            surrogate has, or the state is damaged: numbers that are not finite, say. Nothing is written then.
    """
    folder = Path(folder)
    # Tensors that share memory are written one by one.
    state = {
        name: tensor.detach().cpu().contiguous().clone() for name, tensor in surrogate.state_dict().items()
    }
    _sound(
        surrogate, f"this {type(surrogate).__name__}", "Fit it to finite, complete data; nothing was written"
    )
    weights = write_tensors(state)
    if len(weights) > LARGEST:
        remedy = "fit to fewer rows, or choose a method that keeps fewer, such as decision=cme_nystrom"
        raise CheckpointError(
            f"expected weights of at most {LARGEST // 2**30} GiB; got {len(weights) / 2**30:.1f}: {remedy}"
        )
    _fill(_savable(config, surrogate), state, "the surrogate")
    plain = dict(card or {}) | {"weights_sha256": hashlib.sha256(weights).hexdigest()}
    # The card last: until it is there, the old card's SHA-256 refuses the new weights.
    write_bytes(folder / "weights.safetensors", weights)
    for name, content in (("config.yaml", dict(config)), ("card.yaml", plain)):
        write_text(folder / name, yaml.safe_dump(content, sort_keys=False))
    return folder


def savable(config: Mapping[str, Any], surrogate: Surrogate) -> None:
    """Whether what a configuration builds can be saved once it is fitted; to be asked before a long training.
    Draws no random numbers.

    Args:
        config: The resolved ``surrogate`` node.
        surrogate: What it has built.

    Raises:
        CheckpointError: if `save` would refuse the configuration: it names what is no surrogate or part, or
            builds something else.
    """
    _savable(config, surrogate)


def load(folder: str | Path, task: object = None, trusted: Sequence[str] = ()) -> Surrogate:
    """Reads a checkpoint, or the checkpoint of a run folder; runs no code from it.

    Args:
        folder: A checkpoint folder, or a run folder that holds one.
        task: What it is to be asked: a task or plain data of one, or, for episodes, the names of their
            columns. Compared with what was fitted for, field by field; what the fit did not use (bounds, say)
            is taken over. None does not compare.
        trusted: Modules outside this package, or single classes, as dotted names, that may be built where
            they are surrogates or parts; importing them runs their code, never the folder's.

    Returns:
        The surrogate, in evaluation mode, on the CPU.

    Raises:
        CheckpointError: if a file is missing or damaged, the folder wants something built that is not ours or
            larger than its weights, a number is not finite, sizes do not belong together, or it was fitted
            for another question than `task`.
    """
    folder = Path(folder)
    if not (folder / "config.yaml").exists() or (folder / "checkpoint").is_dir():
        folder = folder / "checkpoint"
    missing = [name for name in ("config.yaml", "weights.safetensors") if not (folder / name).is_file()]
    if missing:
        raise CheckpointError(
            f"{folder} holds no {' and no '.join(missing)}: expected a checkpoint or a run folder"
        )
    state = _weights(folder)
    with allowance(sum(tensor.numel() for tensor in state.values())):
        surrogate = _build(_plain(folder / "config.yaml"), str(folder / "config.yaml"), trusted)
    if not isinstance(surrogate, Surrogate):
        raise CheckpointError(
            f"expected a surrogate in {folder / 'config.yaml'}; got a {type(surrogate).__name__}"
        )
    where = str(folder / "weights.safetensors")
    _fill(surrogate, state, where)
    _sound(
        surrogate,
        where,
        "It was damaged, or belongs to another configuration: fetch or fit the checkpoint again",
    )
    if task is not None:
        try:
            surrogate.adopt(task)
        except OtherQuestionError as error:
            raise CheckpointError(f"{folder}: {error}") from error
    return surrogate.eval()


def card(folder: str | Path) -> dict[str, Any]:
    """What a checkpoint tells people about itself; empty where it has no card.

    Raises:
        CheckpointError: if the card is not plain YAML.
    """
    folder = Path(folder)
    return _card(folder if (folder / "card.yaml").exists() else folder / "checkpoint")


def annotate(folder: str | Path, notes: Mapping[str, Any]) -> None:
    """Adds to the card of a checkpoint what became known after it was saved; the card is replaced as a whole.

    Args:
        folder: A checkpoint folder.
        notes: Plain data; entries of the same names are replaced.

    Raises:
        CheckpointError: if there is no card that names the weights, or the notes would change which they are.
    """
    path, known = Path(folder) / "card.yaml", _card(Path(folder))
    if "weights_sha256" not in known:
        raise CheckpointError(
            f"expected a checkpoint's card that says the weights' SHA-256; got none in {path}"
        )
    if "weights_sha256" in notes:
        raise CheckpointError(f"expected notes for {path}; got weights_sha256, which `save` alone writes")
    kept = {name: value for name, value in known.items() if name != "weights_sha256"}
    content = kept | dict(notes) | {"weights_sha256": known["weights_sha256"]}
    write_text(path, yaml.safe_dump(content, sort_keys=False))


def _card(folder: Path) -> dict[str, Any]:
    path = folder / "card.yaml"
    content = _plain(path) if path.is_file() else {}
    if content is not None and not isinstance(content, Mapping):
        raise CheckpointError(f"{path} is not plain YAML of names and values; got a {type(content).__name__}")
    return dict(content or {})


def _plain(path: Path) -> Any:
    try:
        return read_yaml(path)
    except PlainFileError as error:
        raise CheckpointError(
            f"{error}; {path} is not plain YAML as {PACKAGE} writes it: it may have been tampered with"
        ) from error


def _weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of a folder, as the card knows them."""
    path, expected = folder / "weights.safetensors", _card(folder).get("weights_sha256")
    size = path.stat().st_size
    if size > LARGEST:
        raise CheckpointError(
            f"{path}: expected at most {LARGEST // 2**30} GiB; got {size / 2**30:.1f}: is it the file that "
            "was meant?"
        )
    weights = path.read_bytes()
    found = hashlib.sha256(weights).hexdigest()
    if expected is None:
        remedy = (
            "fetch the whole folder again, or, if you know where the weights come from, write into "
            f"card.yaml: weights_sha256: {found}"
        )
        raise CheckpointError(
            f"{folder / 'card.yaml'} does not say the weights' SHA-256, so that nothing shows whether they "
            f"are the ones meant: {remedy}"
        )
    if found != expected:
        raise CheckpointError(
            f"{path} is not the file that card.yaml was written for: fetch the checkpoint again"
        )
    try:
        return read_tensors(weights)
    except SafetensorError as error:
        raise CheckpointError(
            f"{path} holds no tensors in the safetensors format ({error}); nothing was read from it"
        ) from error


def _savable(config: Mapping[str, Any], surrogate: Surrogate) -> Surrogate:
    """What the configuration builds, if it is what was built; classes of one's own are here already, and are
    trusted.
    """
    kind = type(surrogate)
    with fork_rng(devices=[]):
        built = _build(dict(config), "config", foreign_modules(config))
    if type(built) is not kind:
        raise CheckpointError(
            f"expected a configuration that builds a {kind.__name__}; got one that builds "
            f"{type(built).__name__}"
        )
    return built


def _sound(surrogate: Surrogate, where: str, remedy: str) -> None:
    found = surrogate.faults()
    if found:
        more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
        raise CheckpointError(f"{where} cannot be used: {'; '.join(found[:5])}{more}. {remedy}")


def _fill(surrogate: Surrogate, state: Mapping[str, Any], where: str) -> None:
    try:
        surrogate.load_state_dict(dict(state))
    except RuntimeError as error:
        raise CheckpointError(
            f"{where} does not fit the configuration: {' '.join(str(error).split())}"
        ) from error


def foreign_modules(config: Mapping[str, Any]) -> list[str]:
    """The modules outside this package that a configuration names: those that loading must be told to trust.

    Args:
        config: Plain data with ``_target_``.
    """
    targets = [each.get("_target_") for _, each in mappings(config)]
    named = [text for text in targets if isinstance(text, str) and text.partition(".")[0] != PACKAGE]
    return list(dict.fromkeys(text.rpartition(".")[0] for text in named if "." in text))


def _build(node: Any, where: str, trusted: Sequence[str]) -> Any:
    """A configuration node as objects: dictionaries with a target become ours, everything else stays
    plain.
    """
    if isinstance(node, list):
        return [_build(item, f"{where}[{index}]", trusted) for index, item in enumerate(node)]
    if not isinstance(node, dict):
        return node
    if "_target_" not in node:
        return {key: _build(value, f"{where}.{key}", trusted) for key, value in node.items()}
    foreign_classes = [
        key
        for key in node
        if not isinstance(key, str) or (key.startswith("_") and key not in ("_target_", "_partial_"))
    ]
    if foreign_classes:
        raise CheckpointError(
            f"{where}: unknown instruction {foreign_classes}; a checkpoint has only _target_ and _partial_"
        )
    made = _known(node["_target_"], where, trusted)
    arguments = {
        key: _build(value, f"{where}.{key}", trusted)
        for key, value in node.items()
        if not key.startswith("_")
    }
    if node.get("_partial_", False):
        return partial(made, **arguments)
    try:
        return made(**arguments)
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError, ArithmeticError) as error:
        raise CheckpointError(f"{where}: cannot build {node['_target_']} ({error})") from error


def _known(target: Any, where: str, trusted: Sequence[str]) -> Callable[..., Any]:
    """The class behind a dotted path, if this package, or a trusted module, defines it as something that is
    built from a configuration.
    """
    named = [str(target).rpartition(".")[0]] if target in trusted else []
    found = defined_in(target, (PACKAGE, *trusted, *named))
    if not isinstance(found, type) or not issubclass(found, Part | Surrogate):
        also = f", {', '.join(trusted)}" if trusted else ""
        raise CheckpointError(
            f"{where} wants to build {target!r}, which is no surrogate or part of {PACKAGE}{also}; nothing "
            f"was built. Load only checkpoints that {PACKAGE} wrote; a class of your own is built where its "
            "module is named: load(folder, trusted=['my_lab'])"
        )
    return found
