"""The last fit, kept for as long as its table is unchanged.

Questions that are asked of the same table, such as which action to try next and which to recommend, share
one fit. A fit starts from the table alone, not from hyper-parameters of an earlier one, so that the answers
do not depend on what was asked before, and a process that starts anew gives the same.
"""

import copy
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.fit import fit

Fitted = TypeVar("Fitted", bound=Surrogate)


class KeptFit(Generic[Fitted]):
    """Fits surrogates, and keeps the last one.

    Args:
        trainer: Trains the parts that have no solver; see `training.fit`.

    Attributes:
        fits: How many surrogates were fitted so far.
    """

    def __init__(self, trainer: Descent | None = None) -> None:
        self.trainer, self.fits = trainer, 0
        self._kept: tuple[Callable[..., Fitted], Any, Table, Fitted] | None = None

    def __call__(self, make: Callable[..., Fitted], task: Any, table: Table) -> Fitted:
        """A surrogate fitted to a table: a copy of the kept one if factory, task and table are those of the
        last call, otherwise a new one.

        Args:
            make: Returns an unfitted surrogate for a task; another factory makes another fit, a factory that
                was changed in place does not.
            table: The observations.

        Raises:
            ValueError: as `training.fit`.
        """
        kept = self._kept
        if kept is None or kept[0] is not make or kept[1] is not task or not _equal(kept[2], table):
            self._kept, self.fits = None, self.fits + 1
            kept = self._kept = (make, task, table, fit(make(task), table, self.trainer))
        return copy.deepcopy(kept[3])


def _equal(one: Table, other: Table) -> bool:
    """Whether two tables have the same cells, to the last bit."""
    return one.names == other.names and one.values.equal(other.values) and one.altered.equal(other.altered)
