"""The house rules that a machine can check. Limits of size and shape are in test_limits.py, layers of imports
in pyproject.toml (import-linter)."""

import ast
import re
import shlex
import subprocess
import sys
import tomllib

import pytest
import yaml

from tests.conftest import LANES
from tests.house.test_limits import parsed
from tests.places import ROOT

PACKAGE = ROOT / "rehearsal_torch"
FORBIDDEN = {"utils", "util", "common", "core", "helpers", "helper", "base", "misc", "tools"}
PAGES = [ROOT / name for name in ("docs/architecture.md", "CONTRIBUTING.md")]


def test_modules_are_well_named():
    assert [name for name in parsed() if FORBIDDEN & set(name.split("."))] == []


def test_nothing_is_asked_of_strings_or_swallowed():
    """Files that others may send us are read without pickle."""
    found = {}
    for name, tree in parsed().items():
        nodes = list(ast.walk(tree))
        calls = {
            node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        if wrong := (calls & {"hasattr", "eval", "exec", "print_exc"}) | (modules & {"pickle"}):
            found[name] = wrong
    assert found == {}


def test_scripts_hold_no_logic():
    """Loops, classes and error handling belong into the package."""
    found = {}
    logic = ast.For | ast.While | ast.ClassDef | ast.Try
    for path in sorted((ROOT / "scripts").glob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        found[path.name] = [node for node in nodes if isinstance(node, logic)]
    assert {name: nodes for name, nodes in found.items() if nodes} == {}


def test_importing_the_package_is_light():
    code = "import sys, rehearsal_torch; print({'torch', 'numpy', 'lightning', 'hydra'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_everything_the_package_offers_exists():
    import rehearsal_torch

    for name in rehearsal_torch.__all__:
        assert getattr(rehearsal_torch, name).__module__.startswith("rehearsal_torch")


@pytest.mark.parametrize(
    ("group", "room"),
    [
        ("dataset", "problems"), ("surrogate", "surrogates"), ("objective", "objectives"),
        ("search", "search"), ("trainer", "training"),
    ],
)  # fmt: skip
def test_conf_builds_what_the_group_is_named_after(group, room):
    for path in (ROOT / "conf" / group).glob("*.yaml"):
        target = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("_target_")
        assert target is None or target.startswith(f"rehearsal_torch.{room}."), path.name


def test_the_kind_of_a_job_is_not_guessed():
    """`Problem.kind` says it; what else differs from one class to another, the classes say themselves."""
    rooms = ("problems", "surrogates", "objectives")
    trees = [tree for name, tree in parsed().items() if name.split(".")[1:2] and name.split(".")[1] in rooms]
    names = {node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}
    names -= {"Problem", "World", "Surrogate"}
    found = set()
    for module, tree in parsed().items():
        if module.split(".")[1:2] and module.split(".")[1] in ("loop", "cli", "reporting"):
            calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
            asked = (call.args[1] for call in calls if ast.unparse(call.func) in ("isinstance", "issubclass"))
            found |= {(module, name) for types in asked for name in re.findall(r"\w+", ast.unparse(types))}
    assert {(module, name) for module, name in found if name in names} == set()


def test_the_page_on_architecture_numbers_the_layers_of_the_contract():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = [
        [room.strip() for room in layer.split(":")]
        for layer in contract["tool"]["importlinter"]["contracts"][0]["layers"]
    ]
    text = PAGES[0].read_text(encoding="utf-8")
    numbered = {
        room: int(number) for number, room in re.findall(r"^\| (\d+) \| `(\w+)` \|", text, re.MULTILINE)
    }
    assert numbered == {room: place for place, rooms in enumerate(reversed(layers)) for room in rooms}


def test_every_room_stands_on_the_page_on_architecture():
    text = PAGES[0].read_text(encoding="utf-8")
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix in ("", ".py")} - {
        "__init__",
        "__pycache__",
    }
    assert set(re.findall(r"^\| \d+ \| `(\w+)` \|", text, re.MULTILINE)) == there


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_pages_name_exist(page):
    heads = ("rehearsal_torch/", "tests/", "conf/", "docs/", "scripts/", "benchmarks/", "notebooks/")
    named = re.findall(r"`([\w./-]+)`", page.read_text(encoding="utf-8"))
    assert [each for each in named if each.startswith(heads) and not (ROOT / each).exists()] == []


def test_every_lane_is_kept_out_of_the_fast_tests_and_has_a_target():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"][
        "ini_options"
    ]
    markers = [text.partition(":")[0] for text in settings["markers"]]
    words = shlex.split(settings["addopts"])
    assert words[words.index("-m") + 1] == " and ".join(f"not {marker}" for marker in markers)
    assert set(LANES.values()) <= set(markers)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\(PYTEST\) -m \"?(\w+)", makefile)) == set(markers)
