"""Conversion of a notebook to a Markdown page: its text, its code, and its saved output.

Jupytext writes notebooks as Markdown without output; these pages are read for their figures, so output is
kept. Nothing is executed: `make test-slow` runs the notebooks.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def markdown(path: Path) -> tuple[str, dict[str, bytes]]:
    """Converts a notebook to Markdown.

    Args:
        path: The notebook, nbformat 4.

    Returns:
        The page, and its images by file name; the page expects them in its own folder.
    """
    cells, images = json.loads(path.read_text(encoding="utf-8"))["cells"], dict[str, bytes]()
    return "\n\n".join(block for cell in cells for block in _blocks(cell, path.stem, images)) + "\n", images


def _blocks(cell: Mapping[str, Any], name: str, images: dict[str, bytes]) -> Iterator[str]:
    source = _text(cell["source"]).strip("\n")
    if cell["cell_type"] == "markdown":
        yield source
    elif cell["cell_type"] == "code" and source:
        yield _fenced("python", source)
        for output in cell["outputs"]:
            yield from _output(output, name, images)


def _output(output: Mapping[str, Any], name: str, images: dict[str, bytes]) -> Iterator[str]:
    """The output of a cell: an image if there is one, else a table if there is one, else text."""
    if output["output_type"] == "stream":
        yield _fenced("text", _text(output["text"]).rstrip("\n"))
        return
    data = output.get("data", {})
    if "image/png" in data:
        number = len(images) + 1
        images[f"{name}_{number}.png"] = base64.b64decode(_text(data["image/png"]))
        yield f"![Figure {number}]({name}_{number}.png)"
    elif "text/html" in data:
        # A blank line would end the block of HTML.
        yield "\n".join(line for line in _text(data["text/html"]).splitlines() if line.strip())
    elif "text/plain" in data:
        yield _fenced("text", _text(data["text/plain"]))


def _text(value: str | list[str]) -> str:
    """Text of a notebook, stored as one string or as a list of lines."""
    return value if isinstance(value, str) else "".join(value)


def _fenced(language: str, text: str) -> str:
    return f"````{language}\n{text}\n````"
