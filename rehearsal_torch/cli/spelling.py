"""The way in which the program was started, for commands in messages.

Every command can be run in two ways: ``python scripts/train.py ...`` in a checkout, and ``rehearsal train
...`` with an installed package. Both call the same function, and a run folder of one can be resumed by the
other.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from shlex import join

from rehearsal_torch.files.installation import checkout

PROGRAM = "rehearsal"
# Backslashes that Hydra would take for escapes: those directly before a quote, the closing one included.
_PLAIN = re.compile(r"[A-Za-z_/][\w/-]*(\.[A-Za-z]\w*)+", re.ASCII)
_ESCAPES = re.compile(r"(\\+)(?='|\Z)")


def typed_as(script: str) -> list[str]:
    """The words that start a command, in the way in which this program was started.

    It is read from ``sys.argv[0]``, also in worker processes. Outside a checkout there are no scripts, so
    that the console command is always used.

    Args:
        script: The command's name, which is that of its script: ``train``, ``cross_validate``.
    """
    started = Path(sys.argv[0])
    if started.name == "__main__.py" and started.parent.name == __package__.partition(".")[0]:
        return ["python", "-m", started.parent.name, script.replace("_", "-")]
    if started.stem != PROGRAM and checkout() is not None:
        return ["python", f"scripts/{script}.py"]
    return [PROGRAM, script.replace("_", "-")]


def spoken(script: str) -> str:
    """`typed_as` as one string."""
    return " ".join(typed_as(script))


def on_file(script: str, file: str, key: str = "path") -> str:
    """A command on a file, as one types it: ``rehearsal decide problem.yaml``; a script is given the key.

    Args:
        key: The key that the file alone is short for.
    """
    words = typed_as(script)
    by_key = words[-1].endswith(".py") or "=" in file or file.startswith(("-", "+", "~"))
    if not by_key:
        return join([*words, file])
    return f"{join(words)} {key}={quoted_file(file)}"


def quoted_file(name: str) -> str:
    """A file's name as the value of an override: as it is if it is plain, else quoted."""
    return name if _PLAIN.fullmatch(name) else quoted(name)


def quoted(value: str) -> str:
    """A value of an override in single quotes, which Hydra reads as it is, whatever characters it has.

    In quotes Hydra takes a backslash for an escape only where a quote follows, directly or after more
    backslashes; only those are doubled.
    """
    return "'" + _ESCAPES.sub(r"\1\1", value).replace("'", "\\'") + "'"


def weighed(costs: Mapping[str, float]) -> list[str]:
    """The words that choose the cheapest alteration by costs of actions; none without costs.

    Args:
        costs: Action to the weight of its change.
    """
    if not costs:
        return []
    weights = ",".join(
        f"{name if name.isidentifier() else quoted_file(name)}:{weight:g}" for name, weight in costs.items()
    )
    return ["decision=micns", f'"+objective.weights={{{weights}}}"']
