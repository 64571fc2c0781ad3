"""The console command: ``rehearsal VERB [FILE] key=value ...``.

Hydra runs the verbs that read a configuration (`cli.main`); the others take options as key=value, and some
take run folders without a key. A file may come first, without a key: ``path=FILE``, ``data=FILE`` and
``problem=FILE`` mean the same.

A verb's module (`cli.verbs`) is imported once its arguments are parsed, so that the overview, help and slips
are answered at once.

Exit codes: 0 success; 1 a job failed; 2 an error in the arguments; 128 + n ended by signal n.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from textwrap import fill

from rehearsal_torch.cli.command_words import EXPERIMENTS, PROGRAM, quoted_file, spoken
from rehearsal_torch.cli.errors import exit_code
from rehearsal_torch.problems.drafts.draft_yaml import YAML, is_plain, problem_content
from rehearsal_torch.user_error import UserError, did_you_mean

# The keys under which verbs take their file.
FILE_KEYS = ("path", "problem", "data")
HELP = ("-h", "--help", "help")
# The exit code of a command whose reader is gone: 128 + the number of SIGPIPE.
BROKEN_PIPE = 141


@dataclass(frozen=True)
class Option:
    """An option key=value; `choices` is empty for any value, `whole` the range of a whole number."""

    key: str
    meaning: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    required: bool = False
    whole: tuple[int, int] | None = None

    def check(self, value: str) -> None:
        """Raises a UserError for a value that the option cannot have."""
        pair = f"{self.key}={value}"
        if value == "":
            raise UserError("has no value", pair, f"It is {self.meaning}")
        if self.choices and value not in self.choices:
            raise UserError(f"expected {' or '.join(self.choices)}", pair, did_you_mean(value, self.choices))
        if self.whole is not None:
            low, high = self.whole
            digits = value.isascii() and value.isdecimal() and len(value) <= len(str(high))
            if not digits or not low <= int(value) <= high:
                raise UserError(f"expected a whole number from {low} to {high}", pair)


@dataclass(frozen=True)
class Verb:
    """A verb of the command.

    Attributes:
        name: That of its script: on the command line, with hyphens.
        summary: One sentence.
        example: Example arguments, for the overview.
        file: The key of the data file, if it reads one.
        options: The options key=value; None where Hydra reads the arguments.
        work: Its function, ``MODULE.FUNCTION`` in `cli.verbs`: from the options, key to value, after the
            paths if the verb takes some, to the exit code.
        more: Further sentences of its help.
        paths: The run folders or files in the usage; empty if the verb takes none.
        further: What further keys begin with, which the verb looks up itself.
        interrupted: The message after Ctrl-C.
        verbs: Its own verbs, by name.
    """

    name: str
    summary: str
    example: str = ""
    file: str | None = None
    options: tuple[Option, ...] | None = None
    work: str = ""
    more: str = ""
    paths: str = ""
    further: tuple[str, ...] = ()
    interrupted: str = "Interrupted; run the same command again."
    verbs: Mapping[str, "Verb"] = field(default_factory=dict)

    def main(self, typed: Sequence[str]) -> int:
        """Runs the verb with the arguments after its name, and returns the exit code."""
        if self.verbs:
            return self._dispatch(typed)
        if self.options is None and not self.work:
            command = import_module("rehearsal_torch.cli.main")
            code: int = command.main(getattr(command, self.name), typed)
            return code
        if self.options is None:
            return self._call(typed)
        if any(arg in HELP for arg in typed) or (self.paths and not typed):
            print(self.help())
            return 0 if typed else 2
        return exit_code(
            lambda: self._call(*(self.read_with_paths(typed) if self.paths else (self.read(typed),))),
            self.interrupted,
        )

    def _dispatch(self, typed: Sequence[str]) -> int:
        if not typed or typed[0] in HELP:
            usage = f"Usage: {spoken(self.name)} VERB key=value ...   (VERB --help lists its options)"
            lines = [f"  {name:<10} {verb.summary}" for name, verb in self.verbs.items()]
            print("\n".join([self.summary, "", usage, "", *lines]))
            return 0 if typed else 2
        if typed[0] in self.verbs:
            return self.verbs[typed[0]].main(typed[1:])

        def refuse() -> int:
            remedy = did_you_mean(typed[0], self.verbs) or f"The verbs are {', '.join(self.verbs)}"
            raise UserError("there is no such verb", typed[0], remedy)

        return exit_code(refuse, "")

    def _call(self, *arguments: object) -> int:
        module, _, function = self.work.partition(".")
        code: int = getattr(import_module(f"rehearsal_torch.cli.verbs.{module}"), function)(*arguments)
        return code

    def read(self, typed: Sequence[str]) -> dict[str, str]:
        """Key to value, for the options that are given or have a default."""
        options = {option.key: option for option in self.options or ()}
        values: dict[str, str] = {}
        for arg in typed:
            key, equals, value = arg.partition("=")
            if not equals:
                others = f"The options of {self.name} are {', '.join(f'{name}=...' for name in options)}"
                raise UserError("expected key=value", arg, f"Write {key}=..." if key in options else others)
            known = key in options
            if not known and not key.startswith(self.further):
                keys = [*options, *(f"{start}NAME" for start in self.further)]
                raise UserError(f"{self.name} has no such option", key, did_you_mean(key, keys))
            if key in values:
                raise UserError("was given twice", key, "Leave one out")
            if known:
                options[key].check(value)
            values[key] = value
        missing = [option for option in options.values() if option.required and option.key not in values]
        if missing:
            required = " and ".join(f"{option.key}= ({option.meaning})" for option in missing)
            raise UserError(f"{self.name} needs {required}", "", f"For example: {self.usage()}")
        return {key: option.default for key, option in options.items() if option.default is not None} | values

    def read_with_paths(self, typed: Sequence[str]) -> tuple[list[Path], dict[str, str]]:
        """Paths, each as PATH or run=PATH, and options; a folder of a sweep may have "=" in its name."""
        keys, paths, options = {option.key for option in self.options or ()}, list[Path](), list[str]()
        noun = "file" if self.paths.startswith("FILE") else "run folder"
        for arg in typed:
            name, run = arg.partition("=")[0], not self.further and arg.startswith("run=")
            if name in keys or ("=" in arg and not run and not Path(arg).exists()):
                options.append(arg)
            elif arg.startswith("-"):
                raise UserError(f"expected a {noun} or key=value", arg, f"See {spoken(self.name)} --help")
            else:
                paths.append(Path(arg.removeprefix("run=") if run else arg))
        values = self.read(options)
        if not paths or (len(paths) > len(self.paths.split()) and "..." not in self.paths):
            fault = f"expected {'at least ' if '...' in self.paths else ''}one {noun}; got {len(paths)}"
            raise UserError(fault, "", f"For example: {spoken(self.name)} {self.example}")
        return paths, values

    def usage(self) -> str:
        """The shortest valid command line."""
        required = [f"{option.key}={option.key.upper()}" for option in self.options or () if option.required]
        script, *subverbs = self.name.split()
        return " ".join([spoken(script), *subverbs, *([self.paths] if self.paths else []), *required])

    def help(self) -> str:
        """Summary, usage and options."""
        description = fill(f"{self.summary} {self.more}", 100)
        lines = [description, "", f"Usage: {self.usage()} [key=value ...]", ""]
        for option in self.options or ():
            pair = f"{option.key}={'|'.join(option.choices) or '...'}"
            default = "" if option.default is None else f" (default: {option.default})"
            lines.append(f"  {pair:<24} {option.meaning}{' (required)' if option.required else default}")
        return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with the arguments after ``rehearsal``, by default those of this process."""
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as head, has closed the pipe: nothing can be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code


def run(script: str, arguments: Sequence[str] | None = None) -> int:
    """Runs a verb by the name of its script, with the arguments after it."""
    return main([script.replace("_", "-"), *(sys.argv[1:] if arguments is None else arguments)])


def _run(typed: list[str]) -> int:
    if not typed or typed[0] in HELP:
        print(_overview())
        return 0
    if typed[0] == "--version":
        print(f"{PROGRAM} {import_module(__name__.partition('.')[0]).__version__}")
        return 0
    name, rest = typed[0], typed[1:]
    try:
        if name not in VERBS:
            raise UserError("there is no such verb", f"{PROGRAM} {name}", did_you_mean(name, VERBS))
        verb = VERBS[name]
        rest = with_file(name, rest, verb.file) if verb.file else rest
    except UserError as error:
        print(error, file=sys.stderr, flush=True)
        return 2
    return verb.main(rest)


def with_file(verb: str, typed: Sequence[str], key: str) -> list[str]:
    """The arguments, with the data file turned into an override, and behind the sign of a sweep."""
    sweep = [arg for arg in typed if key == "path" and arg in ("-m", "--multirun")]
    if sweep:
        return ["-m", *with_file(verb, [arg for arg in typed if arg not in sweep], key)]
    typed = [arg if Path(arg).is_file() else _with_key(key, arg) for arg in typed]
    if sum(arg.startswith(f"{key}=") for arg in typed) > 1:
        raise UserError("the file is given twice", f"{PROGRAM} {verb}", "Leave one of the two out")
    if not typed or not _is_file(typed[0]):
        return list(typed)
    file, rest = typed[0], list(typed[1:])
    if rest and _is_file(rest[0]):
        fault = f"expected at most one file; got {file} and {rest[0]}"
        raise UserError(fault, f"{PROGRAM} {verb}", "Everything else is typed as key=value")
    if any(arg.startswith(f"{key}=") for arg in rest):
        fault = f"{file} is short for {key}={file}, which is given as well"
        raise UserError(fault, f"{PROGRAM} {verb}", "Leave one of the two out")
    if Path(file).suffix.lower() in YAML and key == "path":
        _refuse_other_yaml(verb, file, rest)
    return [f"{key}={quoted_file(file)}" if key == "path" else f"{key}={file}", *rest]


def _refuse_other_yaml(verb: str, file: str, rest: Sequence[str]) -> None:
    """Raises a UserError for a YAML file that is no problem file, where a table is expected."""
    experiments = [override.partition("=")[2] for override in rest if override.startswith("+experiment=")]
    # Misspelt experiments and unreadable files are reported where they are looked up and read.
    if experiments and any(get_close_matches(name, EXPERIMENTS.values(), 1, 0.85) for name in experiments):
        return
    if not experiments and (problem_content(file) is not None or not is_plain(file)):
        return
    raise UserError(
        f"expected a data file, such as table.csv; {file} is a YAML file",
        f"{PROGRAM} {verb}",
        f"A problem file is decided by {PROGRAM} {verb} {file}, without +experiment=; name a task as "
        f"dataset.task={file}, a configuration of the project as +experiment=NAME, and a run folder as "
        "resume=FOLDER",
    )


def _with_key(key: str, arg: str) -> str:
    """The argument, with the key of a file replaced by the verb's own."""
    typed_key, equals, file = arg.partition("=")
    if not equals or typed_key == key or typed_key not in FILE_KEYS:
        return arg
    return f"{key}={quoted_file(file)}" if key == "path" else f"{key}={file}"


def _is_file(arg: str) -> bool:
    """Whether an argument is a file, by its form, or because it exists, such as a=b/problem.yaml."""
    return ("=" not in arg and not arg.startswith(("-", "+", "~"))) or Path(arg).is_file()


def _overview() -> str:
    usage = f"({PROGRAM} VERB --help tells more; FILE is short for path=FILE)"
    lines = [
        "Learns from data, and decides what to do.",
        "",
        f"Usage: {PROGRAM} VERB [FILE] key=value ...   {usage}",
    ]
    for name, verb in VERBS.items():
        lines += ["", f"  {name:<15} {verb.summary}", f"  {'':<15} {PROGRAM} {name} {verb.example}"]
    return "\n".join(lines)


_YES_NO, _COUNT = ("true", "false"), (0, 10**9)
_METHOD = Option("method", "the method that proposes; by default that of the problem file, or excbo")
_CAMPAIGN = "FILE is a problem file that asks for trials, or a file of trials."
_CONTEXT = "context.NAME=VALUE says in which context."
_TABLE = Option("data", "the table: .csv, .tsv, .xlsx, .parquet, ..., with a header row", required=True)
_VERBS = (
    Verb(
        "train",
        "Fits a surrogate to data, saves it, and shows example decisions.",
        "+experiment=sepsis",
        "path",
    ),
    Verb(
        "decide", "Decides for every case: rows of a table, experiments, or patients.", "problem.yaml", "path"
    ),
    Verb(
        "init",
        "Writes a first problem file from a table.",
        "table.csv out=problem.yaml",
        "data",
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
            Option("outcome", "the column that should come out as desired"),
            Option("action", "the columns that may be set: action=[dose, rate] or action=dose,rate"),
            Option("unit", "for a sequence: the column that says whose row it is"),
            Option("time", "for a sequence: the column that says when"),
            Option("force", "overwrites the file", "false", _YES_NO),
        ),
        "init.init",
        "What is not typed is guessed where names tell it, else asked for at a terminal, else marked.",
        interrupted="Interrupted; nothing was written.",
    ),
    Verb(
        "check",
        "Checks a problem file, and says how to decide by it.",
        "problem.yaml",
        "problem",
        (
            Option("problem", "the problem file; it may be typed first, without problem="),
            Option("schema", "writes the JSON schema of problem files to this file, for editors"),
            Option("graph", "writes the graph as it was read to this file: .dagitty, .graphml or .yaml"),
            Option("force", "overwrites the file of schema= or graph=", "false", _YES_NO),
        ),
        "check.check",
        "Data, variables and what is asked for are checked, with all faults and warnings at once.",
        interrupted="Interrupted.",
    ),
    Verb(
        "cross_validate",
        "Evaluates surrogates by the likelihood of held-out data.",
        "-m +experiment=lipschitz_grid",
        "path",
    ),
    Verb(
        "collect",
        "Merges the shards of a sweep.",
        "runs/sepsis/FOLDER",
        options=(Option("trusted", "modules of classes of your own that the curves need: trusted=[my_lab]"),),
        work="collect.collect",
        more="It was one over shard=range(N). The curves of claims.csv need the checkpoint and the data.",
        paths="FOLDER [FOLDER ...]",
    ),
    Verb(
        "report",
        "Writes a page that can be handed on, of one run or of several.",
        "runs/auf/FOLDER",
        options=(
            Option("out", "a file, to which a page that compares the runs is written"),
            Option("rows", "whether the recorded rows of the cases are shown as well", "false", _YES_NO),
            Option("figures", "whether figures are drawn again from the records", "false", _YES_NO),
            Option("cases", "how many cases are shown one by one", "100", whole=(1, 10_000)),
        ),
        work="report.report",
        more="It is report.html in the run folder: answers, pictures, what would overturn them, assumptions, "
        "data, warnings and provenance, in one file. With several runs and out=FILE, one that compares them "
        "is written as well.",
        paths="RUN [RUN ...]",
    ),
    Verb(
        "explore",
        "Serves a page on this machine, on which a fitted method is asked about cases and actions.",
        "runs/own_problem/FOLDER",
        options=(
            Option("port", "the port; 0 takes a free one", "0", whole=(0, 65535)),
            Option("host", "the loopback address to listen on", "127.0.0.1"),
            Option("method", "for a file of trials: the method that proposes", "excbo"),
            Option("open", "whether a browser is opened", "false", _YES_NO),
        ),
        work="explore.explore",
        more="It may be asked about episodes, too, and a file of trials is continued. RUN is a run of "
        "rehearsal decide, a model that was saved, or the file of rt.CausalOptimiser. Needs pip install "
        "'rehearsal-torch[app]'.",
        paths="RUN",
        interrupted="Interrupted.",
    ),
    Verb(
        "suggest",
        "Proposes the next experiments of a campaign.",
        "problem.yaml count=3 fixed.dose=2",
        options=(Option("count", "how many", "1", whole=(1, 1000)), _METHOD),
        work="trials.suggest",
        more=f"{_CAMPAIGN} fixed.ACTION=VALUE holds an action, {_CONTEXT}",
        paths="FILE",
        further=("fixed.", "context."),
    ),
    Verb(
        "tell",
        "Records results of a campaign.",
        "problem.yaml problem.next.csv",
        options=(
            Option("trial", "the number of a trial, which may have a result already; else its settings"),
            Option("state", "what became of it", None, ("completed", "failed", "stopped", "abandoned")),
            Option("reason", "why it failed, was stopped or abandoned"),
            Option("rest", "of running trials, the share of the cost to come: whether it pays is said"),
        ),
        work="trials.tell",
        more=f"{_CAMPAIGN} RESULTS is a table of results, by number or by settings, or else one is typed: "
        "tell problem.yaml trial=7 temperature=40 yield=1.2",
        paths="FILE [RESULTS]",
        further=("",),
    ),
    Verb(
        "recommend",
        "Prints the settings to keep of a campaign, with their expected reward.",
        "problem.yaml",
        options=(_METHOD,),
        work="trials.recommend",
        more=f"{_CAMPAIGN} fixed.ACTION=VALUE holds an action, {_CONTEXT}",
        paths="FILE",
        further=("fixed.", "context."),
    ),
    Verb(
        "status",
        "Prints the trials of a campaign, its recommendations, and whether to stop.",
        "problem.yaml",
        options=(
            _METHOD,
            Option("worth", "the gain in the reward that is worth more experiments; 2 % of its range so far"),
            Option("figure", "a file for a picture: rewards as predicted by other trials, or the front"),
        ),
        work="trials.status",
        more=f"{_CAMPAIGN} {_CONTEXT}",
        paths="FILE",
        further=("context.",),
    ),
    Verb(
        "learn_graph",
        "Learns rehearsal graphs from a table.",
        "table.csv context=season outcomes=customers",
        "data",
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
            Option("resamples", "the number of bootstrap resamples; 0 for none", "100", whole=_COUNT),
            Option(
                "weights",
                "the weights of the learnt graphs: equal (Eq. 7), or by frequency",
                "equal",
                ("equal", "frequency"),
            ),
            Option("bidirected", "include graphs with bidirected edges", "true", _YES_NO),
            Option("max_graphs", "the maximum number of graphs per table", "1000", whole=(1, 10**9)),
            Option("seed", "the seed of the resampling", "0", whole=_COUNT),
            Option("out", "the output folder; default: a new one in runs/learn_graph"),
        ),
        "learn_graph.learn_graph",
        "These are the equivalence class, and bootstrap probabilities of graphs and edges.",
        interrupted="Interrupted; nothing was written.",
    ),
    Verb(
        "prepare",
        "Writes an example of a table.",
        "machines out=FOLDER",
        verbs={
            "machines": Verb(
                "prepare machines",
                "Writes simulated machines in maintenance as an example of a table of episodes, with its "
                "task.",
                options=(
                    Option("out", "the output folder", required=True),
                    Option("machines", "number of machines", "600", whole=(1, 10**9)),
                    Option("seed", "seed of the machines", "0", whole=_COUNT),
                ),
                work="prepare.machines",
            )
        },
    ),
    Verb(
        "options",
        "Lists every option of a configuration: key, value, type, description.",
        "+experiment=cbo decision=ucb",
        "path",
        work="options.main",
    ),
)
VERBS = {verb.name.replace("_", "-"): verb for verb in _VERBS}
