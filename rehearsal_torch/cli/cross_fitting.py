"""Cross-fitted claims of a run: the models of the folds, fitted as the run's own surrogate is.

What was found is written into the run folder: ``claims.json`` with the optimism of the choice, and
``untouched.csv`` with the prediction under no action for each row, by a model that has not seen it.
"""

import csv
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rehearsal_torch.cli.run import Run
from rehearsal_torch.user_error import UserError, as_user_error

if TYPE_CHECKING:
    from rehearsal_torch.claims import CrossFittedClaims
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.row_cases import Untouched
    from rehearsal_torch.run_folder import RunFolder
    from rehearsal_torch.surrogates.surrogate import Surrogate


def cross_fitted_claims(
    run: Run, told: Callable[[str], None] | None = None, workers: int = 1
) -> "CrossFittedClaims":
    """The cross-fitted claims of a run.

    All fits use the held-out rows of the problem for early stopping, as that of the run does.

    Args:
        told: Is told of the progress, one line per fold; None for silence.
        workers: The number of processes that share the folds, unless these train on GPUs, or with several
            processes each.

    Raises:
        UserError: if the run decides for other problems than cases of a table, or a fold cannot be fitted to.
    """
    from rehearsal_torch.claims import cross_fitted
    from rehearsal_torch.data.rehearsal_task import RehearsalTask
    from rehearsal_torch.training.fit import fit
    from rehearsal_torch.training.shared_members import shareable

    problem, task = run.problem, run.problem.question()
    if not isinstance(task, RehearsalTask):
        raise UserError(
            "these claims are those of alterations, judged by other rows of a table; "
            f"{type(problem).__name__} has none",
            "claims=cross_fitted",
            "Leave claims= out",
        )
    held_out = problem.held_out()

    with as_user_error("claims"):
        trainer = run.trainer(None)
        how = None if trainer is None else trainer.settled()

        def fitted(table: "Table") -> "Surrogate":
            return fit(run.surrogate(), table, None if how is None else how.settled(), held_out)

        return cross_fitted(
            problem.observations(),
            problem.facts().units,
            task,
            fitted,
            run.objective,
            run.search,
            seed=run.seed,
            told=told,
            workers=workers if shareable(how) else 1,
        )


def claimed(
    run: Run, folder: "RunFolder", told: Callable[[str], None] | None = None, workers: int = 1
) -> "CrossFittedClaims | None":
    """The claims that the configuration names: None for the method's own; cross-fitted ones are also written
    into the run folder.
    """
    if run.config.get("claims", "in_sample") != "cross_fitted":
        return None
    claims = cross_fitted_claims(run, told, workers)
    facts = {"folds": len(claims.folds), "optimism": claims.optimism, "error": claims.error}
    folder.write_json("claims.json", facts)
    if claims.untouched is not None:
        folder.write("untouched.csv", _written(claims.untouched, run.problem.facts().units))
    return claims


def _written(untouched: "Untouched", units: Sequence[str] | None) -> str:
    """The untouched rows as CSV, with the number of each unit; a row without a unit is its own."""
    numbers = {} if units is None else {unit: place for place, unit in enumerate(dict.fromkeys(units))}
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("unit", "desired", "predicted", "constant"))
    each = (untouched.rows, untouched.desired, untouched.predicted, untouched.constant)
    for row, desired, predicted, constant in zip(*(one.tolist() for one in each), strict=True):
        unit = row if units is None else numbers[units[row]]
        lines.writerow((unit, f"{desired:g}", f"{predicted:.6g}", f"{constant:.6g}"))
    return text.getvalue()
