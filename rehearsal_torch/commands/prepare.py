"""Preparing data: each verb makes something that is shipped or read later from public files.

Exit codes: 0 all is well; 2 something typed must be mended; 130 interrupted.
"""

import sys
from collections.abc import Sequence

from rehearsal_torch.commands.prepare_bermuda import prepare_bermuda
from rehearsal_torch.commands.prepare_nhanes import prepare_nhanes
from rehearsal_torch.commands.user_error import UserError, did_you_mean, exit_code
from rehearsal_torch.commands.verb import Option, Verb

VERBS = (
    Verb(
        "nhanes",
        "Merges the CDC's NHANES 2011-2018 modules, fits the structural generator, compares it with the participants, and saves it.",
        (
            Option("source", "the folder with the modules, DEMO_G.XPT and so on", required=True),
            Option("out", "the folder for what is made", required=True),
            Option("download", "fetch the modules that the folder lacks", "false", ("true", "false")),
            Option("checksums", "refuse modules whose values are not those this was written for", "true", ("true", "false")),
            Option("site", "where modules are fetched from", "https://wwwn.cdc.gov/Nchs/Data/Nhanes/Public"),
        ),
        prepare_nhanes,
    ),
    Verb(
        "bermuda",
        "Fits the equations of the Bermuda reef to its measurements, and compares them with the shipped ones.",
        (Option("source", "the table of measurements, a CSV file", required=True), Option("out", "a file for the equations, as JSON")),
        prepare_bermuda,
    ),
)
_HELP = ("-h", "--help", "help")


def main(arguments: Sequence[str] | None = None, verbs: Sequence[Verb] = VERBS) -> int:
    """Runs the verb that was typed.

    Args:
        arguments: What was typed behind the script's name; None for what was typed.
        verbs: What can be done.

    Returns:
        The exit code.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    return exit_code(lambda: _run(typed, verbs), "Interrupted; type the same again.")


def _run(typed: Sequence[str], verbs: Sequence[Verb]) -> int:
    known = {verb.name: verb for verb in verbs}
    if not typed or typed[0] in _HELP:
        print(_overview(verbs))
        return 0 if typed else 2
    if typed[0] not in known:
        raise UserError("there is no such verb", typed[0], did_you_mean(typed[0], known) or f"The verbs are {', '.join(known)}")
    verb = known[typed[0]]
    if any(text in _HELP for text in typed[1:]):
        print(verb.help())
        return 0
    return verb.run(verb.read(typed[1:]))


def _overview(verbs: Sequence[Verb]) -> str:
    lines = ["Prepares data from public files.", "", "Usage: python scripts/prepare.py VERB key=value ...   (VERB --help tells its options)", ""]
    return "\n".join([*lines, *(f"  {verb.name:<10} {verb.summary}" for verb in verbs)])
