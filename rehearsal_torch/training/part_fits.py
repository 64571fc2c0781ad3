"""Fits of parts one after the other: a part with its own solver is solved, any other is trained.

    for each part with its examples:    solve(*examples), or the trainer's descent on loss(*examples)

The examples of a part may depend on the parts before it, so that both come from an iterator, in step with
that of the held-out examples.
"""

from collections.abc import Iterator, Mapping

from rehearsal_torch.data.part import Examples, Solved, Trained
from rehearsal_torch.progress import Progress
from rehearsal_torch.training.descent import Descent

Steps = Iterator[tuple[Solved | Trained, Examples]]


def fit_parts(
    steps: Steps, held_out: Steps | None, names: Mapping[int, str], trainer: Descent | None, quiet: bool
) -> None:
    """Fits parts in place.

    Args:
        steps: The parts with their examples, in order.
        held_out: The same parts with their held-out examples, made only for parts that use them; None for
            none.
        names: The name of each part among the modules of its surrogate, by the part's id.
        trainer: Trains the parts without a solver.
        quiet: Whether the parts with a solver show no progress.

    Raises:
        ValueError: if a part has to be trained and there is no trainer.
    """
    checks = None if held_out is None else enumerate(held_out)
    for place, (part, examples) in enumerate(steps):
        name = names.get(id(part), type(part).__name__)
        if isinstance(part, Solved):
            with Progress(f"fitting the model, part {place + 1}", quiet=quiet):
                part.solve(*examples)
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


def _make_contiguous(part: Solved) -> None:
    """Makes buffers contiguous, as they are after loading: the last bits of sums depend on the memory layout,
    and a loaded part must give the results of the saved one.
    """
    for module in part.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if not buffer.is_contiguous():
                setattr(module, name, buffer.contiguous())
