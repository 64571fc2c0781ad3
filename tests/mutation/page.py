"""What came of the mutants of some modules, and the page of it.

A page is written from a file of the same name with the suffix ``.json``, in which a module that is judged
again replaces what was known of it. The others stay, each with the commit and the seed that it was judged by.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

# Half the width of the central interval of a normal distribution that holds 95 % of it.
QUANTILE = 1.959964


class Survivor(NamedTuple):
    """A fault that no test noticed: the line of the changed piece, the piece, and what it became."""

    line: int
    before: str
    after: str


@dataclass(frozen=True)
class Judged:
    """A module and what came of its mutants.

    Attributes:
        module: Its path below the package.
        every: How many mutants it has.
        tried: How many of them were tried.
        survivors: Those that were not noticed.
        late: How many were noticed by the clock alone.
        most: The number to which the mutants were sampled.
        seed: Drew the sample.
        commit: Of the package and its tests.
        slow: How many were noticed by the slow tests alone.
        others: How many were noticed by fast tests of other modules alone; None if those were not tried.
    """

    module: str
    every: int
    tried: int
    survivors: tuple[Survivor, ...]
    late: int
    most: int
    seed: int
    commit: str
    slow: int = 0
    others: int | None = None

    @property
    def score(self) -> float:
        """The share of tried mutants that were noticed."""
        return 1 - len(self.survivors) / max(1, self.tried)


@dataclass(frozen=True)
class Pooled:
    """The tried mutants of several modules together.

    Attributes:
        noticed: How many were noticed.
        tried: How many were tried.
        lower: The lower end of the 95 % interval of the share (Wilson).
        upper: The upper end.
    """

    noticed: int
    tried: int
    lower: float
    upper: float

    @classmethod
    def of(cls, found: Sequence[Judged]) -> "Pooled":
        """Those of judged modules.

        Source: Wilson (1927), J. Am. Stat. Assoc. 22, 209-212, for the interval.
        """
        tried = sum(each.tried for each in found)
        noticed = tried - sum(len(each.survivors) for each in found)
        if not tried:
            return cls(0, 0, 0.0, 1.0)
        share, square = noticed / tried, QUANTILE**2 / tried
        centre = (share + square / 2) / (1 + square)
        half = QUANTILE * math.sqrt(share * (1 - share) / tried + square / (4 * tried)) / (1 + square)
        return cls(noticed, tried, max(0.0, centre - half), min(1.0, centre + half))

    @property
    def score(self) -> float:
        """The share of tried mutants that were noticed; 1 if none was tried."""
        return self.noticed / self.tried if self.tried else 1.0

    def __str__(self) -> str:
        return (
            f"{self.noticed:,} of {self.tried:,} mutants noticed, {self.score:.3f}, 95 % interval "
            f"[{self.lower:.3f}, {self.upper:.3f}] (Wilson)"
        )


def known(path: Path, modules: Sequence[str]) -> list[Judged]:
    """What a page's file holds of the modules that there are still.

    Args:
        path: The page.
        modules: All modules of the package.
    """
    store = path.with_suffix(".json")
    rows = json.loads(store.read_text(encoding="utf-8")) if store.exists() else []
    kept = [row for row in rows if row["module"] in modules]
    return [
        Judged(**{**row, "survivors": tuple(Survivor(*each) for each in row["survivors"])}) for row in kept
    ]


def keep(path: Path, found: Sequence[Judged], modules: Sequence[str]) -> None:
    """Writes a page and its file, with judged modules in place of what was known of them.

    Args:
        path: The page.
        found: The judged modules.
        modules: All modules of the package.
    """
    rows = {each.module: each for each in (*known(path, modules), *found)}
    every = [rows[name] for name in sorted(rows)]
    text = json.dumps([asdict(each) for each in every], indent=1)
    path.with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")
    path.write_text(page(every, modules), encoding="utf-8")


def page(found: Sequence[Judged], modules: Sequence[str]) -> str:
    """The page of some judged modules.

    Args:
        found: The judged modules.
        modules: All modules of the package.
    """
    parts = Counter(_part(each.module) for each in found)
    lines = [
        "# Mutation scores",
        "",
        "The share of small faults in a module (a comparison or a sign turned round, a number off by one, a "
        "missing return or raise, ...) that its own tests notice, the fast ones or the slow ones, "
        "which every change passes as well, or fast tests of other modules that run the changed line (up to "
        "sixty, where a number stands in their column). A module with more mutants than were tried is judged "
        "by a sample, which the seed draws.",
        "",
        f"Together: {Pooled.of(found)}. A module counts by how many of its mutants were tried, not by "
        "how many it has.",
        "",
        f"By a module's own tests alone {sum(each.others or 0 for each in found)} fewer are noticed, and by "
        f"their fast ones alone another {sum(each.slow for each in found)}.",
        "",
        "| module | mutants | tried | noticed | by slow tests alone | by other modules' tests alone "
        "| by the clock | score | seed | commit |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        *(
            f"| `{each.module}` | {each.every} | {each.tried} | {each.tried - len(each.survivors)} | "
            f"{each.slow} | {'' if each.others is None else each.others} | {each.late} | {each.score:.3f} | "
            f"{each.seed} | {each.commit[:8]} |"
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
        "## What is not judged",
        "",
        f"{len(modules) - len(found)} of {len(modules)} modules. Nor are faults of other kinds, such as a "
        "changed fraction, a call that is left out or arguments that change places, nor what the nightly "
        "tests, or the slow ones of other modules, notice besides.",
        "",
        "| part | modules | judged |",
        "| --- | ---: | ---: |",
        *(
            f"| {part} | {count} | {parts[part]} |"
            for part, count in sorted(Counter(map(_part, modules)).items())
        ),
        "",
        "\n\n".join(_commands(found)),
    ]
    return "\n".join(lines) + "\n"


def _commands(found: Sequence[Judged]) -> list[str]:
    """The commands that judge the modules again, those of one commit and seed together."""
    groups: dict[tuple[str, int, int, str], list[str]] = {}
    for each in found:
        others = "" if each.others is None else " --others runs/mutation/map"
        groups.setdefault((each.commit, each.most, each.seed, others), []).append(each.module)
    return [
        f"Made by `make mutation MODULES='{' '.join(names)}' ARGS='--most {most} --seed {seed}{others}'`; "
        f"commit {commit[:12]}."
        for (commit, most, seed, others), names in groups.items()
    ]


def _part(module: str) -> str:
    """The folder of the package that a module lies in."""
    first, *rest = module.split("/")
    return f"`{first}/`" if rest else "in no folder"


def _cell(text: str) -> str:
    short = text if len(text) <= 90 else f"{text[:87]}..."
    return f"`{short}`".replace("|", "\\|")
