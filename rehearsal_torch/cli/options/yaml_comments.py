"""The comments of a YAML file, key by key.

The comment of a key is the one at the end of its line, otherwise the comment lines directly above it. The
comment at the top of the file, before its first key, describes the file itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml


@dataclass(frozen=True)
class Comments:
    """The comments of a YAML file.

    Attributes:
        header: The description at the top, without ``@package`` lines; empty if there is none.
        keys: The path of a key, as names from the top, to its comment. Keys inside lists are left out.
    """

    header: str
    keys: dict[tuple[str, ...], str] = field(default_factory=dict)


def comments(text: str) -> Comments:
    """Reads the comments of a YAML file.

    Args:
        text: The file's content.

    Raises:
        yaml.YAMLError: if it is not YAML.
    """
    lines = text.splitlines()
    top = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    header = " ".join(line.lstrip("# ") for line in lines[:top] if "@package" not in line)
    found: dict[tuple[str, ...], str] = {}
    for path, key, value in _pairs(yaml.compose(text, Loader=yaml.SafeLoader), ()):
        beside = _beside(lines, key, value)
        above = _above(lines, key.start_mark.line, top)
        if beside or above:
            found[path] = beside or above
    return Comments(header, found)


def _pairs(
    node: yaml.Node | None, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            yield here, key, value
            yield from _pairs(value, here)


def _beside(lines: list[str], key: yaml.Node, value: yaml.Node) -> str:
    """The comment at the end of a key's line: after its value, or after the colon if the value starts on a
    later line.
    """
    same = value.start_mark.line == key.start_mark.line and isinstance(
        value, yaml.ScalarNode | yaml.CollectionNode
    )
    line, column = (
        (value.end_mark.line, value.end_mark.column) if same else (key.end_mark.line, key.end_mark.column)
    )
    rest = lines[line][column:].lstrip(": ") if line < len(lines) else ""
    return rest.lstrip("# ").strip() if rest.startswith("#") else ""


def _above(lines: list[str], line: int, top: int) -> str:
    """The comment lines directly above a line, down to the end of the file's own description."""
    first = line
    while first > top and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return " ".join(text.strip().lstrip("# ") for text in lines[first:line])
