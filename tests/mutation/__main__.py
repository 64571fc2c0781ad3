"""The mutation score of modules: the share of small faults in them that their own tests notice.

Each mutant of a module (`mutants`) is tested with the module's own tests alone: those of
``rehearsal_torch/a/b.py`` are ``tests/a/test_b.py``, and files of the same folder that are named after one of
its topics (`own_tests`). The fast ones are run first, and then the slow ones, since every change passes both
lanes. With ``--others MAP``, which says which fast tests run which lines (`tests.mutation.reach`), what these
do not notice is tried on at most `OTHERS` fast tests of other modules that run the changed line.

A module with more mutants than the budget is judged by a sample. Another seed draws another sample: tests
that were written for the survivors of one are judged by a fresh one. A survivor is a fault that no test
notices, or a change that makes no difference; the page lists all of them.

Run: python -m tests.mutation MODULE [MODULE ...] [--most 60] [--seed 0] [--least 0.9] [--others MAP]
                              [--out FILE]
Writes FILE (docs/results/endurance/mutation.md), in which the other modules stay, from a clean commit; exit
code 1 if a module scores less than `--least`.

     python -m tests.mutation --rotate 6 [--most 20] [--day DAY] [--least 0.8] [--out FILE]
judges six of the modules that decide and check (`deciding`), other ones every day, with a seed of the day,
and writes runs/mutation/page.md; exit code 1 if all six together score less than `--least`. A single module
may score low by chance: of twenty mutants of one that scores .9, five or more survive in 4 % of the samples.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.mutation.commit import clean_commit
from tests.mutation.deciding import deciding, modules_of, own_tests, rotated
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.page import Judged, Pooled, Survivor, keep
from tests.mutation.reach import Reach, spread
from tests.mutation.trial import FAST, LATE, SLOW, SURVIVED, imported, outcome, preload

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "rehearsal_torch"
PAGE = ROOT / "docs/results/endurance/mutation.md"
LEAST = 0.9
# How many tests of other modules a mutant is tried on: they are from as many files as possible.
OTHERS = 60


def judged(
    name: str, most: int, seed: int, work: Path, commit: str = "", reach: Reach | None = None
) -> Judged:
    """Tries the mutants of a module.

    Args:
        name: Its path below the package, such as ``graphs/separation.py``.
        most: How many mutants are tried.
        seed: Draws them.
        work: A folder for logs.
        commit: Of the package and its tests.
        reach: Which tests of other modules are tried as well; None tries none.
    """
    path = PACKAGE / name
    tests = own_tests(PACKAGE, ROOT / "tests", name)
    module = ".".join(("rehearsal_torch", *Path(name).with_suffix("").parts))
    every = mutants(path.read_text(encoding="utf-8"))
    tried = sorted(random.Random(seed).sample(every, min(most, len(every))), key=every.index)
    names, _ = imported(tests, work / "log")
    preload(names)
    began, left, late, slow = time.monotonic(), tried, 0, 0
    for lane in (FAST, SLOW):
        alone = imported(tests, work / "log", lane)[1] if left else None
        if alone is None:
            continue
        survived = []
        for mutant in left:
            code = compile(mutant.tree, str(path), "exec")
            found = outcome(module, code, tests, work / "log", 20 + 10 * alone, lane)
            late += found == LATE
            slow += found != SURVIVED and lane == SLOW
            if found == SURVIVED:
                survived.append(mutant)
        left = survived
    missed = len(left)
    if reach is not None and left:
        left, more = _by_others(left, path, module, tests, reach, work / "log")
        late += more
    survivors = tuple(Survivor(mutant.line, mutant.before, mutant.after) for mutant in left)
    for one in survivors:
        print(f"{name}:{one.line}: {one.before} -> {one.after}", flush=True)
    seconds = time.monotonic() - began
    others = None if reach is None else missed - len(left)
    made = Judged(name, len(every), len(tried), survivors, late, most, seed, commit, slow, others)
    print(f"{name}: {made.score:.3f} of {made.tried} of {made.every}, {seconds:.0f} s", flush=True)
    return made


def _by_others(
    left: Sequence[Mutant], path: Path, module: str, own: Sequence[Path], reach: Reach, log: Path
) -> tuple[list[Mutant], int]:
    """The mutants that fast tests of other modules do not notice either, and how many the clock noticed."""
    survived, late = [], 0
    for mutant in left:
        tests, alone = passing(spread(reach.tests_of(path, mutant.line), own, OTHERS), log)
        code = compile(mutant.tree, str(path), "exec")
        found = outcome(module, code, tests, log, 20 + 10 * alone) if tests else SURVIVED
        late += found == LATE
        if found == SURVIVED:
            survived.append(mutant)
    return survived, late


def passing(tests: Sequence[str], log: Path) -> tuple[list[str], float]:
    """Those of some tests that pass on the module as it is, and the seconds that they take: what fails where
    it is run like this tells nothing of a fault.
    """
    if not tests:
        return [], 0.0
    try:
        return list(tests), imported(tests, log)[1] or 0.0
    except RuntimeError:
        if len(tests) == 1:
            return [], 0.0
    half = len(tests) // 2
    (one, first), (other, second) = (passing(each, log) for each in (tests[:half], tests[half:]))
    return one + other, first + second


def enough(found: Sequence[Judged], least: float, together: bool) -> bool:
    """Whether the score of each module, or of all of them together, is at least a number."""
    return Pooled.of(found).score >= least if together else all(each.score >= least for each in found)


def main() -> int:
    """Judges the modules that are named, or those of the day, and writes the page."""
    chosen = _chosen()
    chosen.work.mkdir(parents=True, exist_ok=True)
    commit = clean_commit(chosen.out)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    reach = None if chosen.others is None else _reach(chosen.others, commit)
    print(f"{' '.join(chosen.modules)} --most {chosen.most} --seed {chosen.seed}", flush=True)
    found, every = list[Judged](), modules_of(PACKAGE)
    for name in chosen.modules:
        found.append(judged(name, chosen.most, chosen.seed, chosen.work, commit, reach))
        # After each module, so that an interruption loses one.
        keep(chosen.out, found, every)
    print(f"together: {Pooled.of(found)}")
    return 0 if enough(found, chosen.least, chosen.rotate is not None) else 1


def _chosen(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command line, completed."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("modules", nargs="*", help="paths below rehearsal_torch")
    parser.add_argument("--most", type=int, default=60, help="mutants tried of a module")
    parser.add_argument("--seed", type=int, help="another seed draws another sample; 0, or the day's number")
    parser.add_argument("--least", type=float, default=LEAST, help="the score below which the exit code is 1")
    parser.add_argument("--rotate", type=int, metavar="N", help="N modules of the day, judged together")
    parser.add_argument("--day", type=int, help="the day's number, instead of today's (UTC)")
    parser.add_argument("--others", type=Path, metavar="FILE", help="a map of tests of other modules")
    parser.add_argument("--out", type=Path, help="the page")
    parser.add_argument("--work", type=Path, default=ROOT / "runs/mutation")
    chosen = parser.parse_args(words)
    if bool(chosen.modules) == (chosen.rotate is not None):
        parser.error("expected modules, or --rotate N")
    if chosen.rotate is not None:
        day = datetime.now(UTC).toordinal() if chosen.day is None else chosen.day
        chosen.modules = rotated(deciding(PACKAGE), chosen.rotate, day)
        chosen.seed = day if chosen.seed is None else chosen.seed
    repeated = [name for name, count in Counter(chosen.modules).items() if count > 1]
    if repeated:
        parser.error(f"named twice: {', '.join(repeated)}")
    unknown = sorted({*chosen.modules} - {*modules_of(PACKAGE)})
    if unknown:
        parser.error(f"no such module: {', '.join(unknown)}")
    chosen.seed = 0 if chosen.seed is None else chosen.seed
    if chosen.out is None:
        chosen.out = PAGE if chosen.rotate is None else chosen.work / "page.md"
    return chosen


def _reach(path: Path, commit: str) -> Reach:
    try:
        return Reach(path.resolve(), commit)
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    sys.exit(main())
