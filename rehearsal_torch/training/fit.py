"""Fitting of a surrogate to a table, part by part, and the parts of a table that are held out in turn.

The surrogate defines the order of its parts: a part with its own solver (`Solved`) is solved, any other is
trained by gradient descent on its loss. The examples of a part may depend on the parts fitted before it; so
do the held-out examples, so that nothing is fitted to held-out rows.

A model of transitions is checked afterwards: how much of what it takes for noise can be predicted on held-out
rows (`surrogates.noise_check`). What an earlier fit left of it is forgotten first. A model that was moved to
a GPU is fitted on the CPU (a trainer may train a part elsewhere), and moved back.

Questions that are asked of the same table, such as which action to try next and which to recommend, share one
fit (`KeptFit`). A fit starts from the table alone, not from hyper-parameters of an earlier one, so that the
answers do not depend on what was asked before, and a process that starts anew gives the same.

Folds are the rows in parts, each held out once from the fit by which it is judged. Rows of one unit (a
patient, a store) are correlated. With folds of single rows, rows of a unit fall on both sides, and what is
held out looks more predictable than a new unit is. Folds by unit hold out whole units.

Source: Tsirtsis and Gomez-Rodriguez (2023), App. G.2 (five folds; their code draws them by row).
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from rehearsal_torch.data.finite import in_numbers
from rehearsal_torch.data.table import Table
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.noise_check import sample
from rehearsal_torch.surrogates.surrogate import SeparateMembers, Surrogate
from rehearsal_torch.training.descent import Descent
from rehearsal_torch.training.shared_members import fit_members, fit_parts, separable


@dataclass(frozen=True)
class Fold:
    """A split of the rows, numbered from 0: training rows (n - m,) and held-out rows (m,), both long and in
    ascending order.
    """

    index: int
    train: Tensor
    held_out: Tensor


def folds_of(rows: int, units: Sequence[str] | None, count: int = 5, seed: int = 0) -> list[Fold]:
    """Folds of n rows by their units; None if every row is a unit of its own. Units, not rows, are
    distributed evenly, in an order that depends on the seed and the set of units but not on the order of the
    rows. ValueError if there are fewer than two folds, or fewer rows or units than folds.
    """
    every = None if units is None else sorted(set(units))
    items, what = (rows, "rows") if every is None else (len(every), "units")
    if count < 2 or items < count:
        raise ValueError(
            f"expected at least 2 folds and as many {what}; got {count} folds and {items} {what}: use fewer "
            "folds or more data"
        )
    dealt = torch.empty(items, dtype=torch.long)
    dealt[torch.randperm(items, generator=generator(seed))] = torch.arange(items) % count
    if every is not None and units is not None:
        fold = dict(zip(every, dealt.tolist(), strict=True))
        dealt = torch.tensor([fold[unit] for unit in units], dtype=torch.long)
    return [
        Fold(index, (dealt != index).nonzero()[:, 0], (dealt == index).nonzero()[:, 0])
        for index in range(count)
    ]


Fitted = TypeVar("Fitted", bound=Surrogate)


def fit(
    surrogate: Fitted,
    table: Table,
    trainer: Descent | None = None,
    held_out: Table | None = None,
    *,
    quiet: bool = True,
    workers: int = 1,
) -> Fitted:
    """Fits every part of a surrogate, in place.

    Args:
        table: The observations, in the variables' units.
        trainer: Trains the parts without a solver; not needed if every part is solved.
        held_out: Rows for early stopping and held-out losses; None trains for all epochs, as do parts for
            which `uses_held_out` is false.
        quiet: Whether the parts with a solver show no progress; trained parts follow `Descent.progress`.
        workers: Processes that share the fits of members (the models of an ensemble or of imputed tables, the
            estimators of candidate sets), each with one thread; within
            ``joblib.parallel_config(backend="dask")`` and above 1, the workers of that cluster. What is not
            worth a process, or has no members, is fitted in this one (`training.shared_members`).

    Returns:
        The same surrogate, in evaluation mode, on the device where it was.

    Raises:
        ValueError: if a table is empty, a part has to be trained and there is no trainer, `workers` is below
            1, or the arithmetic yields non-finite numbers.
        ClusterError: if joblib's context names a cluster that cannot share the fits.
    """
    if workers < 1:
        raise ValueError(f"expected at least 1 worker; got {workers}")
    for what, rows in (("table", table), ("held_out", held_out)):
        if rows is not None and not len(rows):
            raise ValueError(
                f"expected rows in `{what}`; got none: loosen the data set's filters, or leave `held_out` out"
            )
    table, held_out = table.to("cpu"), None if held_out is None else held_out.to("cpu")
    some, others = sample(table), None if held_out is None else sample(held_out)
    with in_numbers("these rows"), _brought(surrogate):
        surrogate.check_noise(None, None)
        if (
            workers > 1
            and isinstance(surrogate, SeparateMembers)
            and type(surrogate).parts is SeparateMembers.parts
            and len(surrogate.separate()) > 1
            and separable(surrogate, len(table), trainer)
        ):
            fit_members(surrogate, table, trainer, held_out, workers, quiet)
        else:
            names = {id(module): name for name, module in surrogate.named_modules()}
            # The held-out examples of a part are created after the parts before it have been fitted to
            # `table`, and only for parts that use them: held-out rows need not be rows that one could fit to.
            checks = None if held_out is None else surrogate.parts(held_out)
            steps = surrogate.parts(table)
            # Training needs examples and not the table: it is gone by then, unless the caller keeps it.
            del table
            fit_parts(steps, checks, names, trainer, quiet)
        surrogate.eval().check_noise(some, others)
    return surrogate


@contextmanager
def _brought(surrogate: Surrogate) -> Iterator[None]:
    """On the CPU meanwhile."""
    home = surrogate.device
    surrogate.to("cpu")
    try:
        yield
    finally:
        surrogate.to(home)


class KeptFit(Generic[Fitted]):
    """Fits surrogates, counts them, and keeps the last one."""

    def __init__(self, trainer: Descent | None = None) -> None:
        self.trainer, self.fits = trainer, 0
        self._kept: tuple[Callable[..., Fitted], Any, Table, Fitted] | None = None

    def __call__(self, make: Callable[..., Fitted], task: Any, table: Table) -> Fitted:
        """The surrogate that a factory makes for a task, fitted to a table (errors as of `fit`): a copy of
        the kept one if factory, task and table are those of the last call, otherwise a new one. A factory
        that was changed in place makes no other fit.
        """
        kept = self._kept
        if kept is None or kept[0] is not make or kept[1] is not task or not _equal(kept[2], table):
            self._kept, self.fits = None, self.fits + 1
            kept = self._kept = (make, task, table, fit(make(task), table, self.trainer))
        return copy.deepcopy(kept[3])


def _equal(first: Table, second: Table) -> bool:
    """Whether two tables have the same cells, to the last bit."""
    cells = first.values.equal(second.values) and first.altered.equal(second.altered)
    return first.names == second.names and cells
