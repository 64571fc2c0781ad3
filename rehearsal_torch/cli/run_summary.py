"""Console output at the start and end of a run: data card, report, run folder and next command."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.run_folder import RunFolder

if TYPE_CHECKING:
    from rehearsal_torch.problems.problem import Problem


def described(
    problem: "Problem", folder: RunFolder, sweep: bool, config: Mapping[str, Any] | None = None
) -> str:
    """Prints the data card and the problem's notes, except in a sweep; writes the card to data.yaml, and
    records the data's fingerprint and the kind of problem. For episodes with a task it also records what
    units and columns are called, and the reward and actions that the task brought (`Run.config`).

    Returns:
        The fingerprint of the observations.

    Raises:
        UserError: if the run was started with other data.
    """
    table, run = problem.observations(), folder.read_json("run.json")
    fingerprint, before = table.fingerprint(), run.get("data_fingerprint")
    if before is not None and not table.has_fingerprint(before):
        what = (
            f"the run was started with other data ({before[:12]} there, {fingerprint[:12]} now), to which "
            "its results belong"
        )
        raise UserError(what, str(folder.path), "Restore that data, or start a new run with another out=")
    card = dict(problem.card())
    folder.write_yaml("data.yaml", card)
    recorded: dict[str, Any] = {"kind": problem.kind, "data_fingerprint": fingerprint}
    if words := problem.wording():
        recorded |= {"words": dict(words)}
        if config is not None:
            recorded |= {"reward": config["objective"].get("reward"), "actions": actions_of(config)}
    folder.write_json("run.json", run | recorded)
    if not sweep:
        notes = [f"Note: {sentence}." for sentence in problem.notes()]
        print("\n".join(["Data", *(f"  {line}" for line in lines(card)), *notes]), flush=True)
    return fingerprint


def actions_of(config: Mapping[str, Any]) -> list[str]:
    """The columns of the actions of a model of transitions."""
    model = config["surrogate"]
    return list(model.get("member", model).get("doses") or ())


def lines(card: Mapping[str, Any], width: int = 110) -> list[str]:
    """A card as lines: name, then value; a mapping of mappings as one line for each."""
    found = []
    for key, value in card.items():
        if isinstance(value, Mapping) and any(isinstance(item, Mapping) for item in value.values()):
            found += [f"{key}:", *(f"  {line}" for line in lines(value, width - 2))]
        else:
            found.append(f"{key}: {_short(value)[:width]}")
    return found


def closing(folder: RunFolder, sweep: bool, following: str) -> None:
    """Writes and prints the report, the folder and the next command; in a sweep, prints one line only."""
    from rehearsal_torch.reporting.run_report import report

    table = report(folder.path)
    print(
        f"Done: {folder.path}" if sweep else f"{table}\nRun folder: {folder.path}\nNext: {following}",
        flush=True,
    )


def written(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV; the first row's keys are the columns."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _short(value: Any) -> str:
    if isinstance(value, float):
        from rehearsal_torch.spaces.box import setting_text

        return setting_text(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_short(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_short(item) for item in value)
    return str(value)
