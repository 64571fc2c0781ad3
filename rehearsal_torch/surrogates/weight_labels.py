"""Labels of a surrogate's weights: what a file of tensors is where it is found alone.

    checkpoint_format      the arrangement of labels and tensors
    library, version       this package, and its version that wrote the file
    class                  the surrogate, as a dotted path
    question_fingerprint   of the question that it was fitted for (`data.question.fingerprint`)
    data_fingerprint       of the rows of the fit
    seed, commit           of the fit
    format                 "pt", as other libraries label tensors of torch

What is not known is left out. Class and question are compared with those of the surrogate that the
configuration builds when it is loaded; the others are for readers.

A safetensors file begins with the length of its header (8 bytes, little-endian) and the header, which is
JSON: ``{"__metadata__": {label: text}, tensor: {dtype, shape, data_offsets}, ...}``, padded by spaces to a
multiple of 8 bytes; the numbers follow. Labels are short texts, and run nothing. The library writes them in
an order that differs from process to process; here they are sorted, so that equal content is equal to the
last byte.

Source: of the file, the format's description (github.com/huggingface/safetensors).
"""

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from rehearsal_torch.data.question import fingerprint
from rehearsal_torch.surrogates.surrogate import Surrogate

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
    header, numbers = _parts(content)
    tensors = {name: entry for name, entry in header.items() if name != HEADER}
    written = {name: labels[name][:LONGEST] for name in sorted(labels)}
    text = json.dumps({HEADER: written, **tensors}, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + numbers


def labels_in(content: bytes) -> dict[str, str]:
    """The labels of a tensor file that the library has read without a fault; empty if it has none."""
    labels = _parts(content)[0].get(HEADER) or {}
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
    """Why weights with these labels (none of a file without labels) are not those of a surrogate, and what to
    do; empty if they may be.
    """
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


def _parts(content: bytes) -> tuple[dict[str, dict[str, object]], bytes]:
    """The header and the numbers of a tensor file."""
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]
