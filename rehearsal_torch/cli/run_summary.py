"""Console output at the start and end of a run: data card, report, run folder and next command."""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.data.table import Table
from rehearsal_torch.methods.method_choice import Noted
from rehearsal_torch.methods.run_parts import Run
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.reporting.page.data_card import brief, whole
from rehearsal_torch.reporting.run_report import report
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError


def described(
    problem: Problem, folder: RunFolder, sweep: bool, config: Mapping[str, Any] | None = None
) -> str:
    """Prints the data card and the problem's notes, except in a sweep; writes the card to data.yaml, and
    records the data's fingerprint and the kind of problem. The card is printed in short, and whole if
    `tables` is set. For episodes with a task it also records what units and columns are called, and the
    reward and actions that the task brought (`Run.config`).
    """
    table, run = problem.observations(), folder.read_json("run.json")
    fingerprint, before = table.fingerprint(), run.get("data_fingerprint")
    if before is not None and table.fingerprint() != before:
        what = (
            f"the run was started with other data ({before[:12]} there, {fingerprint[:12]} now), to which "
            "its results belong"
        )
        raise UserError(what, str(folder.path), "Restore that data, or start a new run with another out=")
    waiting = _waiting(problem)
    if waiting != run.get("waiting", waiting):
        raise UserError(
            "the run was started while other rows waited for their result, or none, and its proposal was "
            "chosen beside these",
            str(folder.path),
            "Start a new run with another out=",
        )
    card = dict(problem.card())
    folder.write_yaml("data.yaml", card)
    recorded: dict[str, Any] = {"kind": problem.kind, "data_fingerprint": fingerprint}
    if waiting is not None:
        recorded["waiting"] = waiting
    if words := problem.facts().wording:
        recorded |= {"words": dict(words)}
        if config is not None:
            recorded |= {"reward": config["objective"].get("reward"), "actions": actions_of(config)}
    folder.write_json("run.json", run | recorded)
    if not sweep:
        lines = whole(card) if asked(config, "tables") else brief(card)
        notes = [f"Note: {sentence}." for sentence in problem.facts().notes]
        print("\n".join(["Data", *(f"  {line}" for line in lines), *notes]), flush=True)
    return fingerprint


def _waiting(problem: Problem) -> str | None:
    """The fingerprint of the settings that wait for their result or have failed, empty for none; None for
    other problems than trials.
    """
    if problem.kind != "optimise":
        return None
    if (log := problem.facts().waiting) is None:
        return ""
    return Table.observed(log.task.actions, log.settings("pending", "failed")).fingerprint()


def actions_of(config: Mapping[str, Any]) -> list[str]:
    """The columns of the actions of a model of transitions."""
    model = config["surrogate"]
    return list(model.get("member", model).get("doses") or ())


def asked(config: Mapping[str, Any] | None, key: str) -> bool:
    """Whether a configuration asks for something by ``key=true``."""
    return config is not None and bool(config.get(key, False))


def closing(
    run: Run, folder: RunFolder, sweep: bool, following: str, choice: Noted | None, *, part: bool = False
) -> None:
    """Writes the report, and prints it with folder and next command; in a sweep, prints one line. The report
    of a part, a shard, is that of the merged run.
    """
    if part:
        print(f"Done: {folder.path}{'' if sweep else ', whose report is written when the parts are merged'}")
        return
    # What was said before the fit is not repeated among the warnings.
    said = [*run.problem.facts().notes, *([] if choice is None else [choice.why])]
    text = report(folder.path, tables=asked(run.config, "tables"), told=said)
    print(
        f"Done: {folder.path}" if sweep else f"{text}\nRun folder: {folder.path}\nNext: {following}",
        flush=True,
    )
