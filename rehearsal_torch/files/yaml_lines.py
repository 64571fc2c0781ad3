"""The line at which each key of a YAML text stands, for messages."""

from collections.abc import Iterator
from typing import Any

import yaml

from rehearsal_torch.files.schema import path_of

_Loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def lines_of(text: str) -> dict[str, int]:
    """Dotted path, as messages write it (``variables.bmi.range[0]``), to line, from 1; empty for a text that
    is no mapping.
    """
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
    finally:
        loader.dispose()
    return {path_of(parts): line for parts, line in _walk(root, ()) if parts}


def _walk(node: Any, parts: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], int]]:
    # The same node may stand at several places (aliases); their number is bounded where the text is read.
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = (*parts, str(key.value))
            yield below, key.start_mark.line + 1
            yield from _walk(value, below)
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            yield (*parts, place), value.start_mark.line + 1
            yield from _walk(value, (*parts, place))


def line_at(lines: dict[str, int], path: str) -> int | None:
    """The line of a path, or of the longest known path that contains it; None if there is none."""
    while path:
        if path in lines:
            return lines[path]
        cut = max(path.rfind("."), path.rfind("["))
        path = path[:cut] if cut > 0 else ""
    return None
