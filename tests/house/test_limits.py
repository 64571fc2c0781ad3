"""One file of limits (limits.yaml), and what is counted for each of them."""

import ast
import re
from collections import Counter
from functools import cache

import networkx as nx
import pytest
import yaml

from tests.places import ROOT

LIMITS = yaml.safe_load((ROOT / "tests/house/limits.yaml").read_text(encoding="utf-8"))
SPLITTING = {"startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix"}
# Names of what holds words for people, and how such words begin.
SAID = re.compile(r"message|warning|reason|sentence|error|told|headline")
WORDS = re.compile(r"caution|[A-Z][a-z]+|; ")


def python_files(folder):
    return sorted((ROOT / folder).rglob("*.py"))


@cache
def parsed():
    """Every module of the package by its dotted name."""
    found = {}
    for path in python_files("rehearsal_torch"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return found


@cache
def imports():
    """What each module imports of the package: (module, imported, where), where is top, inner or types."""
    found = set()

    def visit(module, node, where):
        for child in ast.iter_child_nodes(node):
            place = where
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                place = "inner"
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                place = "types"
            elif isinstance(child, ast.Import):
                names = [alias.name for alias in child.names]
                found.update((module, name, where) for name in names if name in parsed())
            elif isinstance(child, ast.ImportFrom) and child.module in parsed():
                names = [f"{child.module}.{alias.name}" for alias in child.names]
                found.update((module, name if name in parsed() else child.module, where) for name in names)
            visit(module, child, place)

    for module, tree in parsed().items():
        visit(module, tree, "top")
    return found


def lines(folder):
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in python_files(folder))


def doc_words():
    pages = [path for path in (ROOT / "docs").rglob("*.md") if ROOT / "docs/results" not in path.parents]
    pages += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


def circles():
    graph = nx.DiGraph((module, other) for module, other, where in imports() if where != "types")
    return sum(len(group) > 1 for group in nx.strongly_connected_components(graph))


def parsed_sentences(tree):
    """How often a module takes apart what is said to people: warning.startswith("...")."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    calls = [each for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr in SPLITTING]
    begins = (str(each.args[0].value) if isinstance(each.args[0], ast.Constant) else "" for each in calls)
    return sum(
        SAID.search(ast.unparse(call.func.value).lower()) is not None or WORDS.match(words) is not None
        for call, words in zip(calls, begins, strict=True)
    )


COUNTED = {
    "lines": lambda: lines("rehearsal_torch"),
    "modules": lambda: len(python_files("rehearsal_torch")),
    "test_lines": lambda: lines("tests"),
    "doc_words": doc_words,
    "circles": circles,
    "inner_imports": lambda: sum(where == "inner" for _, _, where in imports()),
    "type_imports": lambda: sum(where == "types" for _, _, where in imports()),
    "parsed_sentences": lambda: sum(map(parsed_sentences, parsed().values())),
    "cli_imports": lambda: sum(
        other.startswith("rehearsal_torch.cli") and not module.startswith("rehearsal_torch.cli")
        for module, other, _ in imports()
    ),
    "longest_file": lambda: max(
        len(path.read_text(encoding="utf-8").splitlines()) for path in python_files("rehearsal_torch")
    ),
    "largest_room": lambda: max(
        Counter(path.parent for path in python_files("rehearsal_torch") if path.stem != "__init__").values()
    ),
    "reproduction_lines": lambda: lines("reproduction"),
}


@pytest.mark.parametrize("name", COUNTED)
def test_limits_are_kept(name):
    count = COUNTED[name]()
    assert count <= LIMITS[name], f"{name}: {count}, and at most {LIMITS[name]} are agreed"


def test_every_limit_is_counted():
    assert list(COUNTED) == list(LIMITS)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("warning.startswith('Nothing')", 1),
        ("str(error).partition(':')", 1),
        ("path.name.startswith('a')", 0),
        ("key.startswith('caution: ')", 1),
        ("row.warnings[0].removeprefix('x').startswith('y')", 2),
    ],
)
def test_a_parsed_sentence_is_seen(source, count):
    assert parsed_sentences(ast.parse(source)) == count
