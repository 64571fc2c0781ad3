"""Fitting a surrogate to a table.

A surrogate is fitted part by part, in its own order: what has a solution of its own is solved, the rest
descends a loss. A later part's examples may use what an earlier part has just learnt; the held-out examples
do as well, so that nothing is learnt from held-out rows.
"""

from itertools import repeat
from typing import TypeVar

from rehearsal_torch.data.finite import in_numbers
from rehearsal_torch.data.part import Solved
from rehearsal_torch.data.table import Table
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.descent import Descent

Fitted = TypeVar("Fitted", bound=Surrogate)


def fit(
    surrogate: Fitted, table: Table, trainer: Descent | None = None, held_out: Table | None = None
) -> Fitted:
    """Fits every part of a surrogate, in place.

    Args:
        surrogate: What is fitted.
        table: What it is fitted to, in the variables' units.
        trainer: How the parts without a solution of their own are trained; not needed where every part is
            solved.
        held_out: Rows for early stopping and held-out losses; None trains for all epochs, as do parts that
            held-out rows cannot judge.

    Returns:
        The same surrogate, in evaluation mode.

    Raises:
        ValueError: if a table is empty, a part has to be trained and there is no trainer, or arithmetic ends
            in no number.
    """
    for what, rows in (("table", table), ("held_out", held_out)):
        if rows is not None and not len(rows):
            raise ValueError(
                f"expected rows in `{what}`; got none: loosen the data set's filters, or leave `held_out` out"
            )
    names = {id(module): name for name, module in surrogate.named_modules()}
    # Both iterators advance together: a held-out part's examples are made after the parts before it are
    # fitted to `table`.
    checks = repeat(None) if held_out is None else surrogate.parts(held_out)
    with in_numbers("these rows"):
        for (part, examples), check in zip(surrogate.parts(table), checks, strict=False):
            name = names.get(id(part), type(part).__name__)
            if isinstance(part, Solved):
                part.solve(*examples)
                _laid_out(part)
            elif trainer is None:
                raise ValueError(
                    f"part {name!r} ({type(part).__name__}) is trained by gradients: pass a trainer, such as "
                    "trainer=Descent(max_epochs=100)"
                )
            else:
                trainer.train(
                    part, examples, None if check is None or not part.judged_by_held_out else check[1], name
                )
    return surrogate.eval()


def _laid_out(part: Solved) -> None:
    """Buffers laid out in memory as loading lays them out: the last bits of sums depend on it, and what is
    loaded shall say what was saved.
    """
    for module in part.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if not buffer.is_contiguous():
                setattr(module, name, buffer.contiguous())
