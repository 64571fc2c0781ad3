"""The modules that decide and check, and which of them are judged on a day.

What decides are the searches, the objectives and the regions; what checks are the others of `CHECKS`: what is
read of tasks, tables and trials, graphs, intervals, and claims.
"""

from collections.abc import Sequence
from pathlib import Path

FOLDERS = ("objectives", "search", "spaces")
CHECKS = (
    "certificate.py",
    "claims.py",
    "data/causal_task.py",
    "data/estimates/percent.py",
    "data/problem_file/case_columns.py",
    "data/problem_file/cases.py",
    "data/trials/log.py",
    "data/written_region.py",
    "data/written_task.py",
    "evaluation/bootstrap.py",
    "files/schema.py",
    "graphs/edge_list.py",
    "graphs/separation.py",
    "optimiser.py",
    "problems/causal/waiting_rows.py",
    "surrogates/network/exogenous_model.py",
)


def modules_of(package: Path) -> list[str]:
    """All modules of a package, as paths below it, in the order of their names."""
    found = [path.relative_to(package).as_posix() for path in package.rglob("*.py")]
    return sorted(name for name in found if Path(name).name != "__init__.py")


def deciding(package: Path) -> list[str]:
    """The modules that decide and check."""
    return [name for name in modules_of(package) if Path(name).parts[0] in FOLDERS or name in CHECKS]


def rotated(modules: Sequence[str], count: int, day: int) -> list[str]:
    """The modules of a day: those of consecutive days follow each other, and begin anew after the last.

    Args:
        modules: All modules.
        count: How many are judged on a day.
        day: The day's number.

    Raises:
        ValueError: if count is below 1.
    """
    if count < 1:
        raise ValueError(f"expected at least 1 module a day; got {count}")
    first = day * count
    return [modules[(first + place) % len(modules)] for place in range(min(count, len(modules)))]


def own_tests(package: Path, tests: Path, name: str) -> list[Path]:
    """The test files of a module: its mirrored one, and those of the same folder that import it and are named
    after a topic, so that no module is mirrored by them.

    Args:
        package: The folder of the package.
        tests: That of the tests.
        name: The module's path below the package.
    """
    path = Path(name)
    module = ".".join((package.name, *path.with_suffix("").parts))
    beside = [
        each
        for each in sorted((tests / path.parent).glob("test_*.py"))
        if not (package / path.parent / each.name.removeprefix("test_")).exists()
        and f"from {module} import" in each.read_text(encoding="utf-8")
    ]
    return [tests / path.with_name(f"test_{path.name}"), *beside]
