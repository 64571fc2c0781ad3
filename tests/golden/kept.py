"""What is kept of a run's folder: numbers, names and digests of tensors; no times, places or sentences.

    *.csv                   rows as columns; a cell is a number, a text, or null where it is empty
    *.jsonl                 one object a line
    graphs.yaml             the graphs that were learnt
    *.safetensors           shape, dtype and SHA-256 of each tensor, by its name
    run.json, status.json   the fingerprint of the data, and the state

Left out are `OMITTED` keys and columns, whatever is measured in seconds, and all other files: figures, the
configuration (whose keys are renamed), documents made from the tables, and Lightning's own checkpoints.
"""

import csv
import hashlib
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

# Sentences, which may be worded anew; where the code comes from and where results went; what was typed.
OMITTED = {
    "reason": "a sentence",
    "warnings": "sentences",
    "message": "a sentence",
    "notes": "sentences",
    "of": "says in words what an estimate is of",
    "commit": "differs between the two versions",
    "folder": "a path",
    "options": "what was typed, with paths",
}
# seconds, fit_seconds, seconds_median, decision/seconds, mean seconds a round
TIMED = re.compile(r"(^|[^a-z])(seconds|minutes)([^a-z]|$)")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?|nan", re.IGNORECASE)
# Rows of these tables say in the column "name" what their value is.
NAMED = "name"


def kept(folder: Path, apart: tuple[str, ...] = ()) -> dict[str, Any]:
    """What is kept of a run's folder.

    Args:
        folder: The folder, or a study's.
        apart: Folders in it that are runs of their own.

    Returns:
        "state" and "data" (None where the run says neither), and "files", file name to content.
    """
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        reader = READERS.get(path.name, READERS.get(path.suffix))
        if reader is not None and path.is_file() and name.split("/")[0] not in apart:
            found[name] = reader(path)
    return {
        "state": _said(folder / "status.json", "state"),
        "data": _said(folder / "run.json", "data_fingerprint"),
        "files": found,
    }


def omitted(key: str) -> bool:
    """Whether a key or column is left out."""
    return key in OMITTED or bool(TIMED.search(key))


def without(value: Any) -> Any:
    """A value without the keys that are left out, at every depth."""
    if isinstance(value, dict):
        return {str(key): without(each) for key, each in value.items() if not omitted(str(key))}
    return [without(each) for each in value] if isinstance(value, list) else value


def table(path: Path) -> dict[str, Any]:
    """A CSV as columns: "rows", how many there are, and "columns", name to cells."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if not TIMED.search(row.get(NAMED) or "")]
    names = [name for name in rows[0] if not omitted(name)] if rows else []
    return {"rows": len(rows), "columns": {name: [cell(row[name]) for row in rows] for name in names}}


def cell(text: str | None) -> Any:
    """A cell as a number where it is one, else as a text; null where it is empty."""
    if not text:
        return None
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return float(text) if NUMBER.fullmatch(text) else text


def lines(path: Path) -> list[Any]:
    """A file of JSON objects, a line each."""
    return [without(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def graphs(path: Path) -> Any:
    """A YAML file."""
    return without(yaml.safe_load(path.read_text(encoding="utf-8")))


def tensors(path: Path) -> dict[str, Any]:
    """Shape, dtype and SHA-256 of each tensor of a safetensors file.

    The file begins with the length of a JSON header (8 bytes, little-endian). The header says where the bytes
    of each tensor lie behind it.
    """
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    found = {}
    for name, told in json.loads(content[8:begin]).items():
        if name != "__metadata__":
            first, last = told["data_offsets"]
            digest = hashlib.sha256(content[begin + first : begin + last]).hexdigest()
            found[name] = {"shape": told["shape"], "dtype": told["dtype"], "sha256": digest}
    return found


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(where, what) of every number and text in a value; an empty mapping or list is one too."""
    if isinstance(value, dict) and value:
        for key, each in sorted(value.items()):
            yield from leaves(each, (*path, key))
    elif isinstance(value, list) and value:
        for index, each in enumerate(value):
            yield from leaves(each, (*path, str(index)))
    else:
        yield path, value


def is_number(value: Any) -> bool:
    """Whether a leaf is a number, undefined ones among them."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def undefined(value: Any) -> bool:
    """Whether a leaf is NaN."""
    return isinstance(value, float) and math.isnan(value)


def _said(path: Path, key: str) -> Any:
    return json.loads(path.read_text(encoding="utf-8")).get(key) if path.is_file() else None


READERS = {
    ".csv": table,
    ".jsonl": lines,
    "graphs.yaml": graphs,
    ".safetensors": tensors,
}
