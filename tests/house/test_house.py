"""The house rules that a machine can check."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.house.layers import (
    LAYERS,
    METHODS,
    MOST_FILES,
    PACKAGE,
    RANK,
    ROOT,
    layer,
    modules,
    parsed,
    upward,
)

# Abstractions of our own: no paper stands behind them.
GENERIC = {"search", "objective", "surrogate", "part", "equation", "__init__"}
FORBIDDEN = {"utils", "util", "common", "core", "helpers", "helper", "base", "misc", "tools"}
LONGEST = 400
# Tests of one side of a module whose other tests stand at the mirrored path.
ASIDE = {
    "cli/test_damaged_folders.py",
    "cli/test_places.py",
    "cli/test_user_error.py",
    "mechanisms/test_course.py",
    "mechanisms/test_equation.py",
    "objectives/test_nearest_neighbour_entropy.py",
    "objectives/test_region_centre.py",
    "search/alterations/test_alteration_budget.py",
    "search/alterations/test_covered_intervals.py",
    "search/alterations/test_set_choice.py",
    "search/sequences/test_anchors.py",
    "search/sequences/test_random_changes.py",
    "search/sequences/test_single_changes.py",
    "search/sequences/test_top_k.py",
    "search/test_refrain.py",
}


def offenders(rule):
    """Every module that breaks a rule, with what the rule says of it."""
    trees = {path: (path.read_text(encoding="utf-8")) for path in modules()}
    found = {str(path.relative_to(ROOT)): rule(path, text, parsed(path)) for path, text in trees.items()}
    return {name: said for name, said in found.items() if said}


@pytest.mark.slow
def test_imports_go_down():
    missing = {layer(path) for path in modules()} - {None} - set(RANK)
    assert not missing, f"in no layer: add them to tests/house/layers.py: {missing}"
    assert offenders(lambda path, text, tree: upward(text, layer(path)) if layer(path) else []) == {}


@pytest.mark.parametrize(
    ("source", "here"),
    [
        ("from rehearsal_torch.search.search import Search", "data"),
        ("def f():\n    import rehearsal_torch.cli.verbs.decide", "reporting"),
        ("from .table import Table", "data"),
        ("from rehearsal_torch import fit", "search"),
    ],
)
def test_an_import_that_goes_up_is_seen(source, here):
    assert len(upward(source, here)) == 1


def test_layers_name_each_folder_once():
    assert sum(map(len, LAYERS)) == len(RANK)
    assert set(METHODS) <= set(RANK)


def test_files_are_short_and_well_named_and_rooms_are_small():
    def rule(path, text, tree):
        lines = len(text.splitlines())
        too_long = [f"{lines} lines: split it by ideas"] if lines > LONGEST else []
        return too_long + sorted(
            FORBIDDEN & {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}
        )

    assert offenders(rule) == {}
    rooms = Counter(path.parent for path in modules() if path.name != "__init__.py")
    assert {str(room.relative_to(ROOT)): count for room, count in rooms.items() if count > MOST_FILES} == {}


def test_scripts_hold_no_logic():
    found = {}
    for path in sorted((ROOT / "scripts").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        logic = [
            type(node).__name__
            for node in ast.walk(tree)
            if isinstance(node, ast.For | ast.While | ast.ClassDef | ast.Try)
        ]
        if logic or not ast.get_docstring(tree) or len(path.read_text(encoding="utf-8").splitlines()) > 60:
            found[path.name] = logic
    assert found == {}, "loops, classes and error handling belong into the package"


def test_modules_say_what_they_are_and_where_it_comes_from():
    def rule(path, text, tree):
        if tree.body and not ast.get_docstring(tree):
            return "no docstring: a module's docstring is its theory"
        if layer(path) in METHODS and path.stem not in GENERIC:
            nodes = (
                node
                for node in ast.walk(tree)
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            )
            if "Source:" not in " ".join(ast.get_docstring(node) or "" for node in nodes):
                return "which paper, which equation? Write `Source:`"
        return ""

    assert offenders(rule) == {}


def test_public_things_have_docstrings_and_types():
    def rule(path, text, tree):
        missing, waiting = [], [tree]
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
        return missing

    assert offenders(rule) == {}


def test_nothing_is_asked_of_strings_or_swallowed():
    def rule(path, text, tree):
        calls = {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        pickled = re.findall(r"^\s*(?:import|from) pickle.*", text, re.MULTILINE)
        return sorted(calls & {"hasattr", "eval", "exec", "print_exc"}) + pickled

    assert offenders(rule) == {}, "files that others may send us are read without pickle"


def test_importing_the_package_is_light():
    code = (
        "import sys, rehearsal_torch; print(sorted({name.split('.')[0] for name in sys.modules} & {'torch', "
        "'numpy', 'lightning', 'hydra'}))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_everything_the_package_offers_exists():
    import rehearsal_torch

    for name in rehearsal_torch.__all__:
        assert getattr(rehearsal_torch, name).__module__.startswith(PACKAGE)


def test_conf_mirrors_the_package():
    groups = {path.name for path in (ROOT / "conf").iterdir() if path.is_dir()}
    assert groups == {
        "dataset",
        "surrogate",
        "objective",
        "reward",
        "search",
        "certificate",
        "decision",
        "experiment",
        "trainer",
        "logger",
        "hydra",
    }
    folders = {
        "dataset": "problems",
        "surrogate": "surrogates",
        "objective": "objectives",
        "search": "search",
        "trainer": "training",
        "logger": "training",
    }
    for group, folder in folders.items():
        for path in (ROOT / "conf" / group).glob("*.yaml"):
            target = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get(
                "_target_", f"{PACKAGE}.{folder}."
            )
            assert target.startswith(f"{PACKAGE}.{folder}."), f"{path.name} builds something of another layer"


def test_tests_mirror_the_package():
    folders = {
        path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    assert {"contracts", "papers", "conf", "scripts", "house", "toys"} <= folders
    assert {path.name for path in (ROOT / PACKAGE).iterdir() if len(list(path.glob("*.py"))) > 1} <= folders


def classes(*places):
    """The names of the classes that modules below some places of the package define."""
    return {
        node.name
        for path in modules()
        if any(path.is_relative_to(ROOT / PACKAGE / place) for place in places)
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef)
    }


def guesses(tree, names):
    """The classes among some names that a module asks for by isinstance or issubclass."""
    asked = (
        node.args[1]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("isinstance", "issubclass")
    )
    return sorted(
        {
            each.id if isinstance(each, ast.Name) else each.attr
            for types in asked
            for each in ast.walk(types)
            if isinstance(each, ast.Name | ast.Attribute)
        }
        & names
    )


def test_the_kind_of_a_job_is_not_guessed():
    # `Problem.kind` says it; what else differs from one problem, surrogate or objective to another, they say
    # themselves.
    rooms = "problems", "surrogates", "objectives", "mechanisms/trajectory.py"
    names = classes(*rooms) - {"Problem", "World", "Surrogate"}
    assert {"Loan", "CausalProblem", "SepsisSimulated", "TransitionModel", "Trajectory"} <= names
    assert {"KernelValue", "CounterfactualReturn", "Candidates"} <= names

    def rule(path, text, tree):
        return guesses(tree, names) if layer(path) in ("loop", "cli", "reporting") else []

    assert offenders(rule) == {}


def test_a_guess_is_seen():
    source = "isinstance(a, worlds.Loan | World) or issubclass(b, (Trajectory, int))"
    assert guesses(ast.parse(source), {"Loan", "Trajectory"}) == ["Loan", "Trajectory"]


def test_every_module_has_a_test_beside_it():
    package = {path.relative_to(ROOT / PACKAGE) for path in modules() if path.name != "__init__.py"}
    beside = {path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    missing = {path.as_posix() for path in package if path.with_name(f"test_{path.name}") not in beside}
    assert missing == set(), "a test is expected: rehearsal_torch/a/b.py has tests/a/test_b.py"


def test_every_test_has_a_module():
    package = {path.relative_to(ROOT / PACKAGE) for path in modules()}
    rooms = {path.parts[0] for path in package if len(path.parts) > 1}
    tests = {path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    alone = {
        path.as_posix()
        for path in tests
        if (path.parts[0] in rooms or len(path.parts) == 1)
        and path.with_name(path.name.removeprefix("test_")) not in package
        and not any(imports(path, module) for module in package & named(path))
    }
    assert alone == ASIDE, "a test stands at the path of its module; ASIDE may only shrink"


def named(test):
    """The modules of which a test may hold a topic: test_a_b_c.py is of a_b or of a."""
    words = test.stem.removeprefix("test_").split("_")
    return {test.with_name("_".join(words[:count]) + ".py") for count in range(1, len(words))}


def imports(test, module):
    """Whether a test imports a module, both as paths below their folders."""
    dotted = ".".join((PACKAGE, *module.with_suffix("").parts))
    return f"from {dotted} import" in (ROOT / "tests" / test).read_text(encoding="utf-8")


def test_a_topic_of_a_module_is_named_after_it():
    test = Path("spaces/test_projection_edges.py")
    assert named(test) == {Path("spaces/projection.py")}
    assert imports(test, Path("spaces/projection.py"))
    assert not imports(test, Path("spaces/box.py"))
