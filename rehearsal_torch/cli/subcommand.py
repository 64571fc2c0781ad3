"""Commands with several verbs: their options, and the parsing of arguments.

A verb takes options as key=value. Parsing them imports nothing heavy, so that help and errors in the
arguments are shown at once.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rehearsal_torch.cli.errors import exit_code
from rehearsal_torch.cli.spelling import spoken
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
        summary: One sentence for the help.
        run: Runs it with the options, key to value, and returns the exit code.
        script: The script that it belongs to; if the script has the verb's name, the verb is not given on the
            command line.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    run: Callable[[Mapping[str, str]], int]
    script: str = "prepare"

    def main(self, arguments: Sequence[str] | None, interrupted: str) -> int:
        """Runs the command, and returns the exit code.

        Args:
            arguments: The arguments after the script's name; None for those of the process.
            interrupted: What is said after Ctrl-C.
        """
        typed = list(sys.argv[1:] if arguments is None else arguments)
        if any(text in HELP for text in typed):
            print(self.help())
            return 0
        return exit_code(lambda: self.run(self.read(typed)), interrupted)

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

    def read_with_paths(self, typed: Sequence[str], key: str) -> tuple[list[Path], dict[str, str]]:
        """Paths and options, for a verb that takes paths without a key, or under one.

        Args:
            typed: The arguments. What exists is a path, also with "=" in its name, as folders of sweeps have.
            key: The key of a path.

        Raises:
            UserError: for an error in the arguments.
        """
        keys, paths, options = {option.key for option in self.options}, list[Path](), list[str]()
        for text in typed:
            before = text.partition("=")[0]
            if before in keys or ("=" in text and before != key and not Path(text).exists()):
                options.append(text)
            elif text.startswith("-"):
                raise UserError("expected a run folder or key=value", text, f"See {spoken(self.name)} --help")
            else:
                paths.append(Path(text.removeprefix(f"{key}=")))
        return paths, self.read(options)

    def example(self) -> str:
        """An example command line."""
        typed = spoken(self.script) + (f" {self.name}" if self.name != self.script else "")
        return " ".join(
            [typed, *(f"{option.key}={option.key.upper()}" for option in self.options if option.required)]
        )

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
