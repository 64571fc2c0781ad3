"""How long one call of a search may take.

Every search takes `budget_s` and asks one `Budget` between its steps whether the time is out. It then answers
with the best that it has found so far: never later than the budget and one step. What a step is, each search
says. The first step is always done, so that there is an answer.

A search that answers for many situations at once shares its budget between them.

Source: ours; answers that are valid whenever the time runs out are those of anytime algorithms (Dean and
Boddy, 1988).
"""

import math
from time import perf_counter
from typing import Any


class Budget:
    """The time of one call, from the moment that this is made.

    Args:
        limit_s: Seconds; None for no limit.

    Attributes:
        limit_s: As given.
        ran_out: Whether `out` has been true, which is to say that the search was ended.
    """

    def __init__(self, limit_s: float | None = None) -> None:
        self.limit_s, self.ran_out, self._began = limit_s, False, perf_counter()

    def spent(self) -> float:
        """Seconds since the beginning."""
        return perf_counter() - self._began

    def left(self) -> float:
        """Seconds that are left, at least 0; infinite without a limit."""
        return math.inf if self.limit_s is None else max(0.0, self.limit_s - self.spent())

    def out(self) -> bool:
        """Whether the time is out; to be asked only where something is left to do."""
        self.ran_out = self.ran_out or self.left() == 0
        return self.ran_out

    def reason(self) -> str:
        """A sentence on a search that was ended."""
        return f"stopped after budget_s={self.limit_s:g}"

    def facts(self, gap: float | None = None) -> dict[str, Any]:
        """What the trace of a search says if the budget ended it, nothing otherwise.

        Args:
            gap: How far, at most, the optimum lies above the answer; None where no bound is known.

        Returns:
            ``stopped``, a sentence, and ``gap``.
        """
        return ended(self.reason(), gap) if self.ran_out else {}


def ended(reason: str, gap: float | None) -> dict[str, Any]:
    """What the trace of a search says that was ended; see `Budget.facts`."""
    return {"stopped": reason if gap is not None else f"{reason}; no gap is known", "gap": gap}


UNLIMITED = Budget()


def checked_budget(budget_s: float | None) -> float | None:
    """A limit that can be kept.

    Raises:
        ValueError: if it is not a positive number.
    """
    number = isinstance(budget_s, int | float) and not isinstance(budget_s, bool)
    if budget_s is not None and not (number and budget_s > 0):
        raise ValueError(
            f"expected a budget_s above 0, or None for no limit; got {budget_s}: it is the number of seconds "
            "after which a search answers with the best that it has found"
        )
    return budget_s
