"""Time budgets: how long one call of a search may take.

Every search takes `budget_s` and asks one `Budget` between its steps whether the time is up. If so, it
returns the best action found so far, so that a call never lasts longer than the budget and one step. Each
search documents what its step is. The first step is always completed, so that there is an answer.

A search that answers for many cases at once shares its budget among them.

Source: ours; algorithms with a valid answer at any time are anytime algorithms (Dean and Boddy, 1988).
"""

import math
from time import perf_counter
from typing import Any


class Remaining(float):
    """The seconds that are left of a budget, for a search inside another; `whole` is what was asked for, and
    what a sentence names.
    """

    whole: float


class Budget:
    """The time budget of one call; the clock starts at construction.

    Args:
        limit_s: Seconds; None for no limit.

    Attributes:
        limit_s: As given.
        ran_out: Whether `out` has returned True, that is, whether the budget ended the search.
    """

    def __init__(self, limit_s: float | None = None) -> None:
        self.limit_s, self.ran_out, self._began = limit_s, False, perf_counter()

    def spent(self) -> float:
        """Seconds since construction."""
        return perf_counter() - self._began

    def left(self) -> float:
        """Remaining seconds, at least 0; infinite without a limit."""
        return math.inf if self.limit_s is None else max(0.0, self.limit_s - self.spent())

    def remaining(self) -> Remaining:
        """The same for a search inside this one."""
        seconds = Remaining(self.left())
        seconds.whole = math.inf if self.limit_s is None else self.limit_s
        return seconds

    def out(self) -> bool:
        """Whether the time is up; to be called only while work remains, since it sets `ran_out`."""
        self.ran_out = self.ran_out or self.left() == 0
        return self.ran_out

    def reason(self) -> str:
        """A sentence that says that the budget ended the search."""
        return f"stopped after budget_s={self._asked():g}"

    def _asked(self) -> float | None:
        """The seconds that were asked for, of the whole search."""
        return self.limit_s.whole if isinstance(self.limit_s, Remaining) else self.limit_s

    def facts(self, gap: float | None = None) -> dict[str, Any]:
        """Trace entries of a search that the budget ended; empty otherwise. Returns ``stopped``, a sentence,
        ``gap``, and the budget itself, ``limit_s``.

        Args:
            gap: Upper bound on how far the optimum lies above the answer; None if no bound is known.
        """
        return ended(self.reason(), gap) | {"limit_s": self._asked()} if self.ran_out else {}


def ended(reason: str, gap: float | None) -> dict[str, Any]:
    """Trace entries of a search that was ended early; see `Budget.facts`."""
    return {"stopped": reason if gap is not None else f"{reason}; no gap is known", "gap": gap}


UNLIMITED = Budget()


def checked_budget(budget_s: float | None) -> float | None:
    """Returns the limit if it is valid.

    Raises:
        ValueError: if it is neither None nor a positive number.
    """
    number = isinstance(budget_s, int | float) and not isinstance(budget_s, bool)
    if budget_s is not None and not (number and budget_s > 0):
        raise ValueError(
            f"expected a budget_s above 0, or None for no limit; got {budget_s}: it is the number of seconds "
            "after which a search returns the best action found so far"
        )
    return budget_s
