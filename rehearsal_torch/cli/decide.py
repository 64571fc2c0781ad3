"""Deciding: take what was learnt, and decide for every situation of a split.

Training: learn from a problem's observations, keep what was learnt, and show what it decides.

Fitting a surrogate for a run, once: a folder that holds the checkpoint has been fitted already.

What the truth says of a run's decisions, where the data set knows the truth: truth.csv in the run folder.

The first words of a campaign: while experiments are too few for a model, what to run first.
"""

from dataclasses import asdict
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from rehearsal_torch.cli.batch_decisions import Method, suits
from rehearsal_torch.cli.build import plain, surrogate_of, trainer_of
from rehearsal_torch.cli.errors import UserError, told
from rehearsal_torch.cli.job import carry_out
from rehearsal_torch.cli.run_summary import closing, described, written
from rehearsal_torch.files.forms import checked
from rehearsal_torch.files.plain import read_yaml
from rehearsal_torch.round_line import decision_of
from rehearsal_torch.run_folder import SECONDS, RunFolder, write_folder

if TYPE_CHECKING:
    from rehearsal_torch.problems.problem import Problem
    from rehearsal_torch.surrogates.surrogate import Surrogate


def train(config: DictConfig) -> None:
    """Hydra's task: one training in its run folder."""
    carry_out("train", _train, config)


def _train(config: DictConfig, folder: RunFolder, sweep: bool) -> str:
    from rehearsal_torch.cli.batch_decisions import decided, learning, method_of
    from rehearsal_torch.cli.build import problem_of, settle

    settle(int(config.seed))
    method, problem = method_of(config), problem_of(config)
    learning(config, problem)
    described(problem, folder, sweep)
    surrogate = fitted(config, folder, problem, method)
    limit = int(config.preview) if config.limit is None else int(config.limit)
    count = decided(config, folder, problem, surrogate, method, limit, sweep)
    if config.truth:
        compared(folder, problem, surrogate)
    overrides = [text for text in folder.read_json("run.json")["overrides"] if not text.startswith(("surrogate", "trainer", "logger", "limit=", "preview="))]
    closing(folder, sweep, join(["python", "scripts/decide.py", *overrides, f"checkpoint={folder.path / 'checkpoint'}"]))
    return f"trained, and decided for {count} situations"


def fitted(config: DictConfig, folder: RunFolder, problem: "Problem", method: "Method | None" = None) -> "Surrogate":
    """The surrogate of a run: loaded from its checkpoint, or fitted and saved there.

    Args:
        config: The job's configuration.
        folder: The run's folder; ``training/`` keeps what a killed training goes on with.
        problem: What it is fitted to.
        method: What will be decided by; whether it suits the surrogate is looked at before anything is fitted.

    Raises:
        UserError: if a part refuses its data or its settings, what is learnt could not be saved, or the method does not suit it.
    """
    from rehearsal_torch.checkpoint import load, savable
    from rehearsal_torch.training.fit import fit

    kept = folder.path / "checkpoint"
    if kept.is_dir():
        with told(str(kept)):
            return load(kept, task=problem.question())
    if kept.exists() or kept.is_symlink():
        raise UserError("expected the folder of a checkpoint; this is a file", str(kept), "Move it away, and type the same again")
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
    folder.write_metrics([*folder.metrics(), *((0, f"lipschitz/{name}", value) for name, value in promised.items())])
    saved(surrogate, plain(config)["surrogate"], folder, kept, readings, problem, promised)
    return load(kept)


def steep(surrogate: "Surrogate", problem: "Problem") -> dict[str, float]:
    """How much of its Lipschitz constant a transition uses on held-out rows; nothing for other surrogates."""
    from rehearsal_torch.surrogates.transition import TransitionModel, steepness

    if not isinstance(surrogate, TransitionModel):
        return {}
    found = steepness(surrogate, problem.held_out()).to_dict()
    used = f"Jacobians have norms up to {found['jacobian_largest']:.3f}, on average {found['jacobian_mean']:.3f}"
    print(f"Lipschitz constants {found['bound_mean']:.3f} on average, up to {found['bound_largest']:.3f}; {used} (held-out transitions)", flush=True)
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
    save(surrogate, config, beside, {**told_of, "least_losses": least, "lipschitz": promised, "data": dict(problem.card())})
    write_folder(kept, beside)


def compared(folder: RunFolder, problem: "Problem", surrogate: "Surrogate") -> int:
    """Compares decisions and learnt courses with the truth, patient by patient; the noise that was recovered of a causal world, node by node.

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


def begun_with(problem: "Problem", folder: RunFolder, seed: int) -> str:
    """Prints the experiments of the start design that are still to be run, and keeps them as start_design.csv.

    Args:
        problem: Where experiments come from.
        folder: The run's folder.
        seed: Scrambles the design.

    Returns:
        A sentence for the run's status; empty where there are experiments enough to decide, or the problem is another one.
    """
    from rehearsal_torch.problems.causal.own_experiments import ExperimentTable

    design = problem.to_begin(seed) if isinstance(problem, ExperimentTable) else None
    if design is None or not isinstance(problem, ExperimentTable):
        return ""
    rows = [",".join(f"{value:.10g}" for value in row) for row in design.values.tolist()]
    text = "\n".join([",".join(design.names), *rows]) + "\n"
    folder.write("start_design.csv", text)
    have = f"{len(problem.past)} experiment{'' if len(problem.past) == 1 else 's'}"
    then = f"Run these, add a row for each with what came out ({', '.join(problem.task.nodes)}), and type the same again:"
    print(f"There is no model yet: {problem.source} has {have}. {then}\n{text}Run folder: {folder.path}", flush=True)
    return f"{have}, too few for a model; {len(design)} to run first"


def decide(config: DictConfig) -> None:
    """Hydra's task: one cohort, or one shard of it, in its run folder."""
    carry_out("decide", _decide, config)


def _decide(config: DictConfig, folder: RunFolder, sweep: bool) -> str:
    from rehearsal_torch.checkpoint import card, load
    from rehearsal_torch.cli.batch_decisions import decided, learning, method_of, suits
    from rehearsal_torch.cli.build import problem_of, settle, tasked

    if config.checkpoint is None and int(config.shards) > 1:
        raise UserError("each shard would fit a surrogate of its own", "checkpoint", "Train first, then give checkpoint=FOLDER")
    settle(int(config.seed))
    method, problem = method_of(config), problem_of(config)
    tasked(config, problem)
    learning(config, problem)
    fingerprint = described(problem, folder, sweep)
    if first := begun_with(problem, folder, int(config.seed)):
        return first
    if config.checkpoint is None:
        print("No checkpoint was given: fitting the surrogate first.", flush=True)
        surrogate = fitted(config, folder, problem, method)
    else:
        with told(f"checkpoint={config.checkpoint}"):
            surrogate = load(config.checkpoint, task=problem.question())
            trained_on = card(config.checkpoint).get("data_fingerprint")
        if trained_on is not None and trained_on != fingerprint:
            print(f"Note: {config.checkpoint} was fitted to other data than this run's ({trained_on[:12]}, here {fingerprint[:12]}).", flush=True)
    suits(method, surrogate)
    count = decided(config, folder, problem, surrogate, method, config.limit, sweep)
    if config.truth:
        compared(folder, problem, surrogate)
    used = config.checkpoint if config.checkpoint is not None else folder.path / "checkpoint"
    closing(folder, sweep, _following(folder, problem, str(used)))
    return f"decided for {count} situations"


def surrogate_in(checkpoint: str) -> dict[str, object]:
    """What a checkpoint builds, read without building it; empty where there is none.

    Raises:
        PlainFileError: if its configuration cannot be read.
    """
    for path in (Path(checkpoint) / "checkpoint" / "config.yaml", Path(checkpoint) / "config.yaml"):
        if path.is_file() and (path.parent / "weights.safetensors").is_file():
            return checked(read_yaml(path), str(path), {})
    return {}


def _following(folder: RunFolder, problem: "Problem", checkpoint: str) -> str:
    """What to do next: one's own experiment is carried out; what a world or a table has answered is decided in another way."""
    from rehearsal_torch.problems.problem import CausalProblem, World

    line = ["python", "scripts/decide.py"]
    if isinstance(problem, CausalProblem) and not isinstance(problem, World):
        run, table = folder.read_json("run.json"), folder.read_yaml("config.yaml").get("path")
        again = join([*line, *(text for text in run["overrides"] if not text.startswith("checkpoint="))])
        return f"carry the experiment out, add it as a row to {table or 'the table of experiments'}, and type {again}"
    return join([*line, *_another(folder, problem, checkpoint)])


def _another(folder: RunFolder, problem: "Problem", checkpoint: str) -> list[str]:
    """The same data decided in another way, to compare with: episodes with the same checkpoint; otherwise each decision fits a surrogate of its own."""
    from rehearsal_torch.cli.build import FORESIGHT, HINDSIGHT, TRIALS
    from rehearsal_torch.problems.problem import CausalProblem, RehearsalProblem

    run = folder.read_json("run.json")
    tried = run.get("choices", {}).get("decision")
    kept = [text for text in run["overrides"] if not text.startswith(("decision=", "search", "checkpoint=", "shard"))]
    if isinstance(problem, RehearsalProblem | CausalProblem):
        others = ("care", *FORESIGHT) if isinstance(problem, RehearsalProblem) else ("ucb", *TRIALS)
        other = next(name for name in others if name != tried)
        return [*(text for text in kept if not text.startswith(("surrogate", "objective"))), f"decision={other}"]
    other = next(name for name in ("greedy", *HINDSIGHT) if name != tried)
    return [*kept, f"decision={other}", f"checkpoint={checkpoint}"]
