"""Checkpoints: a fitted surrogate saved as a folder of configuration, weights and model card.

    config.yaml           the surrogate's resolved configuration: classes of this package and plain values
    weights.safetensors   the tensors of its state
    card.yaml             for readers: data, command, seed, commit, versions, held-out metrics; the SHA-256 of
                          the two other files

Loading runs no code from the folder. The configuration is read as plain YAML; each ``_target_`` must be a
class that this package, or a module that the caller trusts, defines itself: the object decides, not the
prefix of its dotted path. Weights are read without unpickling; the surrogate that is
built may hold no more numbers than they.

A damaged state (non-finite numbers, inconsistent sizes) is refused on writing and on reading. The weights
are written first and the card, with their SHA-256, last, so that a partly written folder is refused as well.

Tensors that loading can compute from the others, to the last bit, such as factors of kernel matrices, are
left out (`surrogates.state_file`). Those that a file has are taken from it.

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
from rehearsal_torch.run_folder import replace_folder
from rehearsal_torch.surrogates.state_file import (
    DerivationError,
    compute_derived,
    with_absent,
    without_derived,
)
from rehearsal_torch.surrogates.surrogate import Surrogate

PACKAGE = "rehearsal_torch"
# Bytes of all tensors of a state, those that weights.safetensors leaves out included.
LARGEST = 4 * 2**30
# Where the card has the SHA-256 of config.yaml; those of earlier versions have none.
CONFIG_SHA = "config_sha256"


class CheckpointError(InputError):
    """A folder that is no checkpoint, is damaged, or names something that loading refuses."""


def save(
    surrogate: Surrogate, config: Mapping[str, Any], folder: str | Path, card: Mapping[str, Any] | None = None
) -> Path:
    """Writes a checkpoint.

    Args:
        config: The resolved ``surrogate`` node that builds it, as plain data.
        folder: Created if missing; existing files of the same names are replaced.
        card: The model card, as plain data.

    Raises:
        CheckpointError: if `load` would refuse the configuration, or it builds another state than the
            surrogate has, or the state is damaged. Nothing is written then.
    """
    folder = Path(folder)
    # Tensors that share memory are written one by one.
    state = {
        name: tensor.detach().cpu().contiguous().clone() for name, tensor in surrogate.state_dict().items()
    }
    check_usable(surrogate)
    unfitted = savable(config, surrogate)
    _load_state(unfitted, state, "the surrogate")
    size = sum(tensor.nbytes for tensor in state.values())
    if size > LARGEST:
        remedy = "fit to fewer rows, or choose a method that keeps fewer, such as decision=cme_nystrom"
        raise CheckpointError(
            f"expected weights of at most {LARGEST // 2**30} GiB; got {size / 2**30:.1f}: {remedy}"
        )
    stored = without_derived(unfitted, state, LARGEST)
    contents = {
        "weights.safetensors": write_tensors(stored),
        "config.yaml": yaml.safe_dump(dict(config), sort_keys=False).encode(),
    }
    sha = {CONFIG_SHA: _sha(contents["config.yaml"]), "weights_sha256": _sha(contents["weights.safetensors"])}
    # The card last: until it is there, the old card's SHA-256 refuses the new weights.
    for name, content in contents.items():
        write_bytes(folder / name, content)
    write_text(folder / "card.yaml", yaml.safe_dump(dict(card or {}) | sha, sort_keys=False))
    return folder


def check_usable(surrogate: Surrogate) -> None:
    """Refuses a fitted surrogate whose state is damaged (non-finite numbers, inconsistent sizes)."""
    remedy = "Fit it to finite, complete data; nothing was written"
    _refuse_faults(surrogate.faults(), f"this {type(surrogate).__name__}", remedy)


def savable(config: Mapping[str, Any], surrogate: Surrogate) -> Surrogate:
    """The unfitted surrogate that a resolved ``surrogate`` node builds, checked before a long training so
    that `save` will not refuse it. Draws no random numbers; trusts user-defined classes.
    """
    surrogate_class = type(surrogate)
    with fork_rng(devices=[]):
        unfitted = _build(dict(config), "config", foreign_modules(config))
    if type(unfitted) is not surrogate_class:
        raise CheckpointError(
            f"expected a configuration that builds a {surrogate_class.__name__}; got one that builds "
            f"{type(unfitted).__name__}"
        )
    return unfitted


def load(
    folder: str | Path, task: object = None, trusted: Sequence[str] = (), fitted: Surrogate | None = None
) -> Surrogate:
    """Reads a checkpoint, or the checkpoint of a run folder; runs no code from it.

    Args:
        task: The question to answer, as in `rehearsal_torch.load`; None skips the comparison.
        trusted: Modules and classes whose surrogates and parts may be built, as there.
        fitted: The surrogate that `save` has just written, whose derived tensors are then not computed again.

    Returns:
        The surrogate, in evaluation mode, on the CPU.

    Raises:
        CheckpointError: if a file is missing or damaged, the configuration names a class that is not trusted
            or builds more numbers than the weights hold, or it was fitted for another question than `task`.
    """
    folder = Path(folder)
    if not folder.exists():
        raise CheckpointError(f"there is no folder {folder}: expected a checkpoint or a run folder")
    if not (folder / "config.yaml").exists() or (folder / "checkpoint").is_dir():
        folder = folder / "checkpoint"
    names = ("config.yaml", "weights.safetensors")
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise CheckpointError(
            f"{folder} holds no {' and no '.join(missing)}: expected a checkpoint or a run folder"
        )
    state = _read_weights(folder)
    with allowance(sum(tensor.numel() for tensor in state.values())):
        surrogate = _build(_read_yaml(folder / "config.yaml"), str(folder / "config.yaml"), trusted)
    if not isinstance(surrogate, Surrogate):
        got = type(surrogate).__name__
        raise CheckpointError(f"expected a surrogate in {folder / 'config.yaml'}; got a {got}")
    source = str(folder / "weights.safetensors")
    _load_state(surrogate, state, source)
    config = folder / "config.yaml"
    if _card(folder).get(CONFIG_SHA) not in (None, _sha(config.read_bytes())):
        raise CheckpointError(
            f"{config} is not the file that card.yaml was written for, and may ask another question than the "
            "weights answer: fetch the whole folder again"
        )
    remedy = "It was damaged, or belongs to another configuration: fetch or fit the checkpoint again"
    _refuse_faults([*non_finite(surrogate), *shared_faults(surrogate, state)], source, remedy)
    try:
        compute_derived(surrogate, LARGEST - sum(tensor.nbytes for tensor in state.values()), state, fitted)
    except DerivationError as error:
        _refuse_faults([str(error)], source, remedy)
    _refuse_faults(surrogate.faults(), source, remedy)
    if task is not None:
        try:
            surrogate.adopt(task)
        except OtherQuestionError as error:
            raise CheckpointError(f"{folder}: {error}") from error
    return surrogate.eval()


def card(folder: str | Path) -> dict[str, Any]:
    """The model card of a checkpoint or run folder, empty if it has none; CheckpointError if damaged."""
    folder = Path(folder)
    folders = (folder, folder / "checkpoint")
    if not any((path / name).is_file() for path in folders for name in ("card.yaml", "weights.safetensors")):
        got = "a folder without either" if folder.is_dir() else "no such folder"
        raise CheckpointError(
            f"{folder}: expected a checkpoint, which is a folder with card.yaml, config.yaml and "
            f"weights.safetensors, or a run folder with one in checkpoint/; got {got}: name a folder that "
            "rehearsal train or rehearsal decide wrote"
        )
    return _card(folder if (folder / "card.yaml").exists() else folder / "checkpoint")


def configuration(folder: str | Path) -> dict[str, Any]:
    """The configuration from which a checkpoint's surrogate is built, as plain data; nothing is built."""
    content = _read_yaml(Path(folder) / "config.yaml")
    if not isinstance(content, dict):
        raise CheckpointError(
            f"{folder}: config.yaml: expected names and values; got {type(content).__name__}"
        )
    return content


def annotate(folder: str | Path, notes: Mapping[str, Any]) -> None:
    """Adds notes to a checkpoint's card, or replaces them; never the SHA-256 of the weights."""
    path, content = Path(folder) / "card.yaml", _card(Path(folder))
    if "weights_sha256" not in content:
        raise CheckpointError(
            f"expected a checkpoint's card that says the weights' SHA-256; got none in {path}"
        )
    if "weights_sha256" in notes:
        raise CheckpointError(f"expected notes for {path}; got weights_sha256, which `save` alone writes")
    sha = {"weights_sha256": content.pop("weights_sha256")}
    updated = content | dict(notes) | sha
    write_text(path, yaml.safe_dump(updated, sort_keys=False))


def _card(folder: Path) -> dict[str, Any]:
    path = folder / "card.yaml"
    content = _read_yaml(path) if path.is_file() else {}
    if content is not None and not isinstance(content, Mapping):
        raise CheckpointError(f"{path} is not plain YAML of names and values; got a {type(content).__name__}")
    return dict(content or {})


def _read_yaml(path: Path) -> Any:
    try:
        return read_yaml(path)
    except PlainFileError as error:
        raise CheckpointError(
            f"{error}; {path} is not plain YAML as {PACKAGE} writes it: it may have been tampered with"
        ) from error


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of a folder, if their SHA-256 is that of the card."""
    path, expected = folder / "weights.safetensors", _card(folder).get("weights_sha256")
    size = path.stat().st_size
    if size > LARGEST:
        raise CheckpointError(
            f"{path}: expected at most {LARGEST // 2**30} GiB; got {size / 2**30:.1f}: is it the right file?"
        )
    weights = path.read_bytes()
    sha = _sha(weights)
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
        return read_tensors(weights)
    except SafetensorError as error:
        raise CheckpointError(
            f"{path} holds no tensors in the safetensors format ({error}); nothing was read from it"
        ) from error


def _refuse_faults(faults: list[str], source: str, remedy: str) -> None:
    if faults:
        more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise CheckpointError(f"{source} cannot be used: {'; '.join(faults[:5])}{more}. {remedy}")


def _load_state(surrogate: Surrogate, state: Mapping[str, Any], source: str) -> None:
    try:
        surrogate.load_state_dict(with_absent(surrogate, state))
    except RuntimeError as error:
        raise CheckpointError(
            f"{source} does not fit the configuration: {' '.join(str(error).split())}"
        ) from error


def foreign_modules(config: Mapping[str, Any]) -> list[str]:
    """The modules outside this package that a configuration names, which `load` needs in `trusted`."""
    targets = [node.get("_target_") for _, node in mappings(config)]
    paths = [path for path in targets if isinstance(path, str) and path.partition(".")[0] != PACKAGE]
    return list(dict.fromkeys(path.rpartition(".")[0] for path in paths if "." in path))


def _build(node: Any, where: str, trusted: Sequence[str]) -> Any:
    """Builds the dictionaries with a ``_target_`` in a configuration node; everything else stays plain."""
    if isinstance(node, list):
        return [_build(item, f"{where}[{index}]", trusted) for index, item in enumerate(node)]
    if not isinstance(node, dict):
        return node
    if "_target_" not in node:
        return {key: _build(value, f"{where}.{key}", trusted) for key, value in node.items()}
    keys = [key for key in node if isinstance(key, str) and not key.startswith("_")]
    if unknown := [key for key in node if key not in (*keys, "_target_", "_partial_")]:
        raise CheckpointError(
            f"{where}: unknown instruction {unknown}; a checkpoint has only _target_ and _partial_"
        )
    target_class = _trusted_class(node["_target_"], where, trusted)
    arguments = {key: _build(node[key], f"{where}.{key}", trusted) for key in keys}
    if node.get("_partial_", False):
        return partial(target_class, **arguments)
    try:
        return target_class(**arguments)
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError, ArithmeticError) as error:
        raise CheckpointError(f"{where}: cannot build {node['_target_']} ({error})") from error


def _trusted_class(target: Any, where: str, trusted: Sequence[str]) -> Callable[..., Any]:
    """The `Part` or `Surrogate` at a dotted path, if this package or a trusted module defines it."""
    own_module = [str(target).rpartition(".")[0]] if target in trusted else []
    target_class = defined_in(target, (PACKAGE, *trusted, *own_module))
    if not isinstance(target_class, type) or not issubclass(target_class, Part | Surrogate):
        also = f", {', '.join(trusted)}" if trusted else ""
        raise CheckpointError(
            f"{where} asks to build {target!r}, which is not a surrogate or part of {PACKAGE}{also}; nothing "
            f"was built. Load only checkpoints that {PACKAGE} wrote; to load a class of your own, name its "
            "module: load(folder, trusted=['my_lab'])"
        )
    return target_class


METHOD = "method.yaml"
# The folder of a saved model's fits under other graphs.
UNDER = "graphs"
FILES = {"config.yaml", "weights.safetensors", "card.yaml", METHOD}


def written(folder: str | Path, write: Callable[[Path], object]) -> Path:
    """Writes the folder of a saved model as a whole or not at all: `write` fills a folder beside it, which
    then takes its place. CheckpointError if something else than a saved model would be replaced.
    """
    folder = Path(folder)
    if not folder.name or folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise CheckpointError(f"{folder}: expected the name of a folder for the model; choose another name")
    names = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if others := sorted(names - FILES - {UNDER}):
        raise CheckpointError(
            f"{folder} holds {', '.join(others[:3])}{', ...' if len(others) > 3 else ''}, which is not part "
            "of a saved model, and saving replaces the folder: choose a new folder"
        )
    draft = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        write(draft)
        replace_folder(folder, draft)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder
