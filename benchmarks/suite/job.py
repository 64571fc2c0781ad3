"""A row of the suite before it is measured: what it is called, of which size, and how it is made.

Rows of one group differ in a size alone, such as the number of cases; their times give the exponent by which
the work grows, or the factor. What both sides need (a fitted model, a graph) is made before anything is
measured.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from benchmarks.suite.measuring import Contest


@dataclass(frozen=True)
class Job:
    """A row.

    Attributes:
        group: What is timed, such as "care, plug-in".
        peer: What it is compared with.
        axis: The size in which the rows of the group differ.
        size: Its value.
        make: Prepares both sides.
        note: What one side does more than the other; empty if they do the same.
        theory: The exponent of the leading term in the size; None where there is none.
        exponential: Whether the work grows by a factor with each unit of the size.
        needs: A module that the row needs and that may not be installed; empty if there is none.
    """

    group: str
    peer: str
    axis: str
    size: int
    make: Callable[[], Contest]
    note: str = ""
    theory: float | None = None
    exponential: bool = False
    needs: str = ""

    @property
    def key(self) -> str:
        """Identifies the row."""
        return f"{self.group} | {self.axis} {self.size}"

    @property
    def missing(self) -> bool:
        """Whether what it needs is not installed, so that it is left out."""
        return bool(self.needs) and find_spec(self.needs) is None
