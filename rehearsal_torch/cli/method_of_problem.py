"""The run of a command line whose method is left to the rows, or named by a problem file.

The method is that of ``decision=``. If none is typed and the problem file names one (``method: care``), it
is that one. If it is ``auto``, the methods that apply are compared first (`methods.method_choice`); the run
is then that of the method taken. The choice is recorded in the run folder:

    method_choice.csv     one row per method: whether it applies and why not, its scores and values
    method_choice.json    what was taken, the sentences, and the configuration of the method that decides

A run that is resumed keeps its choice.
"""

from functools import partial
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
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError

TABLE, RECORD = "method_choice.csv", "method_choice.json"
_FORMS = {
    **{"chosen": "a string", "best": "a string", "sentences": "a list of strings"},
    **{"value": NUMBER, "bias": NUMBER, "rows": WHOLE},
}


def settled(
    config: DictConfig, folder: RunFolder, sweep: bool, workers: int = 1
) -> tuple[Run, str, Noted | None]:
    """The run whose method is known, after its data were described; the fingerprint of its observations; and
    what its decisions are to say of the choice, None if nothing was chosen.
    """
    problem: Problem | None = None
    if CHOOSE in config:
        seed_and_use_one_thread(int(config.seed))
        problem = problem_of(config)
        same_kind(problem, "rehearse")
    else:
        run = _built(config)
        named = wished(run.problem)
        words = folder.read_json("run.json")["overrides"]
        typed = next((text.partition("=")[2] for text in words if text.startswith("decision=")), None)
        if named is None or typed is not None:
            if named not in (None, typed) and not sweep:
                print(f"Note: decision= was typed, so that method: {named} does not count.", flush=True)
            _tell_costs(run, sweep)
            return run, described(run.problem, folder, sweep, run.config), None
        problem, config = run.problem, with_method(config, named)
    fingerprint = described(problem, folder, sweep)
    noted: Noted | None = None
    if CHOOSE in config:
        known = _choice(config, problem, folder, sweep, workers)
        config = with_method(config, known["chosen"], known.get("model"))
        noted = Noted(known["chosen"], known["sentences"][0])
    run = build(config, problem)
    _tell_costs(run, sweep)
    record = folder.read_json("run.json")
    name = wished(problem) if noted is None else noted.method
    folder.write_json("run.json", record | {"choices": record.get("choices", {}) | {"decision": name}})
    return run, fingerprint, noted


def _built(config: DictConfig) -> Run:
    """The run of a configuration; if it cannot be built because of the method that the problem file names,
    the file is told.
    """
    try:
        return build(config)
    except UserError as error:
        try:
            problem = problem_of(config)
        except UserError:
            raise error from None
        wished(problem)
        raise


def _tell_costs(run: Run, sweep: bool) -> None:
    """Says that costs of the problem are told and do not count, where it states no worth and the method does
    not weigh them as `micns` does.
    """
    named = run.problem.facts().unweighed
    if not named or sweep:
        return
    weights = run.problem.facts().costs
    if weights and dict(settings_of(run.objective).get("weights") or {}) == dict(weights):
        return
    objective = class_of(run.objective)
    cheapest = objective is not None and objective.__name__ == "ChanceCost"
    why = "other weights are in use" if cheapest else "the method looks for the largest probability"
    other = f"; or the cheapest alteration that suffices: {' '.join(weighed(weights))}" if weights else ""
    how = f"To weigh it, add the line worth: NUMBER, what a desired outcome is worth{other}"
    print(f"Note: the cost of {', '.join(named)} does not count here: {why}. {how}", flush=True)


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
    """The record of the choice that a run has made; empty if it has made none."""
    path = folder.path / RECORD
    if not path.exists():
        return {}
    return checked(folder.read_json(RECORD), str(path), _FORMS, ("chosen", "sentences"))


def _choice(
    config: DictConfig, problem: Problem, folder: RunFolder, sweep: bool, workers: int
) -> dict[str, Any]:
    """The record of the choice: that of the folder, or a new one."""
    if not (folder.path / RECORD).exists():
        choice = choose(config, problem, None if sweep else partial(print, flush=True), workers)
        record(choice, with_method(config, choice.chosen, choice.model), folder)
    known = recorded(folder)
    named = [known["chosen"], *([known["model"]] if known.get("model") is not None else [])]
    if not set(named) <= set(methods("rehearse")) or not known["sentences"]:
        what = f"method_choice.json names a method that there is not: {', '.join(map(repr, named))}"
        remedy = "Restore the file from a copy, or start again in another folder"
        raise UserError(what, str(folder.path), remedy)
    if not sweep:
        print("\n".join(known["sentences"]), flush=True)
    return known
