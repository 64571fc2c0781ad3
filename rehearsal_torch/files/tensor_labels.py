"""Labels of a tensor file: what a safetensors file says of itself, in ``__metadata__`` of its header.

A safetensors file begins with the length of its header (8 bytes, little-endian) and the header, which is
JSON: ``{"__metadata__": {label: text}, tensor: {dtype, shape, data_offsets}, ...}``, padded by spaces to a
multiple of 8 bytes; the numbers follow. Labels are short texts, and run nothing. The library writes them in
an order that differs from process to process; here they are sorted, so that equal content is equal to the
last byte.

Source: the format's description (github.com/huggingface/safetensors).
"""

import json
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open

from rehearsal_torch.files.plain import PlainFileError

HEADER = "__metadata__"
# Characters of a label, and number of labels.
LONGEST, MOST = 500, 50


def labelled(content: bytes, labels: Mapping[str, str]) -> bytes:
    """A tensor file with labels, which replace those that it has.

    Args:
        content: The bytes of the file.
        labels: Name to text; longer texts are cut at 500 characters.

    Raises:
        ValueError: if there are more than 50 labels.
    """
    if len(labels) > MOST:
        raise ValueError(f"expected at most {MOST} labels of a tensor file; got {len(labels)}")
    header, numbers = _parts(content)
    tensors = {name: each for name, each in header.items() if name != HEADER}
    told = {name: labels[name][:LONGEST] for name in sorted(labels)}
    text = json.dumps({HEADER: told, **tensors}, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + numbers


def labels_in(content: bytes) -> dict[str, str]:
    """The labels of a tensor file that the library has read without a fault; empty if it has none."""
    found = _parts(content)[0].get(HEADER) or {}
    return {str(name): str(text) for name, text in found.items()}


def labels_of(path: str | Path) -> dict[str, str]:
    """The labels of a tensor file, read by the library, without its numbers; empty if it has none.

    Raises:
        PlainFileError: if it cannot be read, or is no such file.
    """
    try:
        with safe_open(str(path), framework="numpy") as file:
            return dict(file.metadata() or {})
    except (OSError, SafetensorError) as error:
        raise PlainFileError(
            f"{path}: expected a file of tensors in the safetensors format ({error}): fetch it again"
        ) from error


def _parts(content: bytes) -> tuple[dict[str, dict[str, object]], bytes]:
    """The header and the numbers of a tensor file."""
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]
