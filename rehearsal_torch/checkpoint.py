"""Checkpoints: a folder that says what to build and what it has learnt.

    config.yaml           the surrogate's resolved configuration: classes of this package and plain values
    weights.safetensors   every tensor of its state (nothing else fits into the format)
    card.yaml             for people: data, command, seed, commit, versions, held-out numbers

Loading runs no code from the folder. The configuration is read as plain YAML; each ``_target_`` is looked up among
the classes that this package itself defines, and judged by the object found, not by how its dotted path begins: a
path that walks from one of our modules into something imported there is refused. Weights are read without
unpickling.
"""

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors

from rehearsal_torch.data.fitted import Part
from rehearsal_torch.surrogates.surrogate import Surrogate

PACKAGE = "rehearsal_torch"


class CheckpointError(ValueError):
    """A folder that is no checkpoint, is damaged, or asks for what loading never does."""


def save(surrogate: Surrogate, config: Mapping[str, Any], folder: str | Path, card: Mapping[str, Any] | None = None) -> Path:
    """Writes a checkpoint.

    Args:
        surrogate: What was fitted.
        config: The resolved ``surrogate`` node that builds it: plain dictionaries, lists, numbers and texts.
        folder: Where to; made if missing, files of the same names replaced.
        card: What to tell people about it; plain data.

    Returns:
        The folder.

    Raises:
        CheckpointError: if the configuration would be refused by `load`, or builds another state than the surrogate has.
    """
    folder = Path(folder)
    # Tensors that share memory are written one by one.
    state = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in surrogate.state_dict().items()}
    weights = write_tensors(state)
    built = _build(dict(config), "config")
    if type(built) is not type(surrogate):
        raise CheckpointError(f"expected a configuration that builds a {type(surrogate).__name__}; got one that builds {type(built).__name__}")
    _fill(built, state, "the surrogate")
    folder.mkdir(parents=True, exist_ok=True)
    plain = dict(card or {}) | {"weights_sha256": hashlib.sha256(weights).hexdigest()}
    for name, text in (("config.yaml", yaml.safe_dump(dict(config), sort_keys=False)), ("card.yaml", yaml.safe_dump(plain, sort_keys=False))):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "weights.safetensors").write_bytes(weights)
    return folder


def load(folder: str | Path) -> Surrogate:
    """Reads a checkpoint, or the checkpoint of a run folder; runs no code from it.

    Args:
        folder: A checkpoint folder, or a run folder that holds one.

    Returns:
        The surrogate, in evaluation mode, on the CPU.

    Raises:
        CheckpointError: if a file is missing or damaged, or the folder wants something built that is not ours.
    """
    folder = Path(folder)
    if not (folder / "config.yaml").exists() or (folder / "checkpoint").is_dir():
        folder = folder / "checkpoint"
    missing = [name for name in ("config.yaml", "weights.safetensors") if not (folder / name).is_file()]
    if missing:
        raise CheckpointError(f"{folder} holds no {' and no '.join(missing)}: expected a checkpoint or a run folder")
    try:
        config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{folder / 'config.yaml'} is not plain YAML ({str(error).splitlines()[0]}): it may have been tampered with") from error
    surrogate = _build(config, str(folder / "config.yaml"))
    weights = (folder / "weights.safetensors").read_bytes()
    expected = _card(folder).get("weights_sha256")
    if expected is not None and hashlib.sha256(weights).hexdigest() != expected:
        raise CheckpointError(f"{folder / 'weights.safetensors'} is not the file that card.yaml was written for: fetch the checkpoint again")
    try:
        state = read_tensors(weights)
    except SafetensorError as error:
        raise CheckpointError(f"{folder / 'weights.safetensors'} holds no tensors in the safetensors format ({error}); nothing was read from it") from error
    if not isinstance(surrogate, Surrogate):
        raise CheckpointError(f"expected a surrogate in {folder / 'config.yaml'}; got a {type(surrogate).__name__}")
    _fill(surrogate, state, str(folder / "weights.safetensors"))
    return surrogate.eval()


def card(folder: str | Path) -> dict[str, Any]:
    """What a checkpoint tells people about itself; empty where it has no card.

    Raises:
        CheckpointError: if the card is not plain YAML.
    """
    folder = Path(folder)
    return _card(folder if (folder / "card.yaml").exists() else folder / "checkpoint")


def _card(folder: Path) -> dict[str, Any]:
    path = folder / "card.yaml"
    if not path.is_file():
        return {}
    try:
        return dict(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except (yaml.YAMLError, UnicodeDecodeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is not plain YAML ({str(error).splitlines()[0]})") from error


def _fill(surrogate: Surrogate, state: Mapping[str, Any], where: str) -> None:
    try:
        surrogate.load_state_dict(dict(state))
    except RuntimeError as error:
        raise CheckpointError(f"{where} does not fit the configuration: {' '.join(str(error).split())}") from error


def _build(node: Any, where: str) -> Any:
    """A configuration node as objects: dictionaries with a target become ours, everything else stays plain."""
    if isinstance(node, list):
        return [_build(item, f"{where}[{index}]") for index, item in enumerate(node)]
    if not isinstance(node, dict):
        return node
    if "_target_" not in node:
        return {key: _build(value, f"{where}.{key}") for key, value in node.items()}
    strange = [key for key in node if not isinstance(key, str) or (key.startswith("_") and key not in ("_target_", "_partial_"))]
    if strange:
        raise CheckpointError(f"{where}: unknown instruction {strange}; a checkpoint has only _target_ and _partial_")
    made = _ours(node["_target_"], where)
    arguments = {key: _build(value, f"{where}.{key}") for key, value in node.items() if not key.startswith("_")}
    if node.get("_partial_", False):
        return partial(made, **arguments)
    try:
        return made(**arguments)
    except (TypeError, ValueError, KeyError) as error:
        raise CheckpointError(f"{where}: cannot build {node['_target_']} ({error})") from error


def _ours(target: Any, where: str) -> Callable[..., Any]:
    """The class behind a dotted path, if this package defines it as something that is built from a configuration."""
    refusal = f"{where} wants to build {target!r}, which is no surrogate or part of {PACKAGE}; nothing was built. Load only checkpoints that {PACKAGE} wrote"
    if not isinstance(target, str) or not all(name.isidentifier() and not name.startswith("_") for name in target.split(".")):
        raise CheckpointError(refusal)
    module_path, _, name = target.rpartition(".")
    if module_path.split(".")[0] != PACKAGE:
        raise CheckpointError(refusal)
    try:
        found = vars(import_module(module_path)).get(name)
    except ImportError as error:
        raise CheckpointError(refusal) from error
    if not isinstance(found, type) or found.__module__ != module_path or not issubclass(found, Part | Surrogate):
        raise CheckpointError(refusal)
    return found
