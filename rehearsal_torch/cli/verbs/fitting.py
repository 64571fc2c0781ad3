"""Fitting a surrogate for a run, once: a folder that holds the checkpoint has been fitted already.

What the truth says of a run's decisions, where the data set knows the truth: truth.csv in the run folder.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from rehearsal_torch.cli.allowed import trusted_modules
from rehearsal_torch.cli.errors import UserError, as_user_error
from rehearsal_torch.cli.run import Method, Run, build, suits
from rehearsal_torch.cli.run_summary import written
from rehearsal_torch.run_folder import SECONDS, RunFolder, write_folder

if TYPE_CHECKING:
    from rehearsal_torch.data.table import Table
    from rehearsal_torch.problems.problem import Problem
    from rehearsal_torch.surrogates.surrogate import Surrogate


@dataclass(frozen=True)
class Fitted:
    """What was learnt, and what that took.

    Attributes:
        surrogate: What was learnt.
        seconds: Of the fit alone, without drawing the data.
        readings: Losses, as (step, name, value).
        held_out: Rows that it was not fitted to; None where they were not asked for.
    """

    surrogate: "Surrogate"
    seconds: float
    readings: list[tuple[int, str, float]]
    held_out: "Table | None"


def learnt(
    run: Run, training: Path, surrogate: "Surrogate | None" = None, *, validated: bool = True
) -> Fitted:
    """Fits the surrogate of a run to the problem's observations; nothing of it is kept.

    Args:
        run: What is fitted, and to what.
        training: The folder that a trainer may keep what it needs in.
        surrogate: The run's, where it was made before.
        validated: Whether held-out rows decide when a training ends.

    Raises:
        ValueError: if a part refuses its data.
    """
    from rehearsal_torch.training.fit import fit as fit_parts

    surrogate = run.surrogate() if surrogate is None else surrogate
    table, held_out = run.problem.observations(), run.problem.held_out() if validated else None
    trainer = run.trainer(training)
    began = time.perf_counter()
    fit_parts(surrogate, table, trainer, held_out)
    seconds = time.perf_counter() - began
    return Fitted(surrogate, seconds, [] if trainer is None else trainer.history, held_out)


def fit(run: Run, folder: RunFolder) -> "Surrogate":
    """The surrogate of a run: loaded from the folder's checkpoint, or fitted and saved there.

    Args:
        run: What is fitted, and to what; whether its objective goes with the surrogate is looked at before
            anything is fitted.
        folder: The run's folder; ``training/`` keeps what a killed training goes on with.

    Raises:
        UserError: if a part refuses its data or its settings, what is learnt could not be saved, or the
            objective does not go with it.
    """
    from rehearsal_torch.checkpoint import load, savable

    kept, trusted = folder.path / "checkpoint", trusted_modules(run.config)
    if kept.is_dir():
        with as_user_error(str(kept)):
            return load(kept, task=run.problem.question(), trusted=trusted)
    if kept.exists() or kept.is_symlink():
        raise UserError(
            "expected the folder of a checkpoint; this is a file",
            str(kept),
            "Move it away, and type the same again",
        )
    surrogate = run.surrogate()
    with as_user_error("surrogate"):
        savable(run.config["surrogate"], surrogate)
    suits(run, surrogate)
    with as_user_error("training"):
        found = learnt(run, folder.path / "training", surrogate)
    readings = found.readings
    folder.write_metrics([*readings, *(row for row in folder.metrics() if row[1] == SECONDS)])
    promised = lipschitz_facts(surrogate, found.held_out)
    folder.write_metrics(
        [*folder.metrics(), *((0, f"lipschitz/{name}", value) for name, value in promised.items())]
    )
    saved(surrogate, run.config["surrogate"], folder, kept, readings, run.problem, promised)
    return load(kept, trusted=trusted)


def fitted(
    config: DictConfig, folder: RunFolder, problem: "Problem", method: Method | None = None
) -> "Surrogate":
    """`fit` for a problem, and perhaps a method, that were built before.

    Args:
        config: The whole configuration.
        folder: As of `fit`.
        problem: What it is fitted to.
        method: What will be decided by; None for what the configuration says.

    Raises:
        UserError: as `build` and `fit` do.
    """
    run = build(config, problem)
    if method is not None:
        run = replace(run, objective=method.objective, search=method.search, certificate=method.certify)
    return fit(run, folder)


def lipschitz_facts(surrogate: "Surrogate", held_out: "Table | None") -> Mapping[str, float]:
    """How much of its Lipschitz constants a surrogate uses on held-out rows; nothing where it guarantees
    none.
    """
    found = {} if held_out is None else surrogate.lipschitz(held_out)
    if not found:
        return {}
    used = (
        f"Jacobians have norms up to {found['jacobian_largest']:.3f}, on average {found['jacobian_mean']:.3f}"
    )
    print(
        f"Lipschitz constants {found['bound_mean']:.3f} on average, up to {found['bound_largest']:.3f}; "
        f"{used} (held-out transitions)",
        flush=True,
    )
    return found


def compared(run: Run, folder: RunFolder, surrogate: "Surrogate") -> int:
    """Compares a run with the truth, where the problem knows it: truth.csv in the folder.

    Args:
        run: Whose problem may know the truth.
        folder: Whose decisions.
        surrogate: What was learnt.

    Returns:
        How many rows were written; 0 where nothing is known.
    """
    from rehearsal_torch.evaluation.known_truth import truth_table

    rows = truth_table(run.problem, surrogate, folder.decisions())
    if rows:
        folder.write("truth.csv", written(rows))
    return len(rows)


def noted(folder: RunFolder) -> None:
    """Adds the figures of a training's decisions to the card of its checkpoint, as ``held_out``.

    Args:
        folder: The run's folder, with its checkpoint.
    """
    from rehearsal_torch.checkpoint import annotate
    from rehearsal_torch.reporting.held_out import held_out

    figures = held_out(folder.path)
    if figures:
        annotate(folder.path / "checkpoint", {"held_out": figures})


def saved(
    surrogate: "Surrogate",
    config: dict[str, Any],
    folder: RunFolder,
    kept: Path,
    readings: list[tuple[int, str, float]],
    problem: "Problem",
    promised: Mapping[str, float],
) -> None:
    """Writes the checkpoint with its card; it appears as a whole or not at all."""
    from rehearsal_torch.checkpoint import save

    run = folder.read_json("run.json")
    min_losses = {
        name: min(value for _, other, value in readings if other == name) for _, name, _ in readings
    }
    provenance_fields = {
        key: run.get(key) for key in ("command", "seed", "commit", "versions", "data_fingerprint")
    }
    beside = kept.with_name(".checkpoint.part")
    save(
        surrogate,
        config,
        beside,
        {
            **provenance_fields,
            "least_losses": min_losses,
            "lipschitz": dict(promised),
            "data": dict(problem.card()),
        },
    )
    write_folder(kept, beside)
