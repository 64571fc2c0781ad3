"""Fitting of a surrogate to a table, part by part.

The surrogate defines the order of its parts: a part with its own solver (`Solved`) is solved, any other is
trained by gradient descent on its loss. The examples of a part may depend on the parts fitted before it; so
do the held-out examples, so that nothing is fitted to held-out rows.
"""

from collections.abc import Iterator
from typing import TypeVar

from rehearsal_torch.data.finite import in_numbers
from rehearsal_torch.data.part import Examples, Solved, Trained
from rehearsal_torch.data.table import Table
from rehearsal_torch.data.tables.blocks import Blocks
from rehearsal_torch.progress import Progress
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.descent import Descent

Fitted = TypeVar("Fitted", bound=Surrogate)


def fit(
    surrogate: Fitted,
    table: Table | Blocks[Table],
    trainer: Descent | None = None,
    held_out: Table | Blocks[Table] | None = None,
    *,
    quiet: bool = True,
) -> Fitted:
    """Fits every part of a surrogate, in place.

    Args:
        surrogate: The surrogate.
        table: The observations, in the variables' units; in blocks if they need not fit in memory, for models
            of transitions (`data.tables.blocks`).
        trainer: Trains the parts without a solver; not needed if every part is solved.
        held_out: Rows for early stopping and held-out losses; None trains for all epochs, as do parts for
            which `uses_held_out` is false.
        quiet: Whether the parts with a solver show no progress; trained parts follow `Descent.progress`.

    Returns:
        The same surrogate, in evaluation mode.

    Raises:
        ValueError: if a table is empty, a part has to be trained and there is no trainer, or the arithmetic
            yields non-finite numbers.
    """
    for what, rows in (("table", table), ("held_out", held_out)):
        if rows is not None and not len(rows):
            raise ValueError(
                f"expected rows in `{what}`; got none: loosen the data set's filters, or leave `held_out` out"
            )
    names = {id(module): name for name, module in surrogate.named_modules()}
    # The held-out examples of a part are created after the parts before it have been fitted to `table`, and
    # only for parts that use them: held-out rows need not be rows that one could fit to.
    checks = None if held_out is None else enumerate(_parts(surrogate, held_out))
    with in_numbers("these rows"):
        steps = _parts(surrogate, table)
        # Training needs examples and not the table: it is gone by then, unless the caller keeps it.
        del table
        for place, (part, examples) in enumerate(steps):
            name = names.get(id(part), type(part).__name__)
            if isinstance(part, Solved):
                with Progress(f"fitting the model, part {place + 1}", quiet=quiet):
                    _solve(part, examples)
                _make_contiguous(part)
            elif trainer is None:
                raise ValueError(
                    f"part {name!r} ({type(part).__name__}) is trained by gradients: pass a trainer, such as "
                    "trainer=Descent(max_epochs=100)"
                )
            else:
                check = None
                if checks is not None and part.uses_held_out:
                    check = next(each[1] for other, each in checks if other == place)
                trainer.train(part, examples, check, name)
    return surrogate.eval()


def _parts(
    surrogate: Surrogate, rows: Table | Blocks[Table]
) -> Iterator[tuple[Solved | Trained, Examples | Blocks[Examples]]]:
    return surrogate.parts_of_blocks(rows) if isinstance(rows, Blocks) else surrogate.parts(rows)


def _solve(part: Solved, examples: Examples | Blocks[Examples]) -> None:
    if isinstance(examples, Blocks):
        part.solve_blocks(examples)
    else:
        part.solve(*examples)


def _make_contiguous(part: Solved) -> None:
    """Makes buffers contiguous, as they are after loading: the last bits of sums depend on the memory layout,
    and a loaded part must give the results of the saved one.
    """
    for module in part.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if not buffer.is_contiguous():
                setattr(module, name, buffer.contiguous())
