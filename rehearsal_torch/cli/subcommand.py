"""The verbs that Hydra does not run: their options, and the parsing of arguments.

A verb takes options as key=value, and some take run folders without a key. The module that does its work
(`cli.verbs`) is imported once the arguments are parsed, so that help and errors in them are shown at once.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from rehearsal_torch.cli.errors import exit_code
from rehearsal_torch.cli.spelling import spoken
from rehearsal_torch.problems.written.recognised import YAML
from rehearsal_torch.user_error import UserError, did_you_mean

HELP = ("-h", "--help", "help")


@dataclass(frozen=True)
class Option:
    """An option, given as key=value.

    Attributes:
        meaning: Its description in the help.
        default: Its default value; None if there is none.
        choices: The allowed values; empty for any value.
    """

    key: str
    meaning: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True)
class Verb:
    """A verb of a command.

    Attributes:
        name: Its name on the command line.
        summary: What it does, for the help.
        options: What may be typed as key=value.
        work: The function that does it, ``MODULE.FUNCTION`` in `cli.verbs`: from the options, key to value,
            after the paths if the verb takes some, to the exit code.
        script: The script that it belongs to; empty if it is a script of its own.
        paths: The run folders in the usage; empty if the verb takes none.
        interrupted: What is said after Ctrl-C.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    work: str
    script: str = ""
    paths: str = ""
    interrupted: str = "Interrupted; run the same command again."

    def main(self, typed: Sequence[str]) -> int:
        """Runs the verb with the arguments after its name, and returns the exit code."""
        if any(text in HELP for text in typed) or (self.paths and not typed):
            print(self.help())
            return 0 if typed else 2
        return exit_code(lambda: self._run(typed), self.interrupted)

    def _run(self, typed: Sequence[str]) -> int:
        given = self.read_with_paths(typed) if self.paths else (self.read(typed),)
        module, _, function = self.work.partition(".")
        code: int = getattr(import_module(f"rehearsal_torch.cli.verbs.{module}"), function)(*given)
        return code

    def read(self, typed: Sequence[str]) -> dict[str, str]:
        """Key to value, for the options that are given or have a default.

        Raises:
            UserError: for an error in the arguments.
        """
        known = {option.key: option for option in self.options}
        given: dict[str, str] = {}
        for text in typed:
            key, equals, value = text.partition("=")
            if not equals:
                remedy = (
                    f"Write {key}=..."
                    if key in known
                    else f"The options of {self.name} are {', '.join(f'{each}=...' for each in known)}"
                )
                raise UserError("expected key=value", text, remedy)
            if key not in known:
                raise UserError(f"{self.name} has no such option", key, did_you_mean(key, known))
            if key in given:
                raise UserError("was given twice", key, "Leave one out")
            if value == "":
                raise UserError("has no value", f"{key}=", f"It is {known[key].meaning}")
            if known[key].choices and value not in known[key].choices:
                raise UserError(
                    f"expected {' or '.join(known[key].choices)}",
                    text,
                    did_you_mean(value, known[key].choices),
                )
            given[key] = value
        missing = [option for option in self.options if option.required and option.key not in given]
        if missing:
            wanted = " and ".join(f"{option.key}= ({option.meaning})" for option in missing)
            raise UserError(f"{self.name} needs {wanted}", "", f"For example: {self.example()}")
        return {option.key: option.default for option in self.options if option.default is not None} | given

    def read_with_paths(self, typed: Sequence[str]) -> tuple[list[Path], dict[str, str]]:
        """Paths, each as PATH or run=PATH, and options. What exists is a path, also with "=" in its name, as
        folders of sweeps have.

        Raises:
            UserError: for an error in the arguments.
        """
        keys, paths, options = {option.key for option in self.options}, list[Path](), list[str]()
        for text in typed:
            before = text.partition("=")[0]
            if before in keys or ("=" in text and before != "run" and not Path(text).exists()):
                options.append(text)
            elif text.startswith("-"):
                raise UserError("expected a run folder or key=value", text, f"See {spoken(self.name)} --help")
            else:
                paths.append(Path(text.removeprefix("run=")))
        return paths, self.read(options)

    def example(self) -> str:
        """An example command line."""
        name = f"{spoken(self.script)} {self.name}" if self.script else spoken(self.name)
        required = [f"{option.key}={option.key.upper()}" for option in self.options if option.required]
        return " ".join([name, *([self.paths] if self.paths else []), *required])

    def help(self) -> str:
        """Summary, example and options."""
        lines = [self.summary, "", f"Usage: {self.example()} [key=value ...]", ""]
        for option in self.options:
            shown = f"{option.key}={'|'.join(option.choices) or '...'}"
            rest = (
                " (required)"
                if option.required
                else ""
                if option.default is None
                else f" (default: {option.default})"
            )
            lines.append(f"  {shown:<24} {option.meaning}{rest}")
        return "\n".join(lines)


def run(verb: str, arguments: Sequence[str] | None = None) -> int:
    """Runs a verb of `VERBS`, or of `PREPARE`, whose own name comes first.

    Args:
        arguments: The arguments after the verb; None for those of the process.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    if verb != "prepare":
        bare = verb == "check" and typed and "=" not in typed[0] and typed[0].lower().endswith(YAML)
        return VERBS[verb].main([f"problem={typed[0]}", *typed[1:]] if bare else typed)
    if not typed or typed[0] in HELP:
        print(_overview())
        return 0 if typed else 2
    if typed[0] in PREPARE:
        return PREPARE[typed[0]].main(typed[1:])
    return exit_code(lambda: _refuse(typed[0]), "")


def _refuse(verb: str) -> int:
    remedy = did_you_mean(verb, PREPARE) or f"The verbs are {', '.join(PREPARE)}"
    raise UserError("there is no such verb", verb, remedy)


def _overview() -> str:
    lines = [
        "Prepares data from public files, or an example of a table.",
        "",
        f"Usage: {spoken('prepare')} VERB key=value ...   (VERB --help lists its options)",
        "",
    ]
    return "\n".join([*lines, *(f"  {name:<10} {verb.summary}" for name, verb in PREPARE.items())])


_YES_NO = ("true", "false")
_TABLE = Option("data", "the table: .csv, .tsv, .xlsx, .parquet, ..., with a header row", required=True)
VERBS = {
    "init": Verb(
        "init",
        "Writes a first problem file from a table: guesses kinds and roles, and marks what is to be "
        "filled in.",
        (
            _TABLE,
            Option("out", "the problem file", "problem.yaml"),
            Option(
                "question",
                "cases (which alteration in each), sequence (which actions step by step), trials (which "
                "experiment next); auto tells a table of episodes by its columns of units and time",
                "auto",
                ("auto", "cases", "sequence", "trials"),
            ),
            Option("force", "overwrites the file", "false", _YES_NO),
        ),
        "init.init",
        interrupted="Interrupted; nothing was written.",
    ),
    "check": Verb(
        "check",
        "Checks a problem file: data, variables and what is asked for, with all faults and warnings at once.",
        (
            Option("problem", "the problem file; it may be typed first, without problem="),
            Option("schema", "writes the JSON schema of problem files to this file, for editors"),
            Option("force", "overwrites the file of schema=", "false", _YES_NO),
        ),
        "check.check",
        interrupted="Interrupted.",
    ),
    "collect": Verb(
        "collect",
        "Merges the shards of a sweep over shard=range(N).\n\nThe curves of claims.csv need the checkpoint "
        "and the data.",
        (Option("trusted", "modules of classes of your own that the curves need: trusted=[my_lab]"),),
        "collect.collect",
        paths="FOLDER [FOLDER ...]",
    ),
    "report": Verb(
        "report",
        "Writes report.html into run folders: answers, pictures, what would overturn them, assumptions,\n"
        "data, warnings and provenance, in one file that can be handed on. With several runs and out=FILE,\n"
        "also one page that compares them.",
        (
            Option("out", "a file, to which a page that compares the runs is written"),
            Option("rows", "whether the recorded rows of the cases are shown as well", "false", _YES_NO),
            Option("figures", "whether figures are drawn again from the records", "false", _YES_NO),
            Option("cases", "how many cases are shown one by one", "20"),
        ),
        "report.report",
        paths="RUN [RUN ...]",
    ),
    "explore": Verb(
        "explore",
        "Serves a page on this machine, on which the fitted method of a run is asked about cases,\n"
        "episodes and actions, or a file of trials is continued. RUN is a run of rehearsal decide, a model\n"
        "that was saved, or the file of rt.CausalOptimiser. Needs pip install 'rehearsal-torch[app]'.",
        (
            Option("port", "the port; 0 takes a free one", "0"),
            Option("host", "the loopback address to listen on", "127.0.0.1"),
            Option("method", "for a file of trials: the method that proposes", "excbo"),
            Option("open", "whether a browser is opened", "false", _YES_NO),
        ),
        "explore.explore",
        paths="RUN",
        interrupted="Interrupted.",
    ),
    "learn_graph": Verb(
        "learn_graph",
        "Learns rehearsal graphs from a table: the equivalence class, and bootstrap probabilities of graphs "
        "and edges.",
        (
            _TABLE,
            Option("columns", "the variables, separated by commas; default: all columns"),
            Option("context", "variables before all others (X)"),
            Option("outcomes", "variables after all others (Y)"),
            Option("alterable", "variables that may be altered, for the drawing"),
            Option("background", "a YAML file with any of tiers, forbidden and required"),
            Option(
                "test", "the test of conditional independence", "fisherz", ("fisherz", "chisq", "gsq", "kci")
            ),
            Option("level", "the significance level of the test", "0.05"),
            Option("resamples", "the number of bootstrap resamples; 0 for none", "100"),
            Option(
                "weights",
                "the weights of the learnt graphs: equal (Eq. 7), or by frequency",
                "equal",
                ("equal", "frequency"),
            ),
            Option("bidirected", "include graphs with bidirected edges", "true", _YES_NO),
            Option("max_graphs", "the maximum number of graphs per table", "1000"),
            Option("seed", "the seed of the resampling", "0"),
            Option("out", "the output folder; default: a new one in runs/learn_graph"),
        ),
        "learn_graph.learn_graph",
        interrupted="Interrupted; nothing was written.",
    ),
}
PREPARE = {
    "bermuda": Verb(
        "bermuda",
        "Fits the equations of the Bermuda reef to its measurements, and compares them with the shipped "
        "ones.",
        (
            Option("source", "the table of measurements, a CSV file", required=True),
            Option("out", "a file for the equations, as JSON"),
        ),
        "prepare.bermuda",
        "prepare",
    ),
    "machines": Verb(
        "machines",
        "Writes simulated machines in maintenance as an example of a table of episodes, with its task.",
        (
            Option("out", "the output folder", required=True),
            Option("machines", "number of machines", "600"),
            Option("seed", "seed of the machines", "0"),
        ),
        "prepare.machines",
        "prepare",
    ),
}
