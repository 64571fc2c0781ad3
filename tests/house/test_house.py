"""The house rules that a machine can check."""

import ast
import re
import subprocess
import sys

import pytest
import yaml

from tests.house.layers import LAYERS, METHODS, PACKAGE, RANK, ROOT, layer, modules, upward

# Abstractions of our own: no paper stands behind them.
GENERIC = {"search", "objective", "surrogate", "fitted", "stream", "single_changes", "equation"}
FORBIDDEN = {"utils", "util", "common", "core", "helpers", "helper", "base", "misc", "tools"}
NAMES = [str(path.relative_to(ROOT)) for path in modules()]


@pytest.mark.parametrize("path", modules(), ids=NAMES)
def test_imports_go_down(path):
    here = layer(path)
    if here is None:
        return
    assert here in RANK, f"{here} stands in no layer: add it to tests/house/layers.py"
    assert upward(path.read_text(encoding="utf-8"), here) == []


@pytest.mark.parametrize(
    ("source", "here"),
    [
        ("from rehearsal_torch.search.search import Search", "data"),
        ("def f():\n    import rehearsal_torch.commands.train", "reporting"),
        ("from .table import Table", "data"),
        ("from rehearsal_torch import fit", "search"),
    ],
)
def test_an_import_that_goes_up_is_seen(source, here):
    assert len(upward(source, here)) == 1


def test_layers_name_each_folder_once():
    assert sum(map(len, LAYERS)) == len(RANK)
    assert set(METHODS) <= set(RANK)


@pytest.mark.parametrize("path", modules(), ids=NAMES)
def test_files_are_short_and_well_named(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 400, f"{len(lines)} lines: split it by ideas"
    assert not FORBIDDEN & {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}, "named after no idea"


@pytest.mark.parametrize("path", sorted((ROOT / "scripts").glob("*.py")), ids=lambda path: path.name)
def test_scripts_hold_no_logic(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    tree = ast.parse(text)
    assert ast.get_docstring(tree)
    loops = [type(node).__name__ for node in ast.walk(tree) if isinstance(node, ast.For | ast.While | ast.ClassDef | ast.Try)]
    assert loops == [], "loops, classes and error handling belong into the package"


@pytest.mark.parametrize("path", modules(), ids=NAMES)
def test_modules_say_what_they_are(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not tree.body:
        return
    docstring = ast.get_docstring(tree)
    assert docstring, "a module's docstring is its theory"
    if layer(path) in METHODS and path.name != "__init__.py":
        whole = " ".join(ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
        generic = path.stem in GENERIC
        assert "Source:" in whole or generic, "which paper, which equation? Write `Source:`"


@pytest.mark.parametrize("path", modules(), ids=NAMES)
def test_public_things_have_docstrings_and_types(path):
    missing, waiting = [], [ast.parse(path.read_text(encoding="utf-8"))]
    for parent in waiting:
        for node in parent.body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            arguments = node.args.args if isinstance(node, ast.FunctionDef) else []
            typed = all(each.annotation is not None or each.arg in ("self", "cls") for each in arguments)
            if not ast.get_docstring(node) or not typed:
                missing.append(node.name)
            if isinstance(node, ast.ClassDef):
                waiting.append(node)
    assert missing == []


@pytest.mark.parametrize("path", modules(), ids=NAMES)
def test_nothing_is_asked_of_strings_or_swallowed(path):
    text = path.read_text(encoding="utf-8")
    calls = {node.func.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not calls & {"hasattr", "eval", "exec", "print_exc"}
    assert not re.search(r"^\s*(import|from) pickle", text, re.MULTILINE), "files that others may send us are read without pickle"


def test_importing_the_package_is_light():
    code = "import sys, rehearsal_torch; print(sorted({name.split('.')[0] for name in sys.modules} & {'torch', 'numpy', 'lightning', 'hydra'}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_everything_the_package_offers_exists():
    import rehearsal_torch

    for name in rehearsal_torch.__all__:
        assert getattr(rehearsal_torch, name).__module__.startswith(PACKAGE)


def test_conf_mirrors_the_package():
    groups = {path.name for path in (ROOT / "conf").iterdir() if path.is_dir()}
    assert groups == {"dataset", "surrogate", "objective", "search", "certificate", "decision", "experiment", "trainer", "logger", "hydra"}
    folders = {"dataset": "datasets", "surrogate": "surrogates", "objective": "objectives", "search": "search", "trainer": "training", "logger": "training"}
    for group, folder in folders.items():
        for path in (ROOT / "conf" / group).glob("*.yaml"):
            target = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("_target_", f"{PACKAGE}.{folder}.")
            assert target.startswith(f"{PACKAGE}.{folder}."), f"{path.name} builds something of another layer"


def test_tests_mirror_the_package():
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {"contracts", "papers", "conf", "scripts", "house", "commands"} <= folders
    assert {path.name for path in (ROOT / PACKAGE).iterdir() if len(list(path.glob("*.py"))) > 1} <= folders
