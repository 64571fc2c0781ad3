"""The verb decide: decides for every case of a split, with a checkpoint or a newly fitted surrogate.

With too few experiments for a model, it prints the start design instead. A run of trials writes

    start_design.csv    the actions of the start design that are still to be run
    next.csv            the user's table, with a row for each experiment to run, without its measurements;
                        filled in, it is the table of the next decision

Rows that stay empty wait for their result (`problems.trials.user_experiments`).
"""

import math
from collections.abc import Mapping, Sequence
from shlex import join

import pandas as pd
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
    """Writes and prints the rest of the start design; returns a sentence, empty if a model can be fitted."""
    facts = problem.facts()
    if facts.experiments is None or (design := facts.experiments.to_begin(seed)) is None:
        return ""
    past, waiting = problem.held_out(), facts.waiting
    source = problem.card()["source"]
    nodes = ", ".join(name for name in past.names if name not in design.names)
    available = f"{len(past)} experiment{'' if len(past) == 1 else 's'}"
    if waiting is not None:
        counts = len(waiting.in_states("pending")), len(waiting.in_states("failed"))
        states = zip(counts, ("wait for a result", "failed"), strict=True)
        available += "".join(f", and {count} that {state}" for count, state in states if count)
    missing = f"There is no model yet: {source} has {available} ({facts.experiments.lacking})."
    if not len(design):
        print(f"{missing} Fill in {nodes} there, and run the same command again.\nRun folder: {folder.path}")
        return f"{available}, no model yet; nothing else to run first"
    rows = [dict(zip(design.names, row, strict=True)) for row in design.values.tolist()]
    settings = [{name: value for name, value in row.items() if not math.isnan(value)} for row in rows]
    shown = [facts.experiments.task.shown(setting) for setting in settings]
    frame = pd.DataFrame(shown, columns=list(design.names))
    text = frame.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    folder.write("start_design.csv", text)
    next_file = write_next(problem, folder, settings)
    hint = f"{next_file} is this table with these rows, to be filled in.\n" if next_file else ""
    measured = f"add a row for each with the measured values of {nodes}"
    print(f"{missing} Run these, {measured}, and run the same command again:", flush=True)
    print(f"{text}{hint}Run folder: {folder.path}", flush=True)
    return f"{available}, no model yet; {len(design)} to run first"


def write_proposals(problem: Problem, folder: RunFolder) -> str:
    """Writes the proposed experiments of a run to next.csv (`write_next`)."""
    proposed = [line for line in folder.decisions() if line.get("alteration")]
    settings = [{**line.get("given", {}), **line["alteration"]} for line in proposed]
    return write_next(problem, folder, settings) if settings else ""


def write_next(problem: Problem, folder: RunFolder, settings: Sequence[Mapping[str, float]]) -> str:
    """Writes next.csv with a row for each setting; returns its path, empty for other problems."""
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
        if sentence := write_initial_design(run.problem, folder, run.seed):
            return sentence
        if config.checkpoint is None:
            print("Fitting the model first (no checkpoint= was given).", flush=True)
            surrogate = fit(run, folder, workers)
        else:
            surrogate = _load_surrogate(run, folder, str(config.checkpoint), fingerprint)
        suits(run, surrogate)
        record_built(run, folder, surrogate)
        count = decide_cases(run, folder, surrogate, limit=config.limit, sweep=sweep, choice=choice)
        if config.truth:
            compared(run, folder, surrogate)
        curved(run, folder, surrogate)
    checkpoint = config.checkpoint if config.checkpoint is not None else folder.path / "checkpoint"
    following = _next_step(folder, run.problem, str(checkpoint), write_proposals(run.problem, folder))
    closing(run, folder, sweep, following, choice, part=int(config.shards) > 1)
    return f"decided for {count} cases"


def _load_surrogate(run: Run, folder: RunFolder, checkpoint: str, fingerprint: str) -> Surrogate:
    """The surrogate of a checkpoint; prints whether it was fitted to other data, or to held-out rows."""
    with as_user_error(f"checkpoint={checkpoint}"):
        surrogate = load(checkpoint, task=run.problem.question(), trusted=trusted_modules(run.config))
        model_card = card(checkpoint)
    recorded, seen_by = model_card.get("data_fingerprint"), run.problem.facts().seen_by
    trained_on = recorded if isinstance(recorded, str) else None
    held_out_seen = False if seen_by is None else seen_by(trained_on)
    faults = model_card.get("training_faults")
    record = folder.read_json("run.json") | {"held_out_seen": held_out_seen}
    folder.write_json("run.json", record | ({"training_faults": faults} if isinstance(faults, list) else {}))
    if held_out_seen:
        data = "all rows of this run's table, those held out included."
        print(f"Note: {checkpoint} was fitted to {data}", flush=True)
    elif trained_on is not None and run.problem.observations().fingerprint() != trained_on:
        data = f"other data than this run's ({trained_on[:12]}, here {fingerprint[:12]})."
        print(f"Note: {checkpoint} was fitted to {data}", flush=True)
    return surrogate


def _next_step(folder: RunFolder, problem: Problem, checkpoint: str, next_file: str = "") -> str:
    """The suggested next step: to run the experiment, for the user's own experiments, whose row is in
    `next_file`; to explore the model, for a problem file; else a command that decides with another method.
    """
    source = str(folder.read_yaml("config.yaml").get("path") or "")
    if problem.kind == "optimise" and not isinstance(problem, World):
        overrides = folder.read_json("run.json")["overrides"]
        table = (
            str(problem.card()["source"]) if source.endswith(YAML) else source or "the table of experiments"
        )
        command = typed_again("decide", [arg for arg in overrides if not arg.startswith("checkpoint=")])
        decided = folder.decisions()
        if decided and not any(line.get("alteration") for line in decided):
            return f"fill in the results that {table} waits for, and type {command}"
        hint = f" (it is the last row of {next_file}, to be filled in)" if next_file else ""
        return f"run the experiment, add it as a row to {table}{hint}, and type {command}"
    if source.endswith(YAML) and not isinstance(problem, World):
        report = f"open {folder.path / 'report.html'}"
        return join([*typed_as("explore"), str(folder.path)]) if has_app() else report
    return typed_again("decide", _other_method(folder, problem, checkpoint))


def _other_method(folder: RunFolder, problem: Problem, checkpoint: str) -> list[str]:
    """The arguments that decide on the same data by another method, for episodes by the same checkpoint."""
    run = folder.read_json("run.json")
    tried = run.get("choices", {}).get("decision")
    lasting = [
        arg
        for arg in run["overrides"]
        if not arg.startswith(("decision=", "choose", "search", "checkpoint=", "shard"))
    ]
    usual = {"rehearse": "care", "optimise": "ucb", "look_back": "greedy"}[problem.kind]
    method = next(name for name in (usual, *USUAL[problem.kind]) if name != tried)
    if problem.kind == "look_back":
        return [*lasting, f"decision={method}", f"checkpoint={checkpoint}"]
    return [*(arg for arg in lasting if not arg.startswith(("surrogate", "objective"))), f"decision={method}"]
