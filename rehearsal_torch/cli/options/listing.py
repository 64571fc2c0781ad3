"""The verb that lists all options of a configuration: ``rehearsal options +experiment=cbo decision=ucb``.

It prints every key of the composed configuration with value, type and description, group by group.

Exit codes: 0 success; 2 an error in the arguments.
"""

import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from hydra._internal.utils import get_args_parser

from rehearsal_torch.cli.choice.asked import with_asked
from rehearsal_torch.cli.choice.unread_file import refuse_unread
from rehearsal_torch.cli.errors import UserError, exit_code
from rehearsal_torch.cli.installation import conf_folder
from rehearsal_torch.cli.options.knobs import Knob, Node, nodes, shown
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.spelling import PROGRAM

_WIDEST = 28
_HELP = f"""Lists every option of a configuration: key, value, type and what it means.

Usage: {PROGRAM} options [FILE] [+experiment=NAME] [group=option ...] [key=value ...] [--config-dir FOLDER]

  {PROGRAM} options +experiment=cbo                 the keys of this experiment
  {PROGRAM} options +experiment=cbo decision=ucb    the same with another method
  {PROGRAM} options problem.yaml                    the keys of the experiment that answers a problem file
  {PROGRAM} options +experiment=cbo | grep seed     one line for each option when it does not go to a terminal

A value behind which `= ${{seed}}` stands follows that key until it is set. What can be chosen for a group is
in `{PROGRAM} train --help`."""


def main(arguments: Sequence[str] | None = None, conf: Path | None = None) -> int:
    """Prints the options.

    Args:
        arguments: The arguments after the verb; None for those of the process.
        conf: The folder with config.yaml; None for the package's.

    Returns:
        The exit code.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    if any(text in ("-h", "--help", "help") for text in typed):
        print(_HELP)
        return 0
    return exit_code(lambda: _run(typed, conf_folder() if conf is None else conf), "Interrupted.")


def _run(typed: list[str], conf: Path) -> int:
    parsed = get_args_parser().parse_args(typed)
    if parsed.config_dir and not Path(parsed.config_dir).is_dir():
        raise UserError(
            "there is no such folder", f"--config-dir {parsed.config_dir}", "Give a folder like conf"
        )
    typed, multirun = with_asked(parsed.overrides), bool(parsed.multirun)
    if any(text.startswith("path=") for text in typed):
        config, jobs = composed(conf, typed, multirun, parsed.config_dir, complete=False)
        refuse_unread(config, "options", jobs, typed)
    found = nodes(conf, typed, multirun, parsed.config_dir)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(table(found, width))
    return 0


def table(found: Sequence[Node], width: int | None = None) -> str:
    """The options as aligned text, with a heading for each node.

    Args:
        found: The nodes of the configuration.
        width: The column at which descriptions are wrapped; None prints one line per option.
    """
    knobs = [knob for node in found for knob in node.knobs]
    keys = max((len(knob.key) for knob in knobs), default=0)
    values = min(max((len(shown(knob)) for knob in knobs), default=0), _WIDEST)
    kinds = max((len(knob.kind) for knob in knobs), default=0)
    lines: list[str] = []
    for node in found:
        lines += ["", *_heading(node, width)] if lines else _heading(node, width)
        for knob in node.knobs:
            lines += _lines(knob, keys, values, kinds, width)
    return "\n".join(lines)


def _heading(node: Node, width: int | None) -> list[str]:
    name = f"{node.key}={node.option}" if node.option else node.key or "The run"
    meaning = [node.meaning] if width is None else textwrap.wrap(node.meaning, max(width, 40))
    return [f"{name}  {node.target}".rstrip(), *(line for line in meaning if line)]


def _lines(knob: Knob, keys: int, values: int, kinds: int, width: int | None) -> list[str]:
    front = f"  {knob.key:<{keys}}  {shown(knob):<{values}}  {knob.kind:<{kinds}}  "
    if width is None:
        return [f"{front}{knob.meaning}".rstrip()]
    room = width - (6 + keys + values + kinds + 2)
    if room >= 30:
        parts = textwrap.wrap(knob.meaning, room) or [""]
        return [f"{front}{parts[0]}".rstrip(), *(" " * (width - room) + part for part in parts[1:])]
    return [front.rstrip(), *(f"      {part}" for part in textwrap.wrap(knob.meaning, max(width - 6, 40)))]
