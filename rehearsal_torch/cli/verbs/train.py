"""The verb train: fits a surrogate to a problem's observations, saves it, and previews its decisions.

A resumed folder with a checkpoint is not fitted again. The run folder gets a comparison with the ground truth
(truth.csv), where this is known, and the learnt curves (surrogate.csv for trials, claims.csv for cases).
"""

from collections import defaultdict
from collections.abc import Sequence

from omegaconf import DictConfig

from rehearsal_torch.checkpoint import annotate, load, savable, save, written
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
from rehearsal_torch.run_folder import SECONDS, RunFolder
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
        arg
        for arg in folder.read_json("run.json")["overrides"]
        if not arg.startswith(("surrogate", "trainer", "logger", "limit=", "preview="))
    ]
    next_command = typed_again("decide", [*overrides, f"checkpoint={folder.path / 'checkpoint'}"])
    closing(run, folder, sweep, next_command, choice)
    # The figures of its decisions belong to the card of the checkpoint.
    if figures := held_out(folder.path):
        annotate(folder.path / "checkpoint", {"held_out": figures})
    return f"trained, and decided for {count} cases"


def fit(run: Run, folder: RunFolder, workers: int = 1) -> Surrogate:
    """The surrogate of a run: loaded from the folder's checkpoint, or fitted and saved there; ``training/``
    has the state from which a killed training resumes. UserError, before the fit, for incompatible parts.
    """
    checkpoint, trusted = folder.path / "checkpoint", trusted_modules(run.config)
    if checkpoint.is_dir():
        with as_user_error(str(checkpoint)):
            return load(checkpoint, task=run.problem.question(), trusted=trusted)
    if checkpoint.exists() or checkpoint.is_symlink():
        fault = "expected the folder of a checkpoint; this is a file"
        raise UserError(fault, str(checkpoint), "Move it elsewhere, and run the same command again")
    surrogate = run.surrogate()
    with as_user_error("surrogate"):
        savable(run.config["surrogate"], surrogate)
    suits(run, surrogate)
    quiet = asked(run.config, "quiet")
    with Progress("fitting the model", quiet=quiet, whole=True) as line:
        with as_user_error("training"):
            fitting = fitted(run, folder.path / "training", surrogate, quiet=quiet, workers=workers)
        bounds = {} if fitting.held_out is None else dict(surrogate.lipschitz(fitting.held_out))
        if bounds:
            line.aside(
                f"A small change of the state changes the predicted next state by at most "
                f"{bounds['bound_largest']:.2f} times as much (guaranteed; on held-out time steps by at "
                f"most {bounds['jacobian_largest']:.2f} times)"
            )
        _save(run, folder, fitting, bounds)
        return fitting.surrogate


def _save(run: Run, folder: RunFolder, training: Fitted, bounds: dict[str, float]) -> None:
    """Writes the metrics of a training, the Lipschitz bounds of the surrogate, and the checkpoint."""
    readings, surrogate = training.readings, training.surrogate
    if training_faults := _training_faults(readings, run):
        folder.write_json("run.json", folder.read_json("run.json") | {"training_faults": training_faults})
    seconds = [row for row in folder.metrics() if row[1] == SECONDS]
    bound_metrics = [(0, f"lipschitz/{name}", value) for name, value in bounds.items()]
    folder.write_metrics([*readings, *seconds, *bound_metrics])
    record = folder.read_json("run.json")
    provenance = ("command", "seed", "commit", "versions", "data_fingerprint")
    names = dict.fromkeys(name for _, name, _ in readings)
    card = {
        **{key: record.get(key) for key in provenance},
        "min_losses": {name: min(value for _, metric, value in readings if metric == name) for name in names},
        **({"training_faults": record["training_faults"]} if record.get("training_faults") else {}),
        "lipschitz": bounds,
        **({"predictable_noise": dict(noise_shares)} if (noise_shares := surrogate.noise_shares()) else {}),
        "data": dict(run.problem.card()),
        **({"reading": dict(reading)} if (reading := run.problem.facts().reading) else {}),
    }
    written(folder.path / "checkpoint", lambda draft: save(surrogate, run.config["surrogate"], draft, card))


def _training_faults(readings: Sequence[tuple[int, str, float]], run: Run) -> list[str]:
    """The faults of the trainings of a fit, in sentences (`training.gradient_descent`)."""
    metrics: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for epoch, name, value in readings:
        metrics[name].append((float(epoch), value))
    max_epochs = run.config["trainer"].get("max_epochs") if readings else None
    return faults(metrics, int(max_epochs)) if max_epochs else []


def record_built(run: Run, folder: RunFolder, surrogate: Surrogate) -> None:
    """Records in run.json the classes that were built, and whether the graph counts by adjustment alone."""
    built = {group: run.config[group].get("_target_") for group in ("surrogate", "objective", "search")}
    facts = {"built": built, "by_adjustment": surrogate.by_adjustment}
    folder.write_json("run.json", folder.read_json("run.json") | facts)


def compared(run: Run, folder: RunFolder, surrogate: Surrogate) -> int:
    """Writes truth.csv, if the problem knows the ground truth; returns the number of its rows."""
    rows = truth_table(run.problem, surrogate, folder.decisions())
    if rows:
        folder.write("truth.csv", as_csv(rows, "nan"))
    return len(rows)


def curved(run: Run, folder: RunFolder, surrogate: Surrogate) -> int:
    """Writes the learnt curves: for trials surrogate.csv, through the last recommendation; for cases of a
    table claims.csv, through a few decisions, and average.csv, over the rows. Returns the number of rows.
    """
    if int(run.config["shards"]) > 1:
        return 0
    lines = folder.decisions()
    with as_user_error("the curves of the surrogate"):
        rows = curve_table(run.problem, surrogate, lines, run.seed)
        claims = [] if run.learn else claim_table(run.problem, surrogate, run.objective, lines, run.seed)
    effects = [] if run.learn else average_rows(effects_of(surrogate))
    for name, table in (("surrogate.csv", rows), ("claims.csv", claims), (AVERAGE, effects)):
        if table:
            folder.write(name, as_csv(table, "nan"))
    return len(rows) + len(claims)
