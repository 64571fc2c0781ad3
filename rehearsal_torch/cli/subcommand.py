"""What a command of several verbs can do, and the reading of what was typed.

A verb takes options as key=value. Reading them imports nothing heavy, so that help and slips are answered at
once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rehearsal_torch.cli.errors import UserError, did_you_mean
from rehearsal_torch.cli.spelling import spoken


@dataclass(frozen=True)
class Option:
    """Something that may be typed as key=value.

    Attributes:
        key: Its name.
        meaning: What it says, for the help.
        default: The value when it is left out; None where it has none.
        choices: What it may be; empty for anything.
        required: Whether it must be given.
    """

    key: str
    meaning: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True)
class Verb:
    """One thing that a command does.

    Attributes:
        name: What is typed.
        summary: A sentence for the help.
        options: What may be typed behind it.
        run: Does it, given key to value, and returns the exit code.
        script: The script it is a verb of; a script that does one thing has its name, and the verb is not
            typed.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    run: Callable[[Mapping[str, str]], int]
    script: str = "prepare"

    def read(self, typed: Sequence[str]) -> dict[str, str]:
        """Key to value, of the options that were typed or have a default.

        Raises:
            UserError: for a slip in what was typed.
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

    def example(self) -> str:
        """A line that could be typed."""
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
