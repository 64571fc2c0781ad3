"""The layers, from the lowest; a module imports from its own layer and from those below."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.places import ROOT

PACKAGE = "rehearsal_torch"

LAYERS = (
    {"files", "progress", "seeding", "cluster", "workers"},
    {"spaces", "graphs", "shared_tasks"},
    {"data"},
    {"problems"},
    {"estimators"},
    {"mechanisms"},
    {"surrogates"},
    {"objectives"},
    {"search"},
    {"training", "certificate", "credible_bound"},
    {
        *(
            "adapters",
            "checkpoint",
            "claims",
            "loop",
            "member_graphs",
            "method_choice",
            "round_line",
        ),
        *("row_cases", "run_folder"),
    },
    {"evaluation"},
    {"reporting"},
    {"cli"},
    {"verbs", "optimiser"},
    {"explorer"},
    {"program", "__main__"},
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
METHODS = (
    "spaces",
    "graphs",
    "data",
    "estimators",
    "mechanisms",
    "surrogates",
    "objectives",
    "search",
    "certificate",
    "credible_bound",
)
MOST_FILES = 20


def modules() -> list[Path]:
    """Every module of the package."""
    return sorted((ROOT / PACKAGE).rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a module, read once by all tests of a process."""
    return ast.parse(path.read_text(encoding="utf-8"))


def layer(path: Path) -> str | None:
    """The first name below the package; None for the package's own __init__."""
    first = path.relative_to(ROOT / PACKAGE).parts[0]
    return None if first == "__init__.py" else first.removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[str]:
    """The dotted names that are imported anywhere in a module, also inside functions and for types only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def upward(source: str, here: str) -> list[str]:
    """The imports of a module in layer `here` that go up, or are relative."""
    found = []
    for name in imported(ast.parse(source)):
        if name.startswith("."):
            found.append(name)
        elif name.split(".")[0] == PACKAGE:
            there = name.split(".")[1] if "." in name else None
            if there is None or RANK[there] > RANK[here]:
                found.append(name)
    return found
