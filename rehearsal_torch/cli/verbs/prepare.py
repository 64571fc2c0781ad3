"""The verb prepare: builds data from public files (Bermuda), and writes an example of a table.

`prepare bermuda source=CSV [out=FILE]` refits Bermuda's structural equations, and prints the difference of
their coefficients from the shipped ones; with `out`, it writes them in the format of the shipped file.

`prepare machines out=FOLDER` writes simulated machines in maintenance as an example of a table of episodes:
machines.csv, machines.yaml with its task, and problem.yaml, the same task as a problem file.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from rehearsal_torch.cli.command_words import on_file
from rehearsal_torch.cli.errors import check_output, check_own_file
from rehearsal_torch.files.atomic_write import write_text
from rehearsal_torch.files.lock import locked
from rehearsal_torch.files.schema import plain_of
from rehearsal_torch.problems.cases.bermuda import figures, refit
from rehearsal_torch.problems.sequences.machine_maintenance import TASK, simulate
from rehearsal_torch.problems.sequences.sequence_schema import SequenceProblem, renamed
from rehearsal_torch.user_error import as_user_error


def bermuda(options: Mapping[str, str]) -> int:
    """Refits Bermuda's equations, compares them with the shipped ones, and writes them."""
    if "out" in options:
        check_own_file(Path(options["out"]), '{\n "source": "')
    with as_user_error("bermuda"):
        fitted = refit(options["source"])
    shipped = figures()
    differences = [
        abs(refitted - original)
        for label in fitted
        for refitted, original in zip(_leaves(fitted[label]), _leaves(shipped[label]), strict=True)
    ]
    print(
        f"{len(differences)} coefficients refitted; the largest difference from the shipped ones is "
        f"{max(differences):.2g}"
    )
    if "out" in options:
        write_text(options["out"], json.dumps({"source": shipped["source"], **fitted}, indent=1) + "\n")
        print(f"written to {options['out']}")
    return 0


def _leaves(tree: Any) -> Iterator[float]:
    """Every number in nested dictionaries and lists, in the order of sorted keys."""
    if isinstance(tree, Mapping):
        for key in sorted(tree):
            yield from _leaves(tree[key])
    elif isinstance(tree, list):
        for item in tree:
            yield from _leaves(item)
    else:
        yield float(tree)


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
