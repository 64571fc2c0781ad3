"""The mutation score of modules: the share of small faults in them that their own tests notice.

Each mutant of a module (`mutants`) is tested with the module's mirrored tests alone: those of
``rehearsal_torch/a/b.py`` are ``tests/a/test_b.py``. A module with more mutants than the budget is judged by
a sample. Another seed draws another sample: tests that were written for the survivors of one are judged by a
fresh one. A survivor is a fault that no test notices, or a change that makes no difference; the page lists
all of them.

Run: python -m tests.mutation MODULE [MODULE ...] [--most 60] [--seed 0] [--out FILE]
Writes FILE (docs/results/endurance/mutation.md), from a clean commit; exit code 1 below `LEAST`.
"""

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants
from tests.mutation.trial import LATE, SURVIVED, imported, outcome, preload

ROOT = Path(__file__).resolve().parents[2]
LEAST = 0.9


@dataclass(frozen=True)
class Judged:
    """A module and what came of its mutants."""

    module: str
    every: int
    tried: int
    survivors: tuple[Mutant, ...]
    late: int
    seconds: float

    @property
    def score(self) -> float:
        """The share of tried mutants that were noticed."""
        return 1 - len(self.survivors) / max(1, self.tried)


def judged(name: str, most: int, seed: int, work: Path) -> Judged:
    """Tries the mutants of a module.

    Args:
        name: Its path below the package, such as ``graphs/separation.py``.
        most: How many mutants are tried.
        seed: Draws them.
        work: A folder for logs.
    """
    path = ROOT / "rehearsal_torch" / name
    tests = ROOT / "tests" / Path(name).with_name(f"test_{Path(name).name}")
    module = ".".join(("rehearsal_torch", *Path(name).with_suffix("").parts))
    every = mutants(path.read_text(encoding="utf-8"))
    tried = sorted(random.Random(seed).sample(every, min(most, len(every))), key=every.index)
    names, _ = imported(tests, work / "log")
    preload(names)
    _, alone = imported(tests, work / "log")
    began, survivors, late = time.monotonic(), list[Mutant](), 0
    for mutant in tried:
        code = compile(mutant.tree, str(path), "exec")
        found = outcome(module, code, tests, work / "log", 20 + 10 * alone)
        late += found == LATE
        if found == SURVIVED:
            survivors.append(mutant)
            print(f"{name}:{mutant.line}: {mutant.before} -> {mutant.after}", flush=True)
    seconds = time.monotonic() - began
    made = Judged(name, len(every), len(tried), tuple(survivors), late, seconds)
    print(f"{name}: {made.score:.3f} of {made.tried} of {made.every}, {seconds:.0f} s", flush=True)
    return made


def page(found: list[Judged], commit: str, most: int, seed: int) -> str:
    """The page of some judged modules."""
    lines = [
        "# Mutation scores",
        "",
        "The share of small faults in a module (a comparison or a sign turned round, a number off by one, a "
        "missing return or raise, ...) that its own mirrored tests notice, the fast ones alone. A module "
        f"with more than {most} such mutants is judged by a sample of {most}, drawn with seed {seed}.",
        "",
        "| module | mutants | tried | noticed | of these by the clock | score |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| `{each.module}` | {each.every} | {each.tried} | {each.tried - len(each.survivors)} | "
            f"{each.late} | {each.score:.3f} |"
            for each in found
        ),
        "",
        "## Survivors",
        "",
        "Changes that no test notices: some make no difference to any result.",
        "",
        "| module | line | before | after |",
        "| --- | ---: | --- | --- |",
        *(
            f"| `{each.module}` | {one.line} | {_cell(one.before)} | {_cell(one.after)} |"
            for each in found
            for one in each.survivors
        ),
        "",
        f"Made by `make mutation MODULES='{' '.join(each.module for each in found)}' "
        f"ARGS='--most {most} --seed {seed}'`; "
        f"commit {commit[:12]}.",
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    short = text if len(text) <= 90 else f"{text[:87]}..."
    return f"`{short}`".replace("|", "\\|")


def main() -> int:
    """Judges the modules that are named, and writes the page."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("modules", nargs="+", help="paths below rehearsal_torch")
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="another seed draws another sample")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/endurance/mutation.md")
    parser.add_argument("--work", type=Path, default=ROOT / "runs/mutation")
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    commit = _clean_commit(chosen.out)
    repeated = [name for name, count in Counter(chosen.modules).items() if count > 1]
    if repeated:
        parser.error(f"named twice: {', '.join(repeated)}")
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    found = list[Judged]()
    for name in chosen.modules:
        found.append(judged(name, chosen.most, chosen.seed, chosen.work))
        # After each module, so that an interruption loses one.
        chosen.out.write_text(page(found, commit, chosen.most, chosen.seed), encoding="utf-8")
    return 0 if all(each.score >= LEAST for each in found) else 1


def _clean_commit(out: Path) -> str:
    """The commit, asked for in another process: this one may import nothing of the package."""
    import subprocess

    code = (
        "import sys; from pathlib import Path; from rehearsal_torch.cli.errors import UserError\n"
        "from rehearsal_torch.cli.job import commit\n"
        "from rehearsal_torch.studies.committed import check_clean\n"
        "try: check_clean(Path(sys.argv[1]))\n"
        "except UserError as error: sys.exit(str(error))\n"
        "print(commit())"
    )
    asked = subprocess.run(
        [sys.executable, "-c", code, str(out)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if asked.returncode != 0:
        sys.exit(asked.returncode)
    return asked.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
