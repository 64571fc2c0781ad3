"""The table of rooms in docs/architecture.md, made from the code: python -m tests.house.rooms."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.house.layers import LAYERS, PACKAGE, RANK, ROOT, imported, layer, modules, parsed

PAGE = ROOT / "docs/architecture.md"
_BETWEEN = re.compile(r"(?<=<!-- rooms: begin -->\n).*?(?=<!-- rooms: end -->)", re.DOTALL)


def rooms() -> list[str]:
    """The rooms that there are: folders with modules, and single modules, directly below the package."""
    return sorted({room for path in modules() if (room := layer(path)) is not None})


def described(room: str) -> str:
    """The first line of a room's docstring.

    Raises:
        ValueError: if it has none.
    """
    inside = ROOT / PACKAGE / room / "__init__.py"
    path = inside if inside.is_file() else ROOT / PACKAGE / f"{room}.py"
    docstring = ast.get_docstring(parsed(path))
    if not docstring:
        raise ValueError(f"{path.relative_to(ROOT)} does not say what the room is for: give it a docstring")
    return docstring.partition("\n")[0].rstrip(".")


def touched(room: str) -> list[str]:
    """The other rooms that a room imports from, in the order of the layers."""
    found = _imports().get(room, set())
    return sorted(found - {room}, key=lambda name: (RANK[name], name))


@cache
def _imports() -> dict[str, set[str]]:
    """Room to the rooms that its modules import from, itself among them."""
    found: dict[str, set[str]] = {}
    for path in modules():
        if (room := layer(path)) is not None:
            names = imported(parsed(path))
            others = {name.split(".")[1] for name in names if name.startswith(f"{PACKAGE}.")}
            found.setdefault(room, set()).update(others)
    return found


def table() -> str:
    """The table, from the lowest layer to the highest."""
    lines = ["| layer | room | holds | imports from |", "|---:|---|---|---|"]
    for rank, names in enumerate(LAYERS):
        for room in sorted(names):
            others = ", ".join(f"`{other}`" for other in touched(room)) or "nothing"
            lines.append(f"| {rank} | `{room}` | {described(room)} | {others} |")
    return "\n".join(lines) + "\n"


def written(page: str) -> str:
    """A page with its table made anew.

    Raises:
        ValueError: if it has no place for one.
    """
    made, count = _BETWEEN.subn(lambda _: table(), page)
    if count != 1:
        marks = "<!-- rooms: begin --> and <!-- rooms: end -->"
        raise ValueError(f"expected one place between {marks}; got {count}")
    return made


def write(page: Path = PAGE) -> None:
    """Makes the table of a page anew."""
    page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
