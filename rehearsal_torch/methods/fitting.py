"""The fit of a run's surrogate to its observations; nothing is written but what the trainer keeps."""

import time
from dataclasses import dataclass
from pathlib import Path

from rehearsal_torch.data.table import Table
from rehearsal_torch.methods.run import Run
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.fit import fit


@dataclass(frozen=True)
class Fitted:
    """A fitted surrogate, with time and losses of the fit.

    Attributes:
        seconds: The duration of the fit alone, without sampling the data.
        readings: The losses, as (step, name, value).
        held_out: The held-out rows; None if they were not used.
    """

    surrogate: Surrogate
    seconds: float
    readings: list[tuple[int, str, float]]
    held_out: Table | None


def fitted(
    run: Run,
    training: Path | None = None,
    surrogate: Surrogate | None = None,
    *,
    validated: bool = True,
    quiet: bool = True,
    workers: int = 1,
) -> Fitted:
    """Fits the surrogate of a run, ready to predict.

    Args:
        training: The folder for the trainer's files; None for none.
        surrogate: The run's unfitted surrogate, if it was built before.
        validated: Whether held-out rows are used for early stopping.
        quiet: Whether parts with a solver show no progress.
        workers: The number of processes that share the fits of members (`training.fit`).

    Raises:
        ValueError: if a part refuses its data.
    """
    surrogate = run.surrogate() if surrogate is None else surrogate
    held_out = run.problem.held_out() if validated else None
    trainer, observations = run.trainer(training), [run.problem.observations()]
    began = time.perf_counter()
    # Nothing here keeps the rows: a model that has its examples from them needs them no longer.
    fit(surrogate, observations.pop(), trainer, held_out, quiet=quiet, workers=workers)
    seconds = time.perf_counter() - began
    readings = [] if trainer is None else trainer.history
    return Fitted(surrogate.eval(), seconds, readings, held_out)
