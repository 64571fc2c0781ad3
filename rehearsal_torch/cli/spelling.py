"""How this program was started, for messages that tell people what to type.

Every command can be typed in two ways: ``python scripts/train.py ...`` in a checkout, and ``rehearsal train
...`` wherever the package is installed. Both call the same function, and a run folder written by one is taken
up by the other.
"""

import re
import sys
from pathlib import Path

from rehearsal_torch.cli.installation import checkout

PROGRAM = "rehearsal"
# Backslashes that Hydra would take for escapes: those directly before a quote, the closing one included.
_ESCAPES = re.compile(r"(\\+)(?='|\Z)")


def typed_as(script: str) -> list[str]:
    """The words before the options that start a command, in the spelling in which this program was started.

    ``sys.argv[0]`` tells the spelling, in worker processes as well. Outside a checkout there are no scripts,
    so that the console command is named whatever was typed.

    Args:
        script: The command's name, which is that of its script: ``train``, ``cross_validate``.
    """
    if Path(sys.argv[0]).stem != PROGRAM and checkout() is not None:
        return ["python", f"scripts/{script}.py"]
    return [PROGRAM, script.replace("_", "-")]


def spoken(script: str) -> str:
    """`typed_as` as one text."""
    return " ".join(typed_as(script))


def quoted(value: str) -> str:
    """A value of an override in single quotes, which Hydra reads as it is, whatever characters it has.

    In quotes Hydra takes a backslash for an escape only where a quote follows, directly or after more
    backslashes; only those are doubled.

    Args:
        value: What is to be read.
    """
    return "'" + _ESCAPES.sub(r"\1\1", value).replace("'", "\\'") + "'"
