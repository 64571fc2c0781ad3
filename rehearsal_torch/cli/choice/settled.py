"""The run of a command line whose method is left to the rows, or named by a problem file.

The method is that of ``decision=``. If none is typed and the problem file names one (``method: care``), it
is that one. If it is ``auto``, the methods that apply are compared first (`methods.choice`); the run
is then that of the method taken. The choice is recorded in the run folder:

    method_choice.csv     one row per method: whether it applies and why not, its scores and values
    method_choice.json    what was taken, the sentences, and the configuration of the method that decides

A run that is resumed keeps its choice.
"""

from functools import partial
from typing import Any

from omegaconf import DictConfig

from rehearsal_torch.cli.run_summary import described
from rehearsal_torch.cli.spelling import weighed
from rehearsal_torch.files.forms import NUMBER, WHOLE, checked
from rehearsal_torch.files.rows import as_csv
from rehearsal_torch.methods.build import problem_of, same_kind, seed_and_use_one_thread
from rehearsal_torch.methods.choice import Choice, Noted, choose, rows, sentences, wished, with_method
from rehearsal_torch.methods.conf import plain
from rehearsal_torch.methods.presets import CHOOSE, GROUPS, methods
from rehearsal_torch.methods.run import Run, build
from rehearsal_torch.objectives.objective import class_of, settings_of
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError

TABLE, RECORD = "method_choice.csv", "method_choice.json"
_FORMS = {"chosen": "a string", "best": "a string", "value": NUMBER, "bias": NUMBER, "rows": WHOLE}


def settled(
    config: DictConfig, folder: RunFolder, sweep: bool, workers: int = 1
) -> tuple[Run, str, Noted | None]:
    """The run whose method is known, after its data were described.

    Args:
        folder: The run folder, in which the choice is recorded.
        sweep: Whether the job is part of a sweep.
        workers: The number of processes that share the comparison of methods.

    Returns:
        The run, the fingerprint of its observations, and what its decisions are to say of the choice; None if
        nothing was chosen.

    Raises:
        UserError: if the parts do not fit each other, or nothing can be chosen.
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
    found: dict[str, Any] = {}
    if CHOOSE in config:
        found = _choice(config, problem, folder, sweep, workers)
        config = with_method(config, found["chosen"])
    run = build(config, problem)
    _tell_costs(run, sweep)
    now = folder.read_json("run.json")
    name = found.get("chosen") or wished(problem)
    folder.write_json("run.json", now | {"choices": now.get("choices", {}) | {"decision": name}})
    return run, fingerprint, Noted(found["chosen"], found["sentences"][0]) if found else None


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
    made = class_of(run.objective)
    cheapest = made is not None and made.__name__ == "ChanceCost"
    why = "other weights are in use" if cheapest else "the method looks for the largest probability"
    other = f"; or the cheapest alteration that suffices: {' '.join(weighed(weights))}" if weights else ""
    print(
        f"Note: the cost of {', '.join(named)} does not count here: {why}. To weigh it, add the line worth: "
        f"NUMBER, what a desired outcome is worth{other}",
        flush=True,
    )


def record(choice: Choice, config: DictConfig, folder: RunFolder) -> None:
    """Writes a choice into a run folder.

    Args:
        config: The configuration of the run, in which the chosen method decides.
    """
    folder.write(TABLE, as_csv(rows(choice), "nan"))
    one = choice.standing(choice.chosen)
    folder.write_json(
        RECORD,
        {
            "chosen": choice.chosen,
            "best": choice.best,
            "value": one.value,
            "behind_error": one.behind_error,
            "bias": choice.bias,
            "rows": choice.rows,
            "of": choice.of,
            "cases": choice.cases,
            "halves": choice.halves,
            "sentences": sentences(choice),
            "configuration": {name: plain(config)[name] for name in GROUPS},
        },
    )


def recorded(folder: RunFolder) -> dict[str, Any]:
    """The record of the choice that a run has made; empty if it has made none.

    Raises:
        PlainFileError: if it is damaged.
    """
    path = folder.path / RECORD
    if not path.exists():
        return {}
    forms = {**_FORMS, "sentences": "a list of strings"}
    return checked(folder.read_json(RECORD), str(path), forms, ("chosen", "sentences"))


def _choice(
    config: DictConfig, problem: Problem, folder: RunFolder, sweep: bool, workers: int
) -> dict[str, Any]:
    """The record of the choice: that of the folder, or a new one."""
    found = recorded(folder)
    if not found:
        told = None if sweep else partial(print, flush=True)
        choice = choose(config, problem, told, workers)
        record(choice, with_method(config, choice.chosen), folder)
        found = recorded(folder)
    if found["chosen"] not in methods("rehearse") or not found["sentences"]:
        raise UserError(
            f"method_choice.json names a method that there is not: {found['chosen']!r}",
            str(folder.path),
            "Restore the file from a copy, or start again in another folder",
        )
    if not sweep:
        print("\n".join(found["sentences"]), flush=True)
    return found
