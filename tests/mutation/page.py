"""What came of the mutants of some modules, and the page of it."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.mutation.mutants import Mutant

# Half the width of the central interval of a normal distribution that holds 95 % of it.
QUANTILE = 1.959964


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


def page(found: Sequence[Judged], modules: Sequence[str], commit: str, most: int, seed: int) -> str:
    """The page of some judged modules.

    Args:
        found: The judged modules.
        modules: All modules of the package.
        commit: Of the package.
        most: The number of mutants to which a module is sampled.
        seed: Drew the samples.
    """
    names = [each.module for each in found]
    lines = [
        "# Mutation scores",
        "",
        "The share of small faults in a module (a comparison or a sign turned round, a number off by one, a "
        "missing return or raise, ...) that its own mirrored tests notice, the fast ones alone. A module "
        f"with more than {most} such mutants is judged by a sample of {most}, drawn with seed {seed}.",
        "",
        f"Together: {Pooled.of(found)}. A module counts by how many of its mutants were tried, not by "
        "how many it has.",
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
        "## What is not judged",
        "",
        f"{len(modules) - len(names)} of {len(modules)} modules. Nor are faults of other kinds, such as a "
        "changed fraction, a call that is left out or arguments that change places, nor what the slow tests, "
        "or the tests of other modules, notice besides.",
        "",
        "| part | modules | judged |",
        "| --- | ---: | ---: |",
        *(
            f"| {part} | {count} | {Counter(map(_part, names))[part]} |"
            for part, count in sorted(Counter(map(_part, modules)).items())
        ),
        "",
        f"Made by `make mutation MODULES='{' '.join(names)}' ARGS='--most {most} --seed {seed}'`; "
        f"commit {commit[:12]}.",
    ]
    return "\n".join(lines) + "\n"


def _part(module: str) -> str:
    """The folder of the package that a module lies in."""
    first, *rest = module.split("/")
    return f"`{first}/`" if rest else "in no folder"


def _cell(text: str) -> str:
    short = text if len(text) <= 90 else f"{text[:87]}..."
    return f"`{short}`".replace("|", "\\|")
