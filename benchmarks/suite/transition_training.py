"""Rows: training the transition model, beside a plain PyTorch loop.

The published sizes (9 varying, 4 other features, 2 doses, 200 hidden units, batches of 256) on simulated
transitions. The package trains through `fit` and Lightning; the reference is the same model and optimiser in
a loop over DataLoader(TensorDataset). Time is that of an epoch after the first; quality is the mean negative
log-likelihood of the rows after all epochs.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.suite.job import Job
from benchmarks.suite.measuring import Contest, Quality, Timed
from benchmarks.training import BATCH, Stopwatch, loop, model, table
from rehearsal_torch.data.trainable_part import Solved
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.training.gradient_descent import Descent
from rehearsal_torch.training.surrogate_fit import fit

ROWS, EPOCHS = 20_480, 3
# Three times the standard deviation of the difference of two orders: that of six orders is .013.
TOLERANCE = 0.06
SHUFFLED = "the same model learns from the same start, with batches in another order"


def jobs(small: bool = False) -> Iterator[Job]:
    """The rows; small ones for a test."""
    rows = 512 if small else ROWS
    yield Job("training epoch", "PyTorch DataLoader loop", "rows", rows, partial(trained, rows), "", None)


def trained(rows: int) -> Contest:
    """Some epochs."""
    data = table(rows)

    def ours() -> Timed:
        watch, made = Stopwatch(), model()
        settings = Descent(
            max_epochs=EPOCHS, batch_size=BATCH, progress=False, callbacks={"watch": lambda: watch}
        )
        fit(made, data, settings)
        return Timed(made, min(watch.seconds[1:]))

    def theirs() -> Timed:
        made = model()
        for part, examples in made.parts(data):
            if isinstance(part, Solved):
                part.solve(*examples)
        loader = DataLoader(TensorDataset(*made.examples(data)), BATCH, shuffle=True)
        made.train()
        seconds = loop(made.mechanism, made.mechanism.loss, lambda: loader, EPOCHS)
        return Timed(made, min(seconds[1:]))

    @torch.no_grad()
    def quality(one: TransitionModel, other: TransitionModel) -> Quality:
        losses = [float(each.eval().mechanism.loss(*each.examples(data))) for each in (one, other)]
        return Quality("mean negative log-likelihood", *losses, TOLERANCE, SHUFFLED, higher=False)

    return Contest(
        ours, theirs, quality, repeat=5, facts=lambda *_: {"transitions_of_an_epoch": rows}, units=EPOCHS
    )
