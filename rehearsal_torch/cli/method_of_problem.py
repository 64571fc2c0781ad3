"""The method of a command line's run: that of ``decision=``, else the problem file's (``method: care``).

For ``auto`` the methods that apply are compared first (`methods.method_choice`), and one is chosen. The
choice, which a resumed run keeps, is recorded in the run folder:

    method_choice.csv     one row per method: whether it applies and why not, its scores and values
    method_choice.json    the chosen method, the sentences, and the configuration of the deciding method
"""

from contextlib import nullcontext
from typing import Any

from omegaconf import DictConfig

from rehearsal_torch.cli.command_words import weighed
from rehearsal_torch.cli.run_summary import described
from rehearsal_torch.files.bounded_yaml import NUMBER, WHOLE, checked
from rehearsal_torch.files.csv_rows import as_csv
from rehearsal_torch.methods.hydra_config import plain
from rehearsal_torch.methods.instantiate import problem_of, same_kind, seed_and_use_one_thread
from rehearsal_torch.methods.method_choice import Choice, Noted, choose, rows, sentences, wished, with_method
from rehearsal_torch.methods.presets import CHOOSE, GROUPS, methods
from rehearsal_torch.methods.run_parts import Run, build
from rehearsal_torch.objectives.objective import class_of, settings_of
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.progress import Progress
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError

TABLE, RECORD = "method_choice.csv", "method_choice.json"
_SCHEMA = {
    **{"chosen": "a string", "best": "a string", "sentences": "a list of strings"},
    **{"value": NUMBER, "bias": NUMBER, "rows": WHOLE},
}


def settled(
    config: DictConfig, folder: RunFolder, sweep: bool, workers: int = 1
) -> tuple[Run, str, Noted | None]:
    """The run with its method settled, the fingerprint of its data, and the note on a choice, if any."""
    problem: Problem | None = None
    if CHOOSE in config:
        seed_and_use_one_thread(int(config.seed))
        problem = problem_of(config)
        same_kind(problem, "rehearse")
    else:
        run = _build(config)
        method = wished(run.problem)
        overrides = folder.read_json("run.json")["overrides"]
        typed = next((text.partition("=")[2] for text in overrides if text.startswith("decision=")), None)
        if method is None or typed is not None:
            if method not in (None, typed) and not sweep:
                print(f"Note: decision= was typed, so that method: {method} does not count.", flush=True)
            _print_ignored_costs(run, sweep)
            return run, described(run.problem, folder, sweep, run.config), None
        problem, config = run.problem, with_method(config, method)
    fingerprint = described(problem, folder, sweep)
    choice_note: Noted | None = None
    if CHOOSE in config:
        saved = _choice_record(config, problem, folder, sweep, workers)
        config = with_method(config, saved["chosen"], saved.get("model"))
        choice_note = Noted(saved["chosen"], saved["sentences"][0])
    run = build(config, problem)
    _print_ignored_costs(run, sweep)
    record = folder.read_json("run.json")
    deciding = wished(problem) if choice_note is None else choice_note.method
    folder.write_json("run.json", record | {"choices": record.get("choices", {}) | {"decision": deciding}})
    return run, fingerprint, choice_note


def _build(config: DictConfig) -> Run:
    """The run of a configuration; an error that the problem file's method causes names the file's key."""
    try:
        return build(config)
    except UserError as error:
        try:
            problem = problem_of(config)
        except UserError:
            raise error from None
        wished(problem)
        raise


def _print_ignored_costs(run: Run, sweep: bool) -> None:
    """Prints that costs do not count, if the problem states no worth and the method does not weigh them."""
    actions = run.problem.facts().unweighed
    if not actions or sweep:
        return
    weights = run.problem.facts().costs
    if weights and dict(settings_of(run.objective).get("weights") or {}) == dict(weights):
        return
    objective = class_of(run.objective)
    cheapest = objective is not None and objective.__name__ == "ChanceCost"
    reason = "other weights are in use" if cheapest else "the method looks for the largest probability"
    option = f"; or the cheapest alteration that suffices: {' '.join(weighed(weights))}" if weights else ""
    remedy = f"To weigh it, add the line worth: NUMBER, what a desired outcome is worth{option}"
    print(f"Note: the cost of {', '.join(actions)} does not count here: {reason}. {remedy}", flush=True)


def record(choice: Choice, config: DictConfig, folder: RunFolder) -> None:
    """Writes a choice into a run folder."""
    folder.write(TABLE, as_csv(rows(choice), "nan"))
    standing = choice.standing(choice.chosen)
    facts = {
        **{name: getattr(choice, name) for name in ("chosen", "best", "model")},
        **{name: getattr(standing, name) for name in ("value", "behind_error")},
        **{name: getattr(choice, name) for name in ("bias", "rows", "of", "cases", "halves")},
        "sentences": sentences(choice),
        "configuration": {name: plain(config)[name] for name in GROUPS},
    }
    folder.write_json(RECORD, facts)


def recorded(folder: RunFolder) -> dict[str, Any]:
    """The record of the choice in a run folder; empty if there is none."""
    path = folder.path / RECORD
    if not path.exists():
        return {}
    return checked(folder.read_json(RECORD), str(path), _SCHEMA, ("chosen", "sentences"))


def _choice_record(
    config: DictConfig, problem: Problem, folder: RunFolder, sweep: bool, workers: int
) -> dict[str, Any]:
    """The folder's record of the choice, or a new one."""
    if not (folder.path / RECORD).exists():
        with nullcontext() if sweep else Progress("comparing the methods") as progress:
            choice = choose(config, problem, progress, workers)
        record(choice, with_method(config, choice.chosen, choice.model), folder)
    saved = recorded(folder)
    names = [saved["chosen"], *([saved["model"]] if saved.get("model") is not None else [])]
    if not set(names) <= set(methods("rehearse")) or not saved["sentences"]:
        fault = f"method_choice.json names a method that there is not: {', '.join(map(repr, names))}"
        remedy = "Restore the file from a copy, or start again in another folder"
        raise UserError(fault, str(folder.path), remedy)
    if not sweep:
        print("\n".join(saved["sentences"]), flush=True)
    return saved
