"""The verb prepare: writes an example of a table.

`prepare machines out=FOLDER` writes simulated machines in maintenance as an example of a table of episodes:
machines.csv, machines.yaml with its task, and problem.yaml, the same task as a problem file.
"""

from collections.abc import Mapping
from pathlib import Path

import yaml

from rehearsal_torch.cli.command_words import on_file
from rehearsal_torch.cli.errors import check_output
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.files.lock import locked
from rehearsal_torch.files.schema import plain_of
from rehearsal_torch.problems.sequences.machine_maintenance import TASK, simulate
from rehearsal_torch.problems.sequences.sequence_schema import SequenceProblem, renamed
from rehearsal_torch.user_error import as_user_error

_TABLE, _TASK, _PROBLEM = "machines.csv", "machines.yaml", "problem.yaml"
_FIRST = "# The task of machines.csv, simulated machines in maintenance.\n"


def machines(options: Mapping[str, str]) -> int:
    """Writes simulated machines as a table of episodes, with its task and as a problem file."""
    out = Path(options["out"])
    check_output(out, (_TABLE, _TASK, _PROBLEM), _TASK, _FIRST)
    fleet = simulate(int(options["machines"]), int(options["seed"]))
    with as_user_error(f"out={out}"), locked(out):
        write_text(out / _TABLE, fleet.frame().to_csv(index=False, lineterminator="\n"))
        write_text(out / _TASK, _FIRST + yaml.safe_dump(plain_of(TASK), sort_keys=False))
        task = renamed(plain_of(TASK))[0] | {"data": _TABLE}
        parts = {part: task[part] for part in SequenceProblem.model_fields if part in task}
        problem = {"question": "sequence", **parts}
        write_text(out / _PROBLEM, yaml.safe_dump(problem, sort_keys=False))
    print(
        f"{options['machines']} machines in {out / _TABLE}, what is asked of them in {out / _PROBLEM} (and "
        f"as a task of dataset=episodes in {out / _TASK}). Then type\n"
        f"  {on_file('check', str(out / _PROBLEM), 'problem')}\n"
        f"  {on_file('decide', str(out / _PROBLEM))}"
    )
    return 0
