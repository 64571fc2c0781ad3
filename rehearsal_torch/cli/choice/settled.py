"""The run of a command line whose method is left to the rows, or named by a problem file.

The method is that of ``decision=``. If none is typed and the problem file names one (``method: care``), it
is that one. If it is ``auto``, the methods that apply are compared first (`cli.choice.choosing`); the run is
then that of the method taken.
"""

from functools import partial
from typing import Any

from omegaconf import DictConfig

from rehearsal_torch.cli.build import problem_of, same_kind, seed_and_use_one_thread
from rehearsal_torch.cli.choice.applicable import rehearsing
from rehearsal_torch.cli.choice.choosing import choose, record, recorded
from rehearsal_torch.cli.choice.preset import AUTO, CHOOSE, with_method
from rehearsal_torch.cli.errors import UserError, did_you_mean
from rehearsal_torch.cli.run import Run, build
from rehearsal_torch.cli.run_summary import described
from rehearsal_torch.method_choice.noted import Noted
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.run_folder import RunFolder


def settled(config: DictConfig, folder: RunFolder, sweep: bool) -> tuple[Run, str, Noted | None]:
    """The run whose method is known, after its data were described.

    Args:
        config: The whole configuration.
        folder: The run folder, in which the choice is recorded.
        sweep: Whether the job is part of a sweep.

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
        run = build(config)
        named = wished(run.problem)
        typed = any(text.startswith("decision=") for text in folder.read_json("run.json")["overrides"])
        if named is None or typed:
            if named is not None and not sweep:
                print(f"Note: decision= was typed, so that method: {named} does not count.", flush=True)
            return run, described(run.problem, folder, sweep, run.config), None
        problem, config = run.problem, with_method(config, named)
    fingerprint = described(problem, folder, sweep)
    found: dict[str, Any] = {}
    if CHOOSE in config:
        found = _choice(config, problem, folder, sweep)
        config = with_method(config, found["chosen"])
    run = build(config, problem)
    now = folder.read_json("run.json")
    name = found.get("chosen") or wished(problem)
    folder.write_json("run.json", now | {"choices": now.get("choices", {}) | {"decision": name}})
    return run, fingerprint, Noted(found["chosen"], found["sentences"][0]) if found else None


def wished(problem: Problem) -> str | None:
    """The method that a problem file names; None if it names none.

    Raises:
        UserError: if there is no such method for cases of a table.
    """
    found = problem.method_named()
    if found is None or found in (known := [AUTO, *rehearsing()]):
        return found
    raise UserError(
        f"there is no method {found!r} for cases of a table",
        "method",
        did_you_mean(found, known) or f"Choose from {', '.join(known)}",
    )


def _choice(config: DictConfig, problem: Problem, folder: RunFolder, sweep: bool) -> dict[str, Any]:
    """The record of the choice: that of the folder, or a new one."""
    found = recorded(folder)
    if not found:
        told = None if sweep else partial(print, flush=True)
        choice = choose(config, problem, told)
        record(choice, with_method(config, choice.chosen), folder)
        found = recorded(folder)
    if found["chosen"] not in rehearsing() or not found["sentences"]:
        raise UserError(
            f"method_choice.json names a method that there is not: {found['chosen']!r}",
            str(folder.path),
            "Restore the file from a copy, or start again in another folder",
        )
    if not sweep:
        print("\n".join(found["sentences"]), flush=True)
    return found
