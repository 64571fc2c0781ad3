"""Which tests run which lines: a map of one run of the fast tests under coverage.py, with the name of the
test that runs as the context of each line (`contexts`).

Run: python -m tests.mutation.reach MAP [--jobs 2]
Writes MAP (a database of coverage.py) of the modules that decide and check, from a clean commit, and beside
it a file that says of which.

A line that is run while a module is imported, such as a default of an argument, stands for the function or
the class that it belongs to: the tests that run any line of it.
"""

import argparse
import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from coverage import CoverageData

from tests.mutation.commit import clean_commit
from tests.mutation.deciding import deciding

ROOT = Path(__file__).resolve().parents[2]
RC = """[run]
data_file = {data}
parallel = true
patch = subprocess
include =
{included}
"""


class Reach:
    """A map that was read.

    Args:
        path: The file.
        commit: The commit that it must be of.

    Raises:
        ValueError: if there is none, or it is of another commit.
    """

    def __init__(self, path: Path, commit: str) -> None:
        note = beside(path, "commit")
        if not path.exists() or not note.exists():
            raise ValueError(f"{path}: no map of tests: run python -m tests.mutation.reach {path}")
        own = note.read_text(encoding="utf-8").strip()
        if own != commit:
            raise ValueError(f"{path}: a map of commit {own[:12]}; this is {commit[:12]}: make it again")
        self.data = CoverageData(str(path))
        self.data.read()
        self.files = {Path(each): each for each in self.data.measured_files()}

    def tests_of(self, module: Path, line: int) -> list[str]:
        """The tests that run a line, as ``tests/a/test_b.py::test_c``, in the order of their names.

        Args:
            module: The file of the module.
            line: The line.
        """
        name = self.files.get(module)
        if name is None:
            return []
        by_line = self.data.contexts_by_lineno(name)
        found = {each for each in by_line.get(line, ()) if each}
        if not found:
            inside = scope_of(module.read_text(encoding="utf-8"), line)
            found = {each for place in inside for each in by_line.get(place, ()) if each}
        return sorted(found)


def spread(tests: Sequence[str], own: Sequence[Path], most: int) -> list[str]:
    """At most so many of some tests, from as many files as possible, without those of some files.

    Args:
        tests: Names such as ``tests/a/test_b.py::test_c``.
        own: The files that are left out.
        most: The number.
    """
    left_out = {path.relative_to(ROOT).as_posix() for path in own}
    by_file: dict[str, list[str]] = {}
    for each in tests:
        file = each.partition("::")[0]
        if file not in left_out:
            by_file.setdefault(file, []).append(each)
    rows = [(place, file, each) for file, every in by_file.items() for place, each in enumerate(every)]
    return sorted(each for _, _, each in sorted(rows)[:most])


def scope_of(source: str, line: int) -> range:
    """The lines of the innermost function or class that a line belongs to; all of them outside of any."""
    scopes = [
        each
        for each in ast.walk(ast.parse(source))
        if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.lineno <= line <= (each.end_lineno or 0)
    ]
    if not scopes:
        return range(1, len(source.splitlines()) + 1)
    inner = max(scopes, key=lambda each: each.lineno)
    return range(inner.lineno, (inner.end_lineno or inner.lineno) + 1)


def beside(path: Path, what: str) -> Path:
    """Where a note of a map is written. Its name does not begin with the map's, as those of its parts do."""
    return path.with_name(f"{what}_of_{path.name}")


def recorded(path: Path, root: Path, included: Sequence[str], tests: Sequence[str], jobs: str) -> int:
    """Runs tests and writes the map; the exit code of what failed, or 0.

    Args:
        path: The map.
        root: The folder that they are run in.
        included: The files whose lines are recorded, from there.
        tests: What pytest is told to run.
        jobs: The number of processes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    rc = beside(path, "settings")
    lines = "\n".join(f"    {name}" for name in included)
    rc.write_text(RC.format(data=path, included=lines), encoding="utf-8")
    coverage = [sys.executable, "-m", "coverage"]
    run = ["-m", "pytest", "-p", "tests.mutation.contexts", "-n", jobs, "--dist", "worksteal", "-q", *tests]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    for words in (
        ["erase", f"--rcfile={rc}"],
        ["run", f"--rcfile={rc}", *run],
        ["combine", f"--rcfile={rc}", "--quiet"],
    ):
        code = subprocess.run([*coverage, *words], cwd=root, env=environment, check=False).returncode
        if code != 0:
            print(f"coverage {words[0]} ended with {code}: no map was made", file=sys.stderr)
            return code
    return 0


def main() -> int:
    """Runs the fast tests and keeps the map."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--jobs", default="2", help="processes")
    chosen = parser.parse_args()
    path = chosen.file.resolve()
    commit = clean_commit(path)
    included = [f"rehearsal_torch/{name}" for name in deciding(ROOT / "rehearsal_torch")]
    code = recorded(path, ROOT, included, ["tests"], chosen.jobs)
    if code == 0:
        beside(path, "commit").write_text(f"{commit}\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
