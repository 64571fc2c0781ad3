"""What a file holds of a fitted state: without what loading computes again, and with labels that say whose it
is.

A part says which of its buffers it can compute from the others, and of what sizes they are
(`Part.derivable`), and computes them (`Part.derive`) by the function that its fit uses: the Cholesky factor
of a kernel matrix from the rows and the ridge, for example. The factor has the square of the number of rows
or features, its sources a few columns of them.

Whether a buffer comes out equal to the last bit is tried before a file leaves it out (`checkpoint.save`): one
that was fitted on another device, or edited, is written. The sizes are added up before anything is computed.
Buffers that a file does have are taken as they are.

A file of tensors that is found alone has labels:

    checkpoint_format      the arrangement of labels and tensors
    library, version       this package, and its version that wrote the file
    class                  the surrogate, as a dotted path
    question_fingerprint   of the question that it was fitted for (`data.task_compatibility.fingerprint`)
    data_fingerprint       of the rows of the fit
    seed, commit           of the fit
    format                 "pt", as other libraries label tensors of torch

What is not known is left out. Class and question are compared with those of the surrogate that the
configuration builds when it is loaded; the others are for readers.

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
    """Derived buffers that cannot be computed; the message names the buffer, and says why."""


def derived_names(module: nn.Module) -> list[str]:
    """The buffers of a fitted module that its parts can compute from the others, as dotted names."""
    return [f"{path}{name}" for path, part in _fitted_parts(module) for name in part.derivable()]


def source_names(module: nn.Module) -> list[str]:
    """The buffers from which derived ones alone are computed, as dotted names; some may be empty."""
    return [f"{path}{name}" for path, part in _parts(module) for name in part._sources]


def with_absent(module: nn.Module, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state with empty tensors for the derived buffers and sources that it does not have."""
    names = [f"{path}{name}" for path, part in _parts(module) for name in (*part._derived, *part._sources)]
    return {name: torch.empty(0, dtype=torch.float64) for name in names if name not in state} | dict(state)


def without_derived(module: nn.Module, state: Mapping[str, Tensor], largest: int) -> dict[str, Tensor]:
    """What to write of a state: without derived tensors that come out equal here, and empty sources."""
    out = set(derived_names(module))
    empty = {name for name in source_names(module) if state[name].shape == (0,)}
    while out:
        written = {name: tensor for name, tensor in state.items() if name not in out | empty}
        module.load_state_dict(with_absent(module, written))
        try:
            compute_derived(module, largest)
        except DerivationError:
            break
        computed = module.state_dict()
        different = {name for name in out if not torch.equal(computed[name].cpu(), state[name].cpu())}
        if not different:
            return written
        out -= different
    module.load_state_dict(dict(state))
    return {name: tensor for name, tensor in state.items() if name not in empty}


def derived_bytes(module: nn.Module) -> int:
    """The memory of the derived buffers that are empty, once they have been computed."""
    return sum(math.prod(size) * 8 for *_, size in _absent(module))


def compute_derived(
    module: nn.Module,
    largest: int,
    written: Mapping[str, Tensor] | None = None,
    known: nn.Module | None = None,
) -> None:
    """Computes the derived buffers of a loaded module that are empty, of at most `largest` bytes in total.
    They are taken over from a `known` module, not copied, if it has all that was `written`, to the last bit.
    DerivationError if they would have more, or one cannot be computed: its sources are damaged.
    """
    total = derived_bytes(module)
    if total > largest:
        expected = f"expected tensors that are left out of at most {largest / 2**30:.1f} GiB in total"
        raise DerivationError(f"{expected}; got {total / 2**30:.1f}")
    state = {} if known is None else known.state_dict()
    same = known is not None and all(
        name in state and state[name].dtype == value.dtype and torch.equal(state[name].cpu(), value)
        for name, value in (written or {}).items()
    )
    for path, part, name, size in _absent(module):
        try:
            with torch.no_grad():
                value = state[path + name].cpu() if same else part.derive(name)
        except (RuntimeError, ValueError, LookupError) as error:
            reason = f"{path}{name} cannot be computed from the other tensors"
            raise DerivationError(f"{reason}: {' '.join(str(error).split())}") from error
        if tuple(value.shape) != tuple(size):
            expected = f"{path}{name}: expected the size {tuple(size)}"
            raise DerivationError(f"{expected}; got {tuple(value.shape)} from the other tensors")
        inner, _, own = name.rpartition(".")
        # Laid out as tensors that are read, so that all later sums have the same bits.
        setattr(part.get_submodule(inner), own, value.contiguous())


def _parts(module: nn.Module) -> Iterator[tuple[str, Part]]:
    """Every part with its path and a dot, outer parts before those inside them."""
    for path, part in module.named_modules():
        if isinstance(part, Part):
            yield f"{path}." if path else "", part


def _absent(module: nn.Module) -> Iterator[tuple[str, Part, str, tuple[int, ...]]]:
    """Path, part, name and size of each derived buffer that is empty, as it is reached."""
    for path, part in _fitted_parts(module):
        for name, size in part.derivable().items():
            if not part.get_buffer(name).numel():
                yield path, part, name, size


def _fitted_parts(module: nn.Module) -> Iterator[tuple[str, Part]]:
    return ((path, part) for path, part in _parts(module) if part.fitted)


LIBRARY = "rehearsal_torch"
# An arrangement that these readers cannot read gets another number.
FORMAT = "1"
HEADER = "__metadata__"
# Characters of a label, and number of labels.
LONGEST, MOST = 500, 50


def labelled(content: bytes, labels: Mapping[str, str]) -> bytes:
    """A tensor file with labels in place of those it has, at most 50, cut at 500 characters."""
    if len(labels) > MOST:
        raise ValueError(f"expected at most {MOST} labels of a tensor file; got {len(labels)}")
    header, numbers = _header_and_numbers(content)
    tensors = {name: entry for name, entry in header.items() if name != HEADER}
    written = {name: labels[name][:LONGEST] for name in sorted(labels)}
    text = json.dumps({HEADER: written, **tensors}, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + numbers


def labels_in(content: bytes) -> dict[str, str]:
    """The labels of a tensor file that the library has read without a fault; empty if it has none."""
    labels = _header_and_numbers(content)[0].get(HEADER) or {}
    return {str(name): str(text) for name, text in labels.items()}


def weight_labels(surrogate: Surrogate, card: Mapping[str, Any]) -> dict[str, str]:
    """The labels of a surrogate's weights; commit, data fingerprint and seed are those of the model card."""
    labels = {
        "checkpoint_format": FORMAT,
        "format": "pt",
        "library": LIBRARY,
        "version": version("rehearsal-torch"),
        **_identity(surrogate),
        **{name: card.get(name) for name in ("commit", "data_fingerprint", "seed")},
    }
    return {name: str(value) for name, value in labels.items() if value is not None}


def odd_label(surrogate: Surrogate, labels: Mapping[str, str]) -> str:
    """Why weights with these labels are not those of a surrogate, and what to do; empty if they may be."""
    if "checkpoint_format" not in labels:
        return ""
    if labels["checkpoint_format"] != FORMAT:
        return (
            f"expected weights in format {FORMAT}; got format "
            f"{labels['checkpoint_format']!r}, of version {labels.get('version')} of {LIBRARY}: fit it again"
        )
    for name, own in _identity(surrogate).items():
        if labels.get(name) != own:
            return (
                f"expected the {name} that config.yaml builds, {own}; its label says {labels.get(name)}: the "
                "two files belong to different checkpoints, or config.yaml was changed: fetch the whole "
                "folder again"
            )
    return ""


def _identity(surrogate: Surrogate) -> dict[str, str | None]:
    """The labels that a surrogate has of itself."""
    question, kind = surrogate.question(), type(surrogate)
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "question_fingerprint": None if question is None else fingerprint(question),
    }


def _header_and_numbers(content: bytes) -> tuple[dict[str, dict[str, object]], bytes]:
    """The header and the numbers of a tensor file."""
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]
