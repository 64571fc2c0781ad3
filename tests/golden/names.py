"""Old names and new ones: what a restructuring renamed, so that the same number is found under both.

`renamed.yaml` has a table, old name to new, for each kind:

    keys        columns, keys, names of tensors; a name with dots or slashes also part by part
    files       names of files, with or without the folders before them
    classes     dotted paths of classes or modules, also as the beginning of a longer path
    words       whole texts in a cell or behind a key
    overrides   what is typed: a key (``old.key``), also as the beginning of a longer one, or a key with a
                value (``decision=old``)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

RENAMED = Path(__file__).with_name("renamed.yaml")


@dataclass(frozen=True)
class Names:
    """Tables of old names to new ones; see the module."""

    keys: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Names":
        """The tables of a file.

        Raises:
            ValueError: if it has a table that is not known, or one that maps anything but texts to texts.
        """
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        known = [each.name for each in fields(cls)]
        if not isinstance(content, dict) or set(content) - set(known):
            raise ValueError(f"{path}: expected tables {', '.join(known)}; got {list(content)}")
        tables = {name: table or {} for name, table in content.items()}
        for name, table in tables.items():
            texts = [text for pair in table.items() for text in pair] if isinstance(table, dict) else [None]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError(f"{path}: {name}: expected old name: new name, both texts; got {table!r}")
        return cls(**tables)

    def key(self, old: str) -> str:
        """The new name of a key."""
        whole = self.classed(self.keys.get(old, old))
        if whole != old:
            return whole
        return "".join(self.keys.get(part, part) for part in re.split(r"([./])", old))

    def file(self, old: str) -> str:
        """The new name of a file, by its whole path or by its last part."""
        folder, _, last = old.rpartition("/")
        renamed = self.files.get(last, last)
        return self.files.get(old, f"{folder}/{renamed}" if folder else renamed)

    def classed(self, old: str) -> str:
        """The new path of a class."""
        return _begun(self.classes, old)

    def word(self, old: str) -> str:
        """The new text of a cell; a path of names, such as that of a metric, is renamed as a key is."""
        if old in self.words:
            return self.words[old]
        return self.key(old) if "/" in old else self.classed(old)

    def recorded(self, record: Any, depth: int = 0, inside: str = "") -> Any:
        """A run's record with new names at every depth.

        Raises:
            ValueError: if two keys of a mapping get the same name.
        """
        if isinstance(record, dict):
            rename = self.file if inside == "files" and depth == 1 else self.key
            within = {key: key if depth == 0 else inside for key in record}
            new = {rename(key): self.recorded(value, depth + 1, within[key]) for key, value in record.items()}
            if len(new) < len(record):
                raise ValueError(f"two of {', '.join(record)} get the same name: mend the tables")
            return new
        if isinstance(record, list):
            return [self.recorded(each, depth + 1, inside) for each in record]
        return self.word(record) if isinstance(record, str) else record

    def typed(self, argument: str) -> str:
        """An argument in the new words; of several values (``a=b,c``) each is looked up."""
        key, equals, values = argument.partition("=")
        plus = "+" * (len(key) - len(key.lstrip("+")))
        key = key.lstrip("+")
        if not equals:
            return plus + _begun(self.overrides, key)
        renamed = _begun(self.overrides, key)
        found = [self.overrides.get(f"{key}={value}", f"{renamed}={value}") for value in values.split(",")]
        names = {each.partition("=")[0] for each in found}
        if len(names) > 1:
            raise ValueError(f"{argument}: its values get different keys {names}: mend the tables")
        return f"{plus}{names.pop()}=" + ",".join(each.partition("=")[2] for each in found)


def _begun(table: Mapping[str, str], old: str) -> str:
    """A dotted name whose longest beginning that stands in a table is replaced."""
    parts = old.split(".")
    for count in range(len(parts), 0, -1):
        begin = ".".join(parts[:count])
        if begin in table:
            return ".".join([table[begin], *parts[count:]])
    return old
