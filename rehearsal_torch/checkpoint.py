"""Checkpoints: a fitted surrogate saved as a folder of configuration, weights and model card.

    config.yaml           the surrogate's resolved configuration: classes of this package and plain values
    weights.safetensors   the tensors of its state, and labels: format, version, class, fingerprints of
                          question and data, seed, commit (`surrogates.state_file`)
    card.yaml             for readers: data, command, seed, commit, versions, held-out metrics; the SHA-256 of
                          the weights

Loading runs no code from the folder. The configuration is read as plain YAML; each ``_target_`` must be a
class that this package, or a module that the caller trusts, defines itself. The object found decides, not the
prefix of its dotted path: a path that leads from one of our modules to something imported there is refused.
Weights are read without unpickling. The built surrogate may hold no more numbers than the weights file.

A damaged state (non-finite numbers, inconsistent sizes) is refused on writing and on reading. The weights
are written first and the card, with their SHA-256, last, so that a partly written folder is refused as well.

The labels say what a weights file is where it is found alone. They are compared with what the configuration
builds: another class, another question, or another format is refused. Weights without labels
are read without that comparison.

Tensors that loading can compute from the others, to the last bit, are left out (`surrogates.state_file`):
factors of kernel matrices, above all. Those that a file has are taken from it.

A checkpoint is valid for the question that it was fitted for: `load(folder, task=...)` compares them
(`Surrogate.adopt`).
"""

import hashlib
import shutil
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

from rehearsal_torch.data.size_limits import allowance
from rehearsal_torch.data.task_compatibility import OtherQuestionError
from rehearsal_torch.data.trainable_part import Part, non_finite, shared_faults
from rehearsal_torch.files.atomic_write import write_bytes, write_text
from rehearsal_torch.files.bounded_yaml import PlainFileError, read_yaml
from rehearsal_torch.files.dotted_path import defined_in, mappings
from rehearsal_torch.files.redaction import InputError
from rehearsal_torch.run_folder import write_folder
from rehearsal_torch.surrogates.state_file import (
    DerivationError,
    compute_derived,
    labelled,
    labels_in,
    odd_label,
    weight_labels,
    with_absent,
    without_derived,
)
from rehearsal_torch.surrogates.surrogate import Surrogate

PACKAGE = "rehearsal_torch"
# Bytes of weights.safetensors, together with the tensors that it leaves out.
LARGEST = 4 * 2**30


class CheckpointError(InputError):
    """A folder that is not a checkpoint, is damaged, or requests something that loading refuses."""


def save(
    surrogate: Surrogate, config: Mapping[str, Any], folder: str | Path, card: Mapping[str, Any] | None = None
) -> Path:
    """Writes a checkpoint.

    Args:
        config: The resolved ``surrogate`` node that builds it: plain dictionaries, lists, numbers and
            strings.
        folder: The target folder; created if missing, existing files of the same names are replaced.
        card: The model card, as plain data.

    Raises:
        CheckpointError: if `load` would refuse the configuration, or it builds another state than the
            surrogate has, or the state is damaged (non-finite numbers, for example). Nothing is written then.
    """
    folder = Path(folder)
    # Tensors that share memory are written one by one.
    state = {
        name: tensor.detach().cpu().contiguous().clone() for name, tensor in surrogate.state_dict().items()
    }
    check_usable(surrogate)
    built = savable(config, surrogate)
    _fill(built, state, "the surrogate")
    size = sum(tensor.nbytes for tensor in state.values())
    if size > LARGEST:
        remedy = "fit to fewer rows, or choose a method that keeps fewer, such as decision=cme_nystrom"
        raise CheckpointError(
            f"expected weights of at most {LARGEST // 2**30} GiB; got {size / 2**30:.1f}: {remedy}"
        )
    written = without_derived(built, state, LARGEST)
    weights = labelled(write_tensors(written), weight_labels(built, card or {}))
    plain = dict(card or {}) | {"weights_sha256": hashlib.sha256(weights).hexdigest()}
    # The card last: until it is there, the old card's SHA-256 refuses the new weights.
    write_bytes(folder / "weights.safetensors", weights)
    for name, content in (("config.yaml", dict(config)), ("card.yaml", plain)):
        write_text(folder / name, yaml.safe_dump(content, sort_keys=False))
    return folder


def check_usable(surrogate: Surrogate) -> None:
    """Refuses a fitted surrogate whose state is damaged (non-finite numbers, inconsistent sizes)."""
    remedy = "Fit it to finite, complete data; nothing was written"
    _usable(surrogate.faults(), f"this {type(surrogate).__name__}", remedy)


def savable(config: Mapping[str, Any], surrogate: Surrogate) -> Surrogate:
    """The unfitted surrogate that a resolved ``surrogate`` node builds: checked before a long training, so
    that `save` will not refuse it. Draws no random numbers; user-defined classes are already imported, and
    are trusted.
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


def load(
    folder: str | Path, task: object = None, trusted: Sequence[str] = (), fitted: Surrogate | None = None
) -> Surrogate:
    """Reads a checkpoint, or the checkpoint of a run folder; runs no code from it.

    Args:
        folder: A checkpoint folder, or a run folder that holds one.
        task: The question to answer, as in `rehearsal_torch.load`; None skips the comparison.
        trusted: Modules and classes whose surrogates and parts may be built, as there.
        fitted: One with this state, as `save` has just written it: its derived tensors are taken over.

    Returns:
        The surrogate, in evaluation mode, on the CPU.

    Raises:
        CheckpointError: if a file is missing or damaged, the configuration names a class that is not trusted
            or builds more numbers than the weights hold, a number is not finite, sizes are inconsistent, or
            it was fitted for another question than `task`.
    """
    folder = Path(folder)
    if not folder.exists():
        raise CheckpointError(f"there is no folder {folder}: expected a checkpoint or a run folder")
    if not (folder / "config.yaml").exists() or (folder / "checkpoint").is_dir():
        folder = folder / "checkpoint"
    needed = ("config.yaml", "weights.safetensors")
    if missing := [name for name in needed if not (folder / name).is_file()]:
        raise CheckpointError(
            f"{folder} holds no {' and no '.join(missing)}: expected a checkpoint or a run folder"
        )
    state, labels = _weights(folder)
    with allowance(sum(tensor.numel() for tensor in state.values())):
        surrogate = _build(_plain(folder / "config.yaml"), str(folder / "config.yaml"), trusted)
    if not isinstance(surrogate, Surrogate):
        got = type(surrogate).__name__
        raise CheckpointError(f"expected a surrogate in {folder / 'config.yaml'}; got a {got}")
    where = str(folder / "weights.safetensors")
    _fill(surrogate, state, where)
    if odd := odd_label(surrogate, labels):
        raise CheckpointError(f"{where}: {odd}")
    remedy = "It was damaged, or belongs to another configuration: fetch or fit the checkpoint again"
    _usable([*non_finite(surrogate), *shared_faults(surrogate, state)], where, remedy)
    try:
        compute_derived(surrogate, LARGEST - sum(tensor.nbytes for tensor in state.values()), state, fitted)
    except DerivationError as error:
        _usable([str(error)], where, remedy)
    _usable(surrogate.faults(), where, remedy)
    if task is not None:
        try:
            surrogate.adopt(task)
        except OtherQuestionError as error:
            raise CheckpointError(f"{folder}: {error}") from error
    return surrogate.eval()


def card(folder: str | Path) -> dict[str, Any]:
    """The model card of a checkpoint, or of the checkpoint of a run folder; empty if the checkpoint has none.

    Raises:
        CheckpointError: if there is no checkpoint, or its card is not plain YAML.
    """
    folder = Path(folder)
    places = (folder, folder / "checkpoint")
    if not any((place / name).is_file() for place in places for name in ("card.yaml", "weights.safetensors")):
        got = "a folder without either" if folder.is_dir() else "no such folder"
        raise CheckpointError(
            f"{folder}: expected a checkpoint, which is a folder with card.yaml, config.yaml and "
            f"weights.safetensors, or a run folder with one in checkpoint/; got {got}: name a folder that "
            "rehearsal train or rehearsal decide wrote"
        )
    return _card(folder if (folder / "card.yaml").exists() else folder / "checkpoint")


def configuration(folder: str | Path) -> dict[str, Any]:
    """The configuration from which a checkpoint's surrogate is built, as plain data; nothing is built."""
    content = _plain(Path(folder) / "config.yaml")
    if not isinstance(content, dict):
        raise CheckpointError(
            f"{folder}: config.yaml: expected names and values; got {type(content).__name__}"
        )
    return content


def annotate(folder: str | Path, notes: Mapping[str, Any]) -> None:
    """Adds to the card of a checkpoint what became known after it was saved, as plain data; entries of the
    same names are replaced.

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
    sha = {"weights_sha256": known.pop("weights_sha256")}
    content = known | dict(notes) | sha
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


def _weights(folder: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and labels of a folder, if their SHA-256 is that of the card."""
    path, expected = folder / "weights.safetensors", _card(folder).get("weights_sha256")
    size = path.stat().st_size
    if size > LARGEST:
        raise CheckpointError(
            f"{path}: expected at most {LARGEST // 2**30} GiB; got {size / 2**30:.1f}: is it the right file?"
        )
    weights = path.read_bytes()
    sha = hashlib.sha256(weights).hexdigest()
    if expected is None:
        raise CheckpointError(
            f"{folder / 'card.yaml'} holds no SHA-256 of the weights, so that they cannot be verified: fetch "
            "the whole folder again, or, if you know where the weights come from, write into card.yaml: "
            f"weights_sha256: {sha}"
        )
    if sha != expected:
        raise CheckpointError(
            f"{path} is not the file that card.yaml was written for: fetch the checkpoint again"
        )
    try:
        return read_tensors(weights), labels_in(weights)
    except SafetensorError as error:
        raise CheckpointError(
            f"{path} holds no tensors in the safetensors format ({error}); nothing was read from it"
        ) from error


def _usable(faults: list[str], where: str, remedy: str) -> None:
    if faults:
        more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise CheckpointError(f"{where} cannot be used: {'; '.join(faults[:5])}{more}. {remedy}")


def _fill(surrogate: Surrogate, state: Mapping[str, Any], where: str) -> None:
    try:
        surrogate.load_state_dict(with_absent(surrogate, state))
    except RuntimeError as error:
        raise CheckpointError(
            f"{where} does not fit the configuration: {' '.join(str(error).split())}"
        ) from error


def foreign_modules(config: Mapping[str, Any]) -> list[str]:
    """The modules outside this package that a configuration names: those that `load` needs in `trusted`."""
    targets = [each.get("_target_") for _, each in mappings(config)]
    named = [text for text in targets if isinstance(text, str) and text.partition(".")[0] != PACKAGE]
    return list(dict.fromkeys(text.rpartition(".")[0] for text in named if "." in text))


def _build(node: Any, where: str, trusted: Sequence[str]) -> Any:
    """The objects of a configuration node: dictionaries with a ``_target_`` are built, everything else stays
    plain.
    """
    if isinstance(node, list):
        return [_build(item, f"{where}[{index}]", trusted) for index, item in enumerate(node)]
    if not isinstance(node, dict):
        return node
    if "_target_" not in node:
        return {key: _build(value, f"{where}.{key}", trusted) for key, value in node.items()}
    plain = [key for key in node if isinstance(key, str) and not key.startswith("_")]
    if unknown := [key for key in node if key not in (*plain, "_target_", "_partial_")]:
        raise CheckpointError(
            f"{where}: unknown instruction {unknown}; a checkpoint has only _target_ and _partial_"
        )
    kind = _known(node["_target_"], where, trusted)
    arguments = {key: _build(node[key], f"{where}.{key}", trusted) for key in plain}
    if node.get("_partial_", False):
        return partial(kind, **arguments)
    try:
        return kind(**arguments)
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError, ArithmeticError) as error:
        raise CheckpointError(f"{where}: cannot build {node['_target_']} ({error})") from error


def _known(target: Any, where: str, trusted: Sequence[str]) -> Callable[..., Any]:
    """The class at a dotted path, if this package or a trusted module defines it and it is a `Part` or a
    `Surrogate`.
    """
    named = [str(target).rpartition(".")[0]] if target in trusted else []
    found = defined_in(target, (PACKAGE, *trusted, *named))
    if not isinstance(found, type) or not issubclass(found, Part | Surrogate):
        also = f", {', '.join(trusted)}" if trusted else ""
        raise CheckpointError(
            f"{where} asks to build {target!r}, which is not a surrogate or part of {PACKAGE}{also}; nothing "
            f"was built. Load only checkpoints that {PACKAGE} wrote; to load a class of your own, name its "
            "module: load(folder, trusted=['my_lab'])"
        )
    return found


METHOD = "method.yaml"
# The folder of its fits under other graphs.
UNDER = "graphs"
FILES = {"config.yaml", "weights.safetensors", "card.yaml", METHOD}


def written(folder: str | Path, write: Callable[[Path], object]) -> Path:
    """Writes the folder of a saved model as a whole or not at all: beside its place, and moved there once it
    is complete. It replaces the folder of an earlier saved model, and nothing else.

    Args:
        write: Writes all files into the folder that it is given.

    Raises:
        CheckpointError: if something else than a saved model would be replaced; nothing is written then.
    """
    folder = Path(folder)
    if not folder.name or folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise CheckpointError(f"{folder}: expected the name of a folder for the model; choose another name")
    present = {each.name for each in folder.iterdir()} if folder.exists() else set()
    if others := sorted(present - FILES - {UNDER}):
        raise CheckpointError(
            f"{folder} holds {', '.join(others[:3])}{', ...' if len(others) > 3 else ''}, which is not part "
            "of a saved model, and saving replaces the folder: choose a new folder"
        )
    beside = folder.with_name(f".{folder.name}.part")
    if beside.exists():
        shutil.rmtree(beside)
    try:
        write(beside)
        write_folder(folder, beside)
    finally:
        if beside.exists():
            shutil.rmtree(beside)
    return folder
