"""The verb decide: decides for every case of a split, with a checkpoint or a newly fitted surrogate.

For experiments to which no model can be fitted, it prints the start design instead. What to run next
stands in files of a run of trials:

    start_design.csv    the actions of the start design that are still to be run
    next.csv            the user's table, with a row for each experiment to run, in which all that is measured
                        is empty; filled in, it is the table of the next decision

Rows that stay empty wait for their result (`problems.trials.user_experiments`).
"""

from collections.abc import Mapping, Sequence
from shlex import join

from omegaconf import DictConfig

from rehearsal_torch.checkpoint import card, load
from rehearsal_torch.cli.batch_decisions import decide as decide_cases
from rehearsal_torch.cli.batch_decisions import sharing, teller
from rehearsal_torch.cli.command_words import typed_again, typed_as
from rehearsal_torch.cli.configuration_keys import refuse_shards_without_checkpoint
from rehearsal_torch.cli.method_of_problem import settled
from rehearsal_torch.cli.run_summary import closing
from rehearsal_torch.cli.verbs.train import compared, curved, fit, record_built
from rehearsal_torch.files.package_paths import has_app
from rehearsal_torch.methods.class_allowlist import trusted_modules
from rehearsal_torch.methods.presets import USUAL
from rehearsal_torch.methods.run_parts import Run, suits
from rehearsal_torch.problems.drafts.draft_yaml import YAML
from rehearsal_torch.problems.problem import Problem, World
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.surrogates.surrogate import Surrogate
from rehearsal_torch.user_error import as_user_error

NEXT = "next.csv"


def write_initial_design(problem: Problem, folder: RunFolder, seed: int) -> str:
    """Prints the experiments of the start design that are still to be run, and writes them to
    start_design.csv and next.csv. Returns a sentence for the run's status; empty if a model can be fitted.
    """
    facts = problem.facts()
    if facts.experiments is None or (design := facts.experiments.to_begin(seed)) is None:
        return ""
    past, waiting = problem.observations(), facts.waiting
    source = problem.card()["source"]
    nodes = ", ".join(name for name in past.names if name not in design.names)
    have = f"{len(past)} experiment{'' if len(past) == 1 else 's'}"
    if waiting is not None:
        counts = len(waiting.in_states("pending")), len(waiting.in_states("failed"))
        words = zip(counts, ("wait for a result", "failed"), strict=True)
        have += "".join(f", and {count} that {what}" for count, what in words if count)
    lacking = f"There is no model yet: {source} has {have} ({facts.experiments.lacking})."
    if not len(design):
        print(f"{lacking} Fill in {nodes} there, and run the same command again.\nRun folder: {folder.path}")
        return f"{have}, no model yet; nothing else to run first"
    rows = [",".join(f"{value:.10g}" for value in row) for row in design.values.tolist()]
    text = "\n".join([",".join(design.names), *rows]) + "\n"
    folder.write("start_design.csv", text)
    settings = [dict(zip(design.names, row, strict=True)) for row in design.values.tolist()]
    blank = write_next(problem, folder, settings)
    filled = f"{blank} is this table with these rows, to be filled in.\n" if blank else ""
    measured = f"add a row for each with the measured values of {nodes}"
    print(f"{lacking} Run these, {measured}, and run the same command again:", flush=True)
    print(f"{text}{filled}Run folder: {folder.path}", flush=True)
    return f"{have}, no model yet; {len(design)} to run first"


def write_proposals(problem: Problem, folder: RunFolder) -> str:
    """Writes the proposed experiments of a run to next.csv (`write_next`)."""
    settings = [line["alteration"] for line in folder.decisions() if line.get("alteration")]
    return write_next(problem, folder, settings) if settings else ""


def write_next(problem: Problem, folder: RunFolder, settings: Sequence[Mapping[str, float]]) -> str:
    """Writes the table with a row for each setting, which waits for its result. Returns the name of the file;
    empty if the problem is no table of experiments.
    """
    experiments = problem.facts().experiments
    if experiments is None:
        return ""
    folder.write(NEXT, experiments.with_proposals(settings))
    return str(folder.path / NEXT)


def work(config: DictConfig, folder: RunFolder, sweep: bool) -> str:
    """The decisions for one cohort, or one shard of it; returns a sentence on them."""
    refuse_shards_without_checkpoint(config)
    with sharing(config, config.learn, sweep, teller(config, sweep)) as workers:
        run, fingerprint, choice = settled(config, folder, sweep, workers)
        if first := write_initial_design(run.problem, folder, run.seed):
            return first
        if config.checkpoint is None:
            print("Fitting the model first (no checkpoint= was given).", flush=True)
            surrogate = fit(run, folder, workers)
        else:
            surrogate = _loaded(run, folder, str(config.checkpoint), fingerprint)
        suits(run, surrogate)
        record_built(run, folder, surrogate)
        count = decide_cases(run, folder, surrogate, limit=config.limit, sweep=sweep, choice=choice)
        if config.truth:
            compared(run, folder, surrogate)
        curved(run, folder, surrogate)
    checkpoint = config.checkpoint if config.checkpoint is not None else folder.path / "checkpoint"
    following = _following(folder, run.problem, str(checkpoint), write_proposals(run.problem, folder))
    closing(run, folder, sweep, following, choice, part=int(config.shards) > 1)
    return f"decided for {count} cases"


def _loaded(run: Run, folder: RunFolder, checkpoint: str, fingerprint: str) -> Surrogate:
    """The surrogate of a checkpoint; says whether it was fitted to other data, or to those held out."""
    with as_user_error(f"checkpoint={checkpoint}"):
        surrogate = load(checkpoint, task=run.problem.question(), trusted=trusted_modules(run.config))
        known = card(checkpoint)
    recorded, seen_by = known.get("data_fingerprint"), run.problem.facts().seen_by
    trained_on = recorded if isinstance(recorded, str) else None
    seen = False if seen_by is None else seen_by(trained_on)
    faults = known.get("training_faults")
    facts = {"held_out_seen": seen} | ({"training_faults": faults} if isinstance(faults, list) else {})
    folder.write_json("run.json", folder.read_json("run.json") | facts)
    if seen:
        data = "all rows of this run's table, those held out included."
        print(f"Note: {checkpoint} was fitted to {data}", flush=True)
    elif trained_on is not None and run.problem.observations().fingerprint() != trained_on:
        data = f"other data than this run's ({trained_on[:12]}, here {fingerprint[:12]})."
        print(f"Note: {checkpoint} was fitted to {data}", flush=True)
    return surrogate


def _following(folder: RunFolder, problem: Problem, checkpoint: str, blank: str = "") -> str:
    """The suggested next step: to run the experiment, for the user's own experiments; to ask the fitted model
    about cases, for a problem file; otherwise a command that decides with another method. `blank` is the file
    of the table with the experiment as a row to be filled in; empty if there is none.
    """
    read = str(folder.read_yaml("config.yaml").get("path") or "")
    if problem.kind == "optimise" and not isinstance(problem, World):
        typed = folder.read_json("run.json")["overrides"]
        # A problem file names its table.
        table = str(problem.card()["source"]) if read.endswith(YAML) else read or "the table of experiments"
        again = typed_again("decide", [text for text in typed if not text.startswith("checkpoint=")])
        decided = folder.decisions()
        if decided and not any(line.get("alteration") for line in decided):
            return f"fill in the results that {table} waits for, and type {again}"
        filled = f" (it is the last row of {blank}, to be filled in)" if blank else ""
        return f"run the experiment, add it as a row to {table}{filled}, and type {again}"
    if read.endswith(YAML) and not isinstance(problem, World):
        return explored(folder)
    return typed_again("decide", _another(folder, problem, checkpoint))


def explored(folder: RunFolder) -> str:
    """The command that asks the model of a run about cases and actions; its report, where the page of that
    command is not installed.
    """
    if has_app():
        return join([*typed_as("explore"), str(folder.path)])
    return f"open {folder.path / 'report.html'}"


def _another(folder: RunFolder, problem: Problem, checkpoint: str) -> list[str]:
    """The arguments to decide on the same data with another method: for episodes, with the same checkpoint;
    otherwise each method fits its own surrogate.
    """
    run = folder.read_json("run.json")
    tried = run.get("choices", {}).get("decision")
    kept = [
        text
        for text in run["overrides"]
        if not text.startswith(("decision=", "choose", "search", "checkpoint=", "shard"))
    ]
    first = {"rehearse": "care", "optimise": "ucb", "look_back": "greedy"}[problem.kind]
    other = next(name for name in (first, *USUAL[problem.kind]) if name != tried)
    if problem.kind == "look_back":
        return [*kept, f"decision={other}", f"checkpoint={checkpoint}"]
    return [*(text for text in kept if not text.startswith(("surrogate", "objective"))), f"decision={other}"]
