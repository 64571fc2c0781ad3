"""The verb train: fits a surrogate to a problem's observations, saves it, and previews its decisions.

A folder that holds a checkpoint has been fitted already. The comparison with the ground truth (truth.csv in
the run folder) is made for data sets where it is known. For trials, surrogate.csv holds what the model learnt
as curves, for cases of a table claims.csv.
"""

import shutil
from collections import defaultdict
from collections.abc import Sequence

from omegaconf import DictConfig

from rehearsal_torch.checkpoint import annotate, load, savable, save
from rehearsal_torch.cli.batch_decisions import decide, sharing, teller
from rehearsal_torch.cli.command_words import typed_again
from rehearsal_torch.cli.method_of_problem import settled
from rehearsal_torch.cli.run_summary import asked, closing
from rehearsal_torch.evaluation.claim_curves import claim_table
from rehearsal_torch.evaluation.counterfactual_errors import truth_table
from rehearsal_torch.evaluation.effect_tables import FILE as AVERAGE
from rehearsal_torch.evaluation.effect_tables import effects_of
from rehearsal_torch.evaluation.effect_tables import rows_of as average_rows
from rehearsal_torch.evaluation.surrogate_curves import curve_table
from rehearsal_torch.files.csv_rows import as_csv
from rehearsal_torch.methods.class_allowlist import trusted_modules
from rehearsal_torch.methods.run_parts import Fitted, Run, fitted, suits
from rehearsal_torch.progress import Progress
from rehearsal_torch.reporting.training_scores import held_out
from rehearsal_torch.run_folder import SECONDS, RunFolder, write_folder
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.training.gradient_descent import faults
from rehearsal_torch.user_error import UserError, as_user_error


def work(config: DictConfig, folder: RunFolder, sweep: bool) -> str:
    """One training; returns a sentence on it."""
    with sharing(config, config.learn, sweep, teller(config, sweep)) as workers:
        run, _, choice = settled(config, folder, sweep, workers)
        surrogate = fit(run, folder, workers)
        record_built(run, folder, surrogate)
        limit = int(config.preview) if config.limit is None else int(config.limit)
        count = decide(run, folder, surrogate, limit=limit, sweep=sweep, choice=choice)
    if config.truth:
        compared(run, folder, surrogate)
    curved(run, folder, surrogate)
    overrides = [
        text
        for text in folder.read_json("run.json")["overrides"]
        if not text.startswith(("surrogate", "trainer", "logger", "limit=", "preview="))
    ]
    following = typed_again("decide", [*overrides, f"checkpoint={folder.path / 'checkpoint'}"])
    closing(run, folder, sweep, following, choice)
    # The figures of its decisions belong to the card of the checkpoint.
    if figures := held_out(folder.path):
        annotate(folder.path / "checkpoint", {"held_out": figures})
    return f"trained, and decided for {count} cases"


def fit(run: Run, folder: RunFolder, workers: int = 1) -> Surrogate:
    """The surrogate of a run: loaded from the folder's checkpoint, or fitted and saved there; ``training/``
    holds the state from which a killed training resumes. What does not fit together is refused before.
    """
    checkpoint, trusted = folder.path / "checkpoint", trusted_modules(run.config)
    if checkpoint.is_dir():
        with as_user_error(str(checkpoint)):
            return load(checkpoint, task=run.problem.question(), trusted=trusted)
    if checkpoint.exists() or checkpoint.is_symlink():
        raise UserError(
            "expected the folder of a checkpoint; this is a file",
            str(checkpoint),
            "Move it elsewhere, and run the same command again",
        )
    surrogate = run.surrogate()
    with as_user_error("surrogate"):
        savable(run.config["surrogate"], surrogate)
    suits(run, surrogate)
    quiet = asked(run.config, "quiet")
    with Progress("fitting the model", quiet=quiet, whole=True) as line:
        with as_user_error("training"):
            training = fitted(run, folder.path / "training", surrogate, quiet=quiet, workers=workers)
        promised = {} if training.held_out is None else dict(surrogate.lipschitz(training.held_out))
        if promised:
            line.aside(
                f"A small change of the state changes the predicted next state by at most "
                f"{promised['bound_largest']:.2f} times as much (guaranteed; on held-out time steps by at "
                f"most {promised['jacobian_largest']:.2f} times)"
            )
        _keep(run, folder, training, promised)
        return training.surrogate


def _keep(run: Run, folder: RunFolder, training: Fitted, promised: dict[str, float]) -> None:
    """Writes what a training has found: its readings, what the surrogate promises, and the checkpoint."""
    readings, surrogate = training.readings, training.surrogate
    if unsound := _unsound(readings, run):
        folder.write_json("run.json", folder.read_json("run.json") | {"training_faults": unsound})
    seconds = [row for row in folder.metrics() if row[1] == SECONDS]
    promises = [(0, f"lipschitz/{name}", value) for name, value in promised.items()]
    folder.write_metrics([*readings, *seconds, *promises])
    record = folder.read_json("run.json")
    provenance = ("command", "seed", "commit", "versions", "data_fingerprint")
    names = dict.fromkeys(name for _, name, _ in readings)
    card = {
        **{key: record.get(key) for key in provenance},
        "min_losses": {name: min(value for _, other, value in readings if other == name) for name in names},
        **({"training_faults": record["training_faults"]} if record.get("training_faults") else {}),
        "lipschitz": promised,
        **({"predictable_noise": dict(known)} if (known := surrogate.noise_shares()) else {}),
        "data": dict(run.problem.card()),
        **({"reading": dict(reading)} if (reading := run.problem.facts().reading) else {}),
    }
    beside = folder.path / ".checkpoint.part"
    # What a killed process left there would move along with the new files.
    shutil.rmtree(beside, ignore_errors=True)
    try:
        save(surrogate, run.config["surrogate"], beside, card)
        write_folder(folder.path / "checkpoint", beside)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _unsound(readings: Sequence[tuple[int, str, float]], run: Run) -> list[str]:
    """What is wrong with the trainings of a fit, in sentences (`training.gradient_descent`)."""
    metrics: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for epoch, name, value in readings:
        metrics[name].append((float(epoch), value))
    most = run.config["trainer"].get("max_epochs") if readings else None
    return faults(metrics, int(most)) if most else []


def record_built(run: Run, folder: RunFolder, surrogate: Surrogate) -> None:
    """Records in run.json what decides: the classes that were built, which imputation and a task may have put
    in place of those of config.yaml, and whether the graph counts by adjustment alone.
    """
    built = {group: run.config[group].get("_target_") for group in ("surrogate", "objective", "search")}
    facts = {"built": built, "by_adjustment": surrogate.by_adjustment}
    folder.write_json("run.json", folder.read_json("run.json") | facts)


def compared(run: Run, folder: RunFolder, surrogate: Surrogate) -> int:
    """Compares a run with the ground truth, if the problem knows it, and writes truth.csv."""
    rows = truth_table(run.problem, surrogate, folder.decisions())
    if rows:
        folder.write("truth.csv", as_csv(rows, "nan"))
    return len(rows)


def curved(run: Run, folder: RunFolder, surrogate: Surrogate) -> int:
    """Writes what was learnt as curves: for trials surrogate.csv, through the last recommendation; for cases
    of a table claims.csv, through a few decisions, and average.csv, over the rows.
    """
    if int(run.config["shards"]) > 1:
        return 0
    lines = folder.decisions()
    with as_user_error("the curves of the surrogate"):
        rows = curve_table(run.problem, surrogate, lines, run.seed)
        claims = [] if run.learn else claim_table(run.problem, surrogate, run.objective, lines, run.seed)
    effects = [] if run.learn else average_rows(effects_of(surrogate))
    for name, found in (("surrogate.csv", rows), ("claims.csv", claims), (AVERAGE, effects)):
        if found:
            folder.write(name, as_csv(found, "nan"))
    return len(rows) + len(claims)
