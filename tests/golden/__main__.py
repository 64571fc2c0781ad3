"""Golden folders from the command line.

python -m tests.golden record FOLDER [--checkout ROOT] [--only PATTERN] [--renamed FILE]
python -m tests.golden compare OLD NEW [--renamed FILE] [--tolerance 0]
"""

import argparse
import sys
from pathlib import Path

from tests.golden.compare import compare
from tests.golden.names import RENAMED, Names
from tests.golden.record import record
from tests.places import ROOT


def main() -> int:
    """Does what was typed; the exit code."""
    asked = _parser().parse_args()
    try:
        names = Names.read(asked.renamed)
        if asked.command == "record":
            return record(asked.folder, asked.checkout, asked.only, names)
        return compare(asked.old, asked.new, names, asked.tolerance)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run everything, and keep the numbers")
    recording.add_argument("folder", type=Path, help="where the numbers go")
    recording.add_argument(
        "--checkout",
        type=Path,
        default=ROOT,
        metavar="ROOT",
        help="whose scripts are run (default: this checkout)",
    )
    recording.add_argument(
        "--only",
        default="*",
        metavar="PATTERN",
        help="only runs with such names, as 'study.*' (default: all)",
    )
    comparing = commands.add_parser("compare", help="compare two folders; exit code 1 if they differ")
    comparing.add_argument("old", type=Path, help="the folder of the old code")
    comparing.add_argument("new", type=Path, help="the folder of the new code")
    comparing.add_argument("--tolerance", type=float, default=0.0, help="relative (default: 0, bit by bit)")
    for command in (recording, comparing):
        command.add_argument(
            "--renamed",
            type=Path,
            default=RENAMED,
            metavar="FILE",
            help="old names and new ones (default: renamed.yaml beside this)",
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
