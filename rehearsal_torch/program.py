"""The console command: ``rehearsal VERB [FILE] key=value ...``.

Each verb runs the same code as its script, with the same grammar; a verb's modules are imported only when it
runs, so that the overview and a mistyped verb are answered at once. The first argument may be a file, short
for ``path=FILE`` (``data=FILE`` for init and learn-graph, ``problem=FILE`` for check); each verb takes all of
these.

Exit codes are those of the verbs: 0 success; 1 a job failed; 2 an error in the arguments; 128 + n ended by
signal n.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path

from rehearsal_torch.cli.choice.asked import EXPERIMENTS
from rehearsal_torch.cli.spelling import PROGRAM, quoted_file
from rehearsal_torch.cli.subcommand import run
from rehearsal_torch.problems.written.recognised import YAML, is_plain, problem_content
from rehearsal_torch.user_error import UserError, did_you_mean

# What verbs call their file: each takes all three.
FILES = ("path", "problem", "data")
_HELP = ("-h", "--help", "help")
# 128 + the number of SIGPIPE.
_PIPE = 141


@dataclass(frozen=True)
class Verb:
    """A verb of the command, as listed in the overview.

    Attributes:
        summary: What it does, one sentence.
        run: Runs it with the arguments after the verb, and returns the exit code.
        file: The key of the data file, if the verb reads one.
    """

    summary: str
    example: str
    run: Callable[[list[str]], int]
    file: str | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the verb given on the command line.

    Args:
        arguments: The arguments after ``rehearsal``; None for those of the process.
    """
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as head, has closed the pipe; nothing more can be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE
    return code


def _run(typed: list[str]) -> int:
    if not typed or typed[0] in _HELP:
        print(_overview())
        return 0
    if typed[0] == "--version":
        print(f"{PROGRAM} {import_module(__name__.partition('.')[0]).__version__}")
        return 0
    try:
        chosen_verb, given = _chosen(typed)
    except UserError as error:
        print(error, file=sys.stderr, flush=True)
        return 2
    return chosen_verb.run(given)


def _chosen(typed: Sequence[str]) -> tuple[Verb, list[str]]:
    """The verb, and its arguments."""
    verb, rest = typed[0], list(typed[1:])
    if verb not in VERBS:
        raise UserError("there is no such verb", f"{PROGRAM} {verb}", did_you_mean(verb, VERBS))
    chosen_verb = VERBS[verb]
    return chosen_verb, rest if chosen_verb.file is None else with_file(verb, rest, chosen_verb.file)


def with_file(verb: str, typed: Sequence[str], key: str) -> list[str]:
    """The arguments, with the data file turned into an override.

    Args:
        key: The key that the file is short for.

    Raises:
        UserError: for two files, a file beside its key, or a YAML file that is no problem file.
    """
    typed = [_under(key, text) for text in typed]
    if sum(text.startswith(f"{key}=") for text in typed) > 1:
        raise UserError("the file is given twice", f"{PROGRAM} {verb}", "Leave one of the two out")
    if not typed or not _bare(typed[0]):
        return list(typed)
    file, rest = typed[0], list(typed[1:])
    if rest and _bare(rest[0]):
        raise UserError(
            f"expected at most one file; got {file} and {rest[0]}",
            f"{PROGRAM} {verb}",
            "Everything else is typed as key=value",
        )
    if any(text.startswith(f"{key}=") for text in rest):
        raise UserError(
            f"{file} is short for {key}={file}, which is given as well",
            f"{PROGRAM} {verb}",
            "Leave one of the two out",
        )
    if Path(file).suffix.lower() in YAML and key == "path":
        _problem_file(verb, file, rest)
    return [f"{key}={quoted_file(file)}" if key == "path" else f"{key}={file}", *rest]


def _problem_file(verb: str, file: str, rest: Sequence[str]) -> None:
    """Refuses YAML files that are no problem files, where a table is expected."""
    named = [text.partition("=")[2] for text in rest if text.startswith("+experiment=")]
    # A name that is nearly one of them is answered where experiments are looked up, and a file that cannot be
    # read is told by its reader.
    if named and any(get_close_matches(each, EXPERIMENTS.values(), 1, 0.85) for each in named):
        return
    if not named and (problem_content(file) is not None or not is_plain(file)):
        return
    raise UserError(
        f"expected a data file, such as table.csv; {file} is a YAML file",
        f"{PROGRAM} {verb}",
        f"A problem file is decided by {PROGRAM} {verb} {file}, without +experiment=; name a task as "
        f"dataset.task={file}, a configuration of the project as +experiment=NAME, and a run folder as "
        "resume=FOLDER",
    )


def _under(key: str, text: str) -> str:
    """An argument, with the file under the verb's own key where another verb's was typed."""
    before, equals, file = text.partition("=")
    if not equals or before == key or before not in FILES:
        return text
    return f"{key}={quoted_file(file)}" if key == "path" else f"{key}={file}"


def _bare(text: str) -> bool:
    return "=" not in text and not text.startswith(("-", "+", "~"))


def _overview() -> str:
    lines = [
        "Learns from data, and decides what to do.",
        "",
        f"Usage: {PROGRAM} VERB [FILE] key=value ...   ({PROGRAM} VERB --help tells more; FILE is short for "
        "path=FILE)",
    ]
    for name, chosen_verb in VERBS.items():
        lines += [
            "",
            f"  {name:<15} {chosen_verb.summary}",
            f"  {'':<15} {PROGRAM} {name} {chosen_verb.example}",
        ]
    return "\n".join(lines)


def _options(typed: list[str]) -> int:
    code: int = import_module(f"{__package__}.cli.options").main(typed)
    return code


def _task(name: str) -> Callable[[list[str]], int]:
    """Runs a task of Hydra's."""

    def run(typed: list[str]) -> int:
        task = getattr(import_module(f"{__package__}.cli.tasks"), name)
        return import_module(f"{__package__}.cli.main").main(task, typed)

    return run


VERBS = {
    "train": Verb(
        "Fits a surrogate to data, saves it, and shows example decisions.",
        "+experiment=sepsis",
        _task("train"),
        "path",
    ),
    "decide": Verb(
        "Decides for every case: rows of a table, experiments, or patients.",
        "problem.yaml",
        _task("decide"),
        "path",
    ),
    "init": Verb(
        "Writes a first problem file from a table.",
        "table.csv out=problem.yaml",
        partial(run, "init"),
        "data",
    ),
    "check": Verb(
        "Checks a problem file, and says how to decide by it.",
        "problem.yaml",
        partial(run, "check"),
        "problem",
    ),
    "cross-validate": Verb(
        "Evaluates surrogates by the likelihood of held-out data.",
        "-m +experiment=lipschitz_grid",
        _task("cross_validate"),
        "path",
    ),
    "collect": Verb("Merges the shards of a sweep.", "runs/sepsis/FOLDER", partial(run, "collect")),
    "report": Verb(
        "Writes a page that can be handed on, of one run or of several.",
        "runs/auf/FOLDER",
        partial(run, "report"),
    ),
    "explore": Verb(
        "Serves a page on this machine, on which a fitted method is asked about cases and actions.",
        "runs/own_problem/FOLDER",
        partial(run, "explore"),
    ),
    "learn-graph": Verb(
        "Learns rehearsal graphs from a table.",
        "table.csv context=season outcomes=customers",
        partial(run, "learn_graph"),
        "data",
    ),
    "prepare": Verb("Prepares data from public files.", "machines out=FOLDER", partial(run, "prepare")),
    "options": Verb(
        "Lists every option of a configuration: key, value, type, description.",
        "+experiment=cbo decision=ucb",
        _options,
        "path",
    ),
}
