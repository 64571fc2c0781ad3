"""Fitting of a run's surrogate with its checkpoint, and the comparison of decisions with the ground truth.

A folder that holds a checkpoint has been fitted already. The comparison (truth.csv in the run folder) is made
for data sets with a known ground truth. For trials, surrogate.csv holds what the model learnt as curves, for
cases of a table claims.csv.
"""

import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rehearsal_torch.checkpoint import annotate, load, savable, save
from rehearsal_torch.cli.run_summary import asked
from rehearsal_torch.data.table import Table
from rehearsal_torch.evaluation.claim_curves import claim_table
from rehearsal_torch.evaluation.surrogate_curves import curve_table
from rehearsal_torch.evaluation.truth_panel import truth_table
from rehearsal_torch.files.rows import as_csv
from rehearsal_torch.methods.allowed import trusted_modules
from rehearsal_torch.methods.run import Fitted, Run, fitted, suits
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.progress import Progress
from rehearsal_torch.reporting.held_out import held_out as figures_held_out
from rehearsal_torch.run_folder import SECONDS, RunFolder, write_folder
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.descent import faults
from rehearsal_torch.user_error import UserError, as_user_error


def fit(run: Run, folder: RunFolder, workers: int = 1) -> Surrogate:
    """The surrogate of a run: loaded from the folder's checkpoint, or fitted and saved there.

    Args:
        run: The run; its objective is checked against the surrogate before anything is fitted.
        folder: The run's folder; ``training/`` holds the state from which a killed training resumes.
        workers: The number of processes that share the fits of members (`training.shared_members`).

    Raises:
        UserError: if a part refuses its data or its settings, the surrogate could not be saved, or the
            objective does not match it.
    """
    kept, trusted = folder.path / "checkpoint", trusted_modules(run.config)
    if kept.is_dir():
        with as_user_error(str(kept)):
            return load(kept, task=run.problem.question(), trusted=trusted)
    if kept.exists() or kept.is_symlink():
        raise UserError(
            "expected the folder of a checkpoint; this is a file",
            str(kept),
            "Move it elsewhere, and run the same command again",
        )
    surrogate = run.surrogate()
    with as_user_error("surrogate"):
        savable(run.config["surrogate"], surrogate)
    suits(run, surrogate)
    quiet = asked(run.config, "quiet")
    with Progress("fitting the model", quiet=quiet, whole=True) as line:
        with as_user_error("training"):
            found = fitted(run, folder.path / "training", surrogate, quiet=quiet, workers=workers)
        _keep(run, folder, kept, surrogate, found, line.aside)
        return found.surrogate


def record_built(run: Run, folder: RunFolder, surrogate: Surrogate) -> None:
    """Records in run.json what decides: the classes that were built, which imputation and a task may have put
    in place of those of config.yaml, and whether the graph counts by adjustment alone.
    """
    built = {group: run.config[group].get("_target_") for group in ("surrogate", "objective", "search")}
    facts = {"built": built, "by_adjustment": surrogate.by_adjustment}
    folder.write_json("run.json", folder.read_json("run.json") | facts)


def _keep(
    run: Run,
    folder: RunFolder,
    kept: Path,
    surrogate: Surrogate,
    found: Fitted,
    say: Callable[[str], None],
) -> None:
    """Writes what a training has found: its readings, what the surrogate promises, and the checkpoint."""
    readings = found.readings
    if unsound := _unsound(readings, run):
        folder.write_json("run.json", folder.read_json("run.json") | {"training_faults": unsound})
    folder.write_metrics([*readings, *(row for row in folder.metrics() if row[1] == SECONDS)])
    promised = lipschitz_facts(surrogate, found.held_out, say)
    folder.write_metrics(
        [*folder.metrics(), *((0, f"lipschitz/{name}", value) for name, value in promised.items())]
    )
    saved(surrogate, run.config["surrogate"], folder, kept, readings, run.problem, promised)


def _unsound(readings: Sequence[tuple[int, str, float]], run: Run) -> list[str]:
    """What is wrong with the trainings of a fit, in sentences (`training.descent`)."""
    metrics: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for epoch, name, value in readings:
        metrics[name].append((float(epoch), value))
    most = run.config["trainer"].get("max_epochs") if readings else None
    return faults(metrics, int(most)) if most else []


def lipschitz_facts(
    surrogate: Surrogate, held_out: Table | None, say: Callable[[str], None] = print
) -> Mapping[str, float]:
    """A surrogate's Lipschitz constants and the Jacobian norms on held-out rows; empty without guaranteed
    constants.
    """
    found = {} if held_out is None else surrogate.lipschitz(held_out)
    if not found:
        return {}
    say(
        f"A small change of the state changes the predicted next state by at most "
        f"{found['bound_largest']:.2f} times as much (guaranteed; on held-out time steps by at most "
        f"{found['jacobian_largest']:.2f} times)"
    )
    return found


def compared(run: Run, folder: RunFolder, surrogate: Surrogate) -> int:
    """Compares a run with the ground truth, if the problem knows it, and writes truth.csv.

    Args:
        folder: The run folder with the decisions.

    Returns:
        The number of rows; 0 if the ground truth is unknown.
    """
    rows = truth_table(run.problem, surrogate, folder.decisions())
    if rows:
        folder.write("truth.csv", as_csv(rows, "nan"))
    return len(rows)


def curved(run: Run, folder: RunFolder, surrogate: Surrogate) -> int:
    """Writes what was learnt as curves: for trials surrogate.csv, through the last recommendation; for cases
    of a table claims.csv, through a few decisions.

    Args:
        folder: The run folder with the decisions.
        surrogate: The surrogate, fitted to all trials or rows.

    Returns:
        The number of rows; 0 for episodes, for an online run of cases, and for a shard, which has only some
        of the decisions.
    """
    if int(run.config["shards"]) > 1:
        return 0
    lines = folder.decisions()
    with as_user_error("the curves of the surrogate"):
        rows = curve_table(run.problem, surrogate, lines, run.seed)
        claims = [] if run.learn else claim_table(run.problem, surrogate, run.objective, lines, run.seed)
    for name, found in (("surrogate.csv", rows), ("claims.csv", claims)):
        if found:
            folder.write(name, as_csv(found, "nan"))
    return len(rows) + len(claims)


def noted(folder: RunFolder) -> None:
    """Adds the figures of a training's decisions to the card of its checkpoint, as ``held_out``.

    Args:
        folder: The run's folder, with its checkpoint.
    """
    figures = figures_held_out(folder.path)
    if figures:
        annotate(folder.path / "checkpoint", {"held_out": figures})


def saved(
    surrogate: Surrogate,
    config: dict[str, Any],
    folder: RunFolder,
    kept: Path,
    readings: list[tuple[int, str, float]],
    problem: Problem,
    promised: Mapping[str, float],
) -> None:
    """Writes the checkpoint with its card, atomically."""
    run = folder.read_json("run.json")
    min_losses = {
        name: min(value for _, other, value in readings if other == name) for _, name, _ in readings
    }
    unsound = run.get("training_faults") or []
    provenance = {key: run.get(key) for key in ("command", "seed", "commit", "versions", "data_fingerprint")}
    card = {
        **provenance,
        "min_losses": min_losses,
        **({"training_faults": unsound} if unsound else {}),
        "lipschitz": dict(promised),
        **({"predictable_noise": dict(known)} if (known := surrogate.noise_shares()) else {}),
        "data": dict(problem.card()),
        **({"reading": dict(reading)} if (reading := problem.facts().reading) else {}),
    }
    beside = kept.with_name(".checkpoint.part")
    # What a killed process left there would move along with the new files.
    shutil.rmtree(beside, ignore_errors=True)
    try:
        save(surrogate, config, beside, card)
        write_folder(kept, beside)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
