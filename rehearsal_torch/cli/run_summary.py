"""Console output at the start and end of a run: data card, report, run folder and next command.

A fit keeps the rows, their ranks and some features of blocks at the same time: measured at the peak of
`rehearsal decide`, 270 bytes for each cell of a table of cases (500,000 rows of 5 columns, the default
method), and 40 for each of the steps of sequences, which are kept in single precision.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rehearsal_torch.data.table import Table
from rehearsal_torch.methods.method_choice import Noted
from rehearsal_torch.methods.run_parts import Run
from rehearsal_torch.problems.problem import Problem
from rehearsal_torch.reporting.page.data_card import brief, whole
from rehearsal_torch.reporting.run_report import report
from rehearsal_torch.run_folder import RunFolder
from rehearsal_torch.user_error import UserError

PER_CELL = {"rehearse": 270, "look_back": 40}
_MEMINFO, _LIMIT, _USED = (
    Path(name) for name in ("/proc/meminfo", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")
)


def described(
    problem: Problem, folder: RunFolder, sweep: bool, config: Mapping[str, Any] | None = None
) -> str:
    """Prints the data card, whole with ``tables=true``, and the problem's notes, except in a sweep; writes
    the card to data.yaml, and the fingerprint and kind of the problem to run.json, for episodes with a task
    also the names of units and columns, the reward and the actions, and the parts that its problem filled
    in. Returns the fingerprint.
    """
    table, run = problem.observations(), folder.read_json("run.json")
    fingerprint, earlier = table.fingerprint(), run.get("data_fingerprint")
    if earlier is not None and table.fingerprint() != earlier:
        fault = (
            f"the run was started with other data ({earlier[:12]} there, {fingerprint[:12]} now), to which "
            "its results belong"
        )
        raise UserError(fault, str(folder.path), "Restore that data, or start a new run with another out=")
    waiting = _waiting_fingerprint(problem)
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
    if wording := problem.facts().wording:
        recorded |= {"words": dict(wording)}
        if config is not None:
            model = config["surrogate"]
            if problem.kind == "look_back":
                recorded["parts"] = {group: config[group] for group in ("surrogate", "objective")}
            actions = list(model.get("member", model).get("doses") or ())
            recorded |= {"reward": config["objective"].get("reward"), "actions": actions}
    folder.write_json("run.json", run | recorded)
    if not sweep:
        lines = whole(card) if asked(config, "tables") else brief(card)
        memory = memory_note(problem.kind, len(table), len(table.names))
        notes = [f"Note: {sentence}." for sentence in (*problem.facts().notes, *filter(None, [memory]))]
        print("\n".join(["Data", *(f"  {line}" for line in lines), *notes]), flush=True)
    return fingerprint


def _waiting_fingerprint(problem: Problem) -> str | None:
    """The fingerprint of waiting or failed trials, empty for none; None for other problems."""
    if problem.kind != "optimise":
        return None
    if (trials := problem.facts().waiting) is None:
        return ""
    return Table.observed(trials.task.settings, trials.settings("pending", "failed")).fingerprint()


def asked(config: Mapping[str, Any] | None, key: str) -> bool:
    """Whether a configuration has ``key=true``."""
    return config is not None and bool(config.get(key, False))


def closing(
    run: Run, folder: RunFolder, sweep: bool, following: str, choice: Noted | None, *, part: bool = False
) -> None:
    """Prints report, folder and next command; in a sweep, one line. A `part`, a shard, has no report."""
    if part:
        print(f"Done: {folder.path}{'' if sweep else ', whose report is written when the parts are merged'}")
        return
    # Notes before the fit are not repeated among the warnings.
    told_before = [*run.problem.facts().notes, *([] if choice is None else [choice.why])]
    text = report(folder.path, tables=asked(run.config, "tables"), told=told_before)
    print(
        f"Done: {folder.path}" if sweep else f"{text}\nRun folder: {folder.path}\nNext: {following}",
        flush=True,
    )


def free_memory() -> int | None:
    """The bytes that this process may still take; None where the system does not say."""
    amounts = []
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        amounts.append(1024 * int(lines["MemAvailable"].split()[0]))
    except (OSError, KeyError, ValueError):
        if "SC_AVPHYS_PAGES" in os.sysconf_names:
            amounts.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    # A container's limit is the word max where it has none.
    with suppress(OSError, ValueError):
        amounts.append(int(_LIMIT.read_text()) - int(_USED.read_text()))
    return min(amounts, default=None)


def memory_note(kind: str, rows: int, columns: int) -> str:
    """A sentence where fits to so many rows take more than half of the free memory; else empty."""
    needed, available = PER_CELL.get(kind, 0) * rows * columns, free_memory()
    if available is None or needed <= available / 2:
        return ""
    return (
        f"fits to {rows:,} rows of {columns} columns take about {needed / 1e9:.1f} GB, more than half of the "
        f"{available / 1e9:.1f} GB of memory that are free: decide by a sample of the rows, or close other "
        "programs"
    )
