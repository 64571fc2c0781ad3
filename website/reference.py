"""Pages of the API reference: the public names, and one page per room with all of its modules.

Nothing is imported: names and docstrings are read from the source, and mkdocstrings renders them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path


def public(package: Path) -> Iterator[tuple[str, str, str]]:
    """The names in a package's ``__all__``: (name, dotted path, first line of its docstring).

    The imports under ``if TYPE_CHECKING:`` in the package's ``__init__`` give the module of each name.

    Args:
        package: The package's folder.

    Raises:
        KeyError: if a name of ``__all__`` is not imported there.
    """
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: node.module or "" for node in imports for alias in node.names}
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    offered = next(node.value for node in assigned if ast.unparse(node.targets[0]) == "__all__")
    for name in ast.literal_eval(offered):
        module = homes[name]
        yield (
            name,
            f"{module}.{name}",
            _summary(package.parent.joinpath(*module.split(".")).with_suffix(".py"), name),
        )


def rooms(package: Path) -> dict[str, list[str]]:
    """The modules of each room, as dotted paths.

    A room is a folder directly below the package; single modules belong to the package itself.

    Args:
        package: The package's folder.
    """
    found: dict[str, list[str]] = {}
    for path in sorted(package.rglob("*.py")):
        inner = path.relative_to(package.parent).with_suffix("").parts
        if inner[-1] in ("__init__", "__main__"):
            continue
        found.setdefault(".".join(inner[: min(2, len(inner) - 1)]), []).append(".".join(inner))
    return found


def pages(package: Path) -> dict[str, str]:
    """The pages of the reference, file name to Markdown; ``index.md`` lists the public names.

    Args:
        package: The package's folder.
    """
    found = [(name, path, summary.replace("|", "\\|")) for name, path, summary in public(package)]
    rows = [f"| [`{name}`][{path}] | {summary} |" for name, path, summary in found]
    table = "\n".join(["| name | description |", "|---|---|", *rows])
    introduction = f"Available as `{package.name}.NAME`; each is loaded on first use."
    made = {"index.md": f"# Public names\n\n{introduction}\n\n{table}\n"}
    for room, modules in rooms(package).items():
        made[f"{room}.md"] = "\n\n".join([f"# {room}", *(f"::: {module}" for module in modules)]) + "\n"
    return made


def _summary(module: Path, name: str) -> str:
    """The first line of the docstring of a class or function of a module."""
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    raise KeyError(f"{module} defines no {name}")
