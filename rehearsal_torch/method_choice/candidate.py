"""What takes part in the comparison of methods, and how much of it there is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rehearsal_torch.data.rehearsal_task import MIN_ROWS
from rehearsal_torch.data.table import Table
from rehearsal_torch.search.search import Search
from rehearsal_torch.surrogates.surrogate import Surrogate


@dataclass(frozen=True)
class Candidate:
    """A method that takes part.

    Attributes:
        name: Its name.
        fitted: Returns a new model, fitted to some rows.
        objective: Builds the objective of its decisions.
        search: Finds the actions.
        within: The method whose models contain its own, and the name of the attribute that holds it, so that
            nothing is fitted twice; None if there is none.
    """

    name: str
    fitted: Callable[[Table], Surrogate]
    objective: Callable[..., Any]
    search: Search[Any]
    within: tuple[str, str] | None = None


@dataclass(frozen=True)
class Limits:
    """How much is compared, so that the time is bounded.

    Attributes:
        rows: The largest number of rows; of more, some are drawn, whole units together.
        cases: The largest number of cases in each half.
        repeats: R, how often the rows are split in two.

    Raises:
        ValueError: if a number is too small.
    """

    rows: int = 1000
    cases: int = 40
    repeats: int = 3

    def __post_init__(self) -> None:
        for name, least in (("rows", 2 * MIN_ROWS), ("cases", 1), ("repeats", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"choose.{name}: expected a whole number of at least {least}; got {value}")
