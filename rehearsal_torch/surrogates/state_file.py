"""Checkpoint contents of a fitted state: which tensors are stored, which are recomputed, and metadata labels.

A part lists the buffers that it can compute from its others, with their sizes (`Part.derivable`), and
computes them (`Part.derive`) by the function of its fit: the Cholesky factor of a kernel matrix from the rows
and the ridge, for example, which has the square of their number of cells.

A buffer is left out of a file only if it is recomputed equal to the last bit (`checkpoint.save`): one that
was fitted on another device, or edited, is written. Loading bounds the total size before it computes anything
and leaves stored buffers unchanged.

The labels identify a tensor file without its folder:

    checkpoint_format      the arrangement of labels and tensors
    library, version       this package, and its version that wrote the file
    class                  the surrogate, as a dotted path
    question_fingerprint   of the question that it was fitted for (`data.task_compatibility.fingerprint`)
    data_fingerprint       of the rows of the fit
    seed, commit           of the fit
    format                 "pt", as other libraries label tensors of torch

Unknown ones are left out. On loading, class and question are compared with those of the surrogate that the
configuration builds; the others are for readers.

A safetensors file begins with the length of its header (8 bytes, little-endian) and the header, which is
JSON: ``{"__metadata__": {label: text}, tensor: {dtype, shape, data_offsets}, ...}``, padded by spaces to a
multiple of 8 bytes; the numbers follow. The library writes labels in an order that differs from process to
process; here they are sorted, so that equal content is equal to the last byte.

Source: the format's description (github.com/huggingface/safetensors).
"""

import json
import math
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

from rehearsal_torch.data.task_compatibility import fingerprint
from rehearsal_torch.data.trainable_part import Part
from rehearsal_torch.surrogates.surrogate import Surrogate


class DerivationError(ValueError):
    """A derived buffer cannot be computed; the message names it and the reason."""


def derived_names(module: nn.Module) -> list[str]:
    """Dotted names of the buffers that a fitted module's parts can compute from the others."""
    return [f"{path}{name}" for path, part in _fitted_parts(module) for name in part.derivable()]


def source_names(module: nn.Module) -> list[str]:
    """Dotted names of the buffers that serve to compute derived ones alone; some may be empty."""
    return [f"{path}{name}" for path, part in _parts(module) for name in part._sources]


def with_absent(module: nn.Module, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state with empty tensors for missing derived buffers and sources."""
    names = [f"{path}{name}" for path, part in _parts(module) for name in (*part._derived, *part._sources)]
    return {name: torch.empty(0, dtype=torch.float64) for name in names if name not in state} | dict(state)


def without_derived(module: nn.Module, state: Mapping[str, Tensor], largest: int) -> dict[str, Tensor]:
    """The tensors to write: a state without derived ones that are recomputed equal, and empty sources."""
    omitted = set(derived_names(module))
    empty = {name for name in source_names(module) if state[name].shape == (0,)}
    while omitted:
        written = {name: tensor for name, tensor in state.items() if name not in omitted | empty}
        module.load_state_dict(with_absent(module, written))
        try:
            compute_derived(module, largest)
        except DerivationError:
            break
        computed = module.state_dict()
        different = {name for name in omitted if not torch.equal(computed[name].cpu(), state[name].cpu())}
        if not different:
            return written
        omitted -= different
    module.load_state_dict(dict(state))
    return {name: tensor for name, tensor in state.items() if name not in empty}


def derived_bytes(module: nn.Module) -> int:
    """The bytes that the empty derived buffers will have."""
    return sum(math.prod(size) * 8 for *_, size in _empty_derived(module))


def compute_derived(
    module: nn.Module,
    largest: int,
    written: Mapping[str, Tensor] | None = None,
    known: nn.Module | None = None,
) -> None:
    """Computes empty derived buffers, or shares those of a `known` module with all `written` tensors, bit for
    bit. DerivationError if they need more than `largest` bytes in total or a source is damaged.
    """
    total = derived_bytes(module)
    if total > largest:
        expected = f"expected tensors that are left out of at most {largest / 2**30:.1f} GiB in total"
        raise DerivationError(f"{expected}; got {total / 2**30:.1f}")
    state = {} if known is None else known.state_dict()
    identical = known is not None and all(
        name in state and state[name].dtype == value.dtype and torch.equal(state[name].cpu(), value)
        for name, value in (written or {}).items()
    )
    for path, part, name, size in _empty_derived(module):
        try:
            with torch.no_grad():
                value = state[path + name].cpu() if identical else part.derive(name)
        except (RuntimeError, ValueError, LookupError) as error:
            reason = f"{path}{name} cannot be computed from the other tensors"
            raise DerivationError(f"{reason}: {' '.join(str(error).split())}") from error
        if tuple(value.shape) != tuple(size):
            expected = f"{path}{name}: expected the size {tuple(size)}"
            raise DerivationError(f"{expected}; got {tuple(value.shape)} from the other tensors")
        submodule_path, _, buffer = name.rpartition(".")
        # Laid out as tensors that are read, so that all later sums have the same bits.
        setattr(part.get_submodule(submodule_path), buffer, value.contiguous())


def _parts(module: nn.Module) -> Iterator[tuple[str, Part]]:
    """Every part with its path and a dot, outer parts first."""
    for path, part in module.named_modules():
        if isinstance(part, Part):
            yield f"{path}." if path else "", part


def _empty_derived(module: nn.Module) -> Iterator[tuple[str, Part, str, tuple[int, ...]]]:
    """Path, part, name and size of each empty derived buffer, tested as it is reached."""
    for path, part in _fitted_parts(module):
        for name, size in part.derivable().items():
            if not part.get_buffer(name).numel():
                yield path, part, name, size


def _fitted_parts(module: nn.Module) -> Iterator[tuple[str, Part]]:
    return ((path, part) for path, part in _parts(module) if part.fitted)


LIBRARY = "rehearsal_torch"
FORMAT = "1"  # increased when older versions cannot read the arrangement
HEADER = "__metadata__"
LONGEST, MOST = 500, 50  # characters of a label; labels


def labelled(content: bytes, labels: Mapping[str, str]) -> bytes:
    """A tensor file with its labels replaced by at most 50, cut at 500 characters."""
    if len(labels) > MOST:
        raise ValueError(f"expected at most {MOST} labels of a tensor file; got {len(labels)}")
    header, body = _header_and_body(content)
    tensors = {name: entry for name, entry in header.items() if name != HEADER}
    sorted_labels = {name: labels[name][:LONGEST] for name in sorted(labels)}
    text = json.dumps({HEADER: sorted_labels, **tensors}, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def labels_in(content: bytes) -> dict[str, str]:
    """The labels of a valid tensor file; empty if it has none."""
    labels = _header_and_body(content)[0].get(HEADER) or {}
    return {str(name): str(text) for name, text in labels.items()}


def weight_labels(surrogate: Surrogate, card: Mapping[str, Any]) -> dict[str, str]:
    """The labels of a surrogate's weights, with commit, data fingerprint and seed of its model card."""
    labels = {
        "checkpoint_format": FORMAT,
        "format": "pt",
        "library": LIBRARY,
        "version": version("rehearsal-torch"),
        **_identity_labels(surrogate),
        **{name: card.get(name) for name in ("commit", "data_fingerprint", "seed")},
    }
    return {name: str(value) for name, value in labels.items() if value is not None}


def odd_label(surrogate: Surrogate, labels: Mapping[str, str]) -> str:
    """Error message if weights with these labels are not those of a surrogate; empty if they may be."""
    if "checkpoint_format" not in labels:
        return ""
    if labels["checkpoint_format"] != FORMAT:
        return (
            f"expected weights in format {FORMAT}; got format "
            f"{labels['checkpoint_format']!r}, of version {labels.get('version')} of {LIBRARY}: fit it again"
        )
    for name, own in _identity_labels(surrogate).items():
        if labels.get(name) != own:
            return (
                f"expected the {name} that config.yaml builds, {own}; its label says {labels.get(name)}: the "
                "two files belong to different checkpoints, or config.yaml was changed: fetch the whole "
                "folder again"
            )
    return ""


def _identity_labels(surrogate: Surrogate) -> dict[str, str | None]:
    question, cls = surrogate.question(), type(surrogate)
    return {
        "class": f"{cls.__module__}.{cls.__qualname__}",
        "question_fingerprint": None if question is None else fingerprint(question),
    }


def _header_and_body(content: bytes) -> tuple[dict[str, dict[str, object]], bytes]:
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]
