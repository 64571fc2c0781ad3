"""Fitting a surrogate for a run, once: a folder that holds the checkpoint has been fitted already.

What the truth says of a run's decisions, where the data set knows the truth: truth.csv in the run folder.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from rehearsal_torch.cli.batch_decisions import Method, suits
from rehearsal_torch.cli.build import plain, surrogate_of, trainer_of
from rehearsal_torch.cli.errors import UserError, told
from rehearsal_torch.cli.run_summary import written
from rehearsal_torch.round_line import decision_of
from rehearsal_torch.run_folder import SECONDS, RunFolder, write_folder

if TYPE_CHECKING:
    from rehearsal_torch.problems.problem import Problem
    from rehearsal_torch.surrogates.surrogate import Surrogate


def compared(folder: RunFolder, problem: "Problem", surrogate: "Surrogate") -> int:
    """Compares decisions and learnt courses with the truth, patient by patient; the noise that was recovered
    of a causal world, node by node.

    Args:
        folder: Whose decisions.
        problem: Who may know the truth.
        surrogate: What was learnt.

    Returns:
        How many rows were written; 0 where nothing is known.
    """
    from rehearsal_torch.data.decision import Hindsight
    from rehearsal_torch.evaluation.noise_recovery import recovery_rows
    from rehearsal_torch.evaluation.truth_panel import truth_rows
    from rehearsal_torch.problems.causal.world import CausalWorld
    from rehearsal_torch.problems.episodes.cohort import SepsisSimulated
    from rehearsal_torch.surrogates.network.causal_model import CausalModel
    from rehearsal_torch.surrogates.transition import TransitionModel

    if isinstance(problem, CausalWorld) and isinstance(surrogate, CausalModel):
        recovered = [asdict(row) for row in recovery_rows(problem, surrogate)]
        if recovered:
            folder.write("truth.csv", written(recovered))
        return len(recovered)
    if not isinstance(problem, SepsisSimulated) or not isinstance(surrogate, TransitionModel):
        return 0
    decisions, changes = [], 0
    for line in folder.decisions():
        situation = problem.situation(line["index"])
        assert isinstance(situation, Hindsight)
        decisions.append((situation, decision_of(line)))
        changes = max(changes, int(line["trajectory"]["changes"]))
    rows = [asdict(row) for row in truth_rows(surrogate, problem, decisions, changes)]
    if rows:
        folder.write("truth.csv", written(rows))
    return len(rows)


def fitted(
    config: DictConfig, folder: RunFolder, problem: "Problem", method: "Method | None" = None
) -> "Surrogate":
    """The surrogate of a run: loaded from its checkpoint, or fitted and saved there.

    Args:
        config: The job's configuration.
        folder: The run's folder; ``training/`` keeps what a killed training goes on with.
        problem: What it is fitted to.
        method: What will be decided by; whether it suits the surrogate is looked at before anything is
            fitted.

    Raises:
        UserError: if a part refuses its data or its settings, what is learnt could not be saved, or the
            method does not suit it.
    """
    from rehearsal_torch.checkpoint import load, savable
    from rehearsal_torch.training.fit import fit

    kept = folder.path / "checkpoint"
    if kept.is_dir():
        with told(str(kept)):
            return load(kept, task=problem.question())
    if kept.exists() or kept.is_symlink():
        raise UserError(
            "expected the folder of a checkpoint; this is a file",
            str(kept),
            "Move it away, and type the same again",
        )
    surrogate = surrogate_of(config, problem)
    with told("surrogate"):
        savable(plain(config.surrogate), surrogate)
    if method is not None:
        suits(method, surrogate)
    trainer = trainer_of(config, folder.path / "training")
    with told("training"):
        fit(surrogate, problem.observations(), trainer, problem.held_out())
    readings = [] if trainer is None else trainer.history
    folder.write_metrics([*readings, *(row for row in folder.metrics() if row[1] == SECONDS)])
    promised = steep(surrogate, problem)
    folder.write_metrics(
        [*folder.metrics(), *((0, f"lipschitz/{name}", value) for name, value in promised.items())]
    )
    saved(surrogate, plain(config)["surrogate"], folder, kept, readings, problem, promised)
    return load(kept)


def steep(surrogate: "Surrogate", problem: "Problem") -> dict[str, float]:
    """How much of its Lipschitz constant a transition uses on held-out rows; nothing for other surrogates."""
    from rehearsal_torch.surrogates.transition import TransitionModel, steepness

    if not isinstance(surrogate, TransitionModel):
        return {}
    found = steepness(surrogate, problem.held_out()).to_dict()
    used = (
        f"Jacobians have norms up to {found['jacobian_largest']:.3f}, on average {found['jacobian_mean']:.3f}"
    )
    print(
        f"Lipschitz constants {found['bound_mean']:.3f} on average, up to {found['bound_largest']:.3f}; "
        f"{used} (held-out transitions)",
        flush=True,
    )
    return found


def saved(
    surrogate: "Surrogate",
    config: dict[str, Any],
    folder: RunFolder,
    kept: Path,
    readings: list[tuple[int, str, float]],
    problem: "Problem",
    promised: dict[str, float],
) -> None:
    """Writes the checkpoint with its card; it appears as a whole or not at all."""
    from rehearsal_torch.checkpoint import save

    run = folder.read_json("run.json")
    least = {name: min(value for _, other, value in readings if other == name) for _, name, _ in readings}
    told_of = {key: run.get(key) for key in ("command", "seed", "commit", "versions", "data_fingerprint")}
    beside = kept.with_name(".checkpoint.part")
    save(
        surrogate,
        config,
        beside,
        {**told_of, "least_losses": least, "lipschitz": promised, "data": dict(problem.card())},
    )
    write_folder(kept, beside)
