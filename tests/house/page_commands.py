"""The command lines that pages show, and whether what they ask for exists.

A line counts as a command where it stands in a block or a span of code and begins with ``python scripts/``,
``scripts/``, ``python benchmarks/``, ``rehearsal `` or ``make``; settings of the environment and
``.venv/bin/`` before it are left out. A verb of ``rehearsal`` is a script, with ``-`` for ``_``.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from hydra._internal.utils import get_args_parser

from rehearsal_torch.cli.command_words import with_asked
from rehearsal_torch.cli.configuration_keys import check
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.cli.resume import recorded
from rehearsal_torch.console_command import VERBS
from tests.places import ROOT

# The changelog tells of commands as they were.
_ALL = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
PAGES = [path for path in _ALL if path.stem != "CHANGELOG"]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHELL = ("", "bash", "sh", "shell", "console")
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_BEFORE = r"(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?"
_COMMAND = re.compile(_BEFORE + r"((?:python )?scripts/|python benchmarks/|rehearsal |make\b)")
# A word in capitals stands for whatever the reader puts there.
_PLACEHOLDER = re.compile(r"(?:^|=)[A-Z]{2,}$|\.\.\.$")


@dataclass(frozen=True)
class Command:
    """A command line of a page.

    Attributes:
        words: What is typed: "decide" or another script, "make" or "benchmarks", then its arguments.
        page: Where it stands first, relative to the repository.
    """

    words: tuple[str, ...]
    page: str

    @property
    def text(self) -> str:
        """What is typed, in one form for all ways to type it."""
        return shlex.join(self.words)

    @property
    def template(self) -> bool:
        """Whether the reader has to put something in the place of a word."""
        return any(_PLACEHOLDER.search(word) for word in self.words[1:])


def commands() -> list[Command]:
    """The different commands of all pages, in the order in which they stand there."""
    found: dict[tuple[str, ...], Command] = {}
    for page in PAGES:
        for line in lines(page.read_text(encoding="utf-8")):
            words = typed(line)
            if words:
                found.setdefault(words, Command(words, str(page.relative_to(ROOT))))
    return list(found.values())


def lines(text: str) -> Iterator[str]:
    """What stands in a page's code: the lines of blocks, continued ones joined, and spans."""
    for language, block in _BLOCK.findall(text):
        if language in _SHELL:
            yield from block.replace("\\\n", " ").splitlines()
    for span in _SPAN.findall(_BLOCK.sub("", text)):
        yield " ".join(span.split())


def typed(line: str) -> tuple[str, ...]:
    """The words of a command: a script's name, "benchmarks" or "make", then arguments.

    Returns:
        The words; empty where a line is no command.
    """
    begins = _COMMAND.match(line.strip())
    if begins is None:
        return ()
    first, *rest = shlex.split(line.strip()[begins.start(1) :], comments=True)
    if first.startswith("scripts/") and not rest:
        return ()  # a file that is spoken of
    if first == "make":
        return ("make", *rest)
    if first in ("rehearsal", "python"):
        first, *rest = rest or ["--help"]
    if first.startswith("benchmarks/"):
        return ("benchmarks", first.removeprefix("benchmarks/"), *rest)
    script = first.removeprefix("scripts/").removesuffix(".py")
    script = script if script.startswith("-") else script.replace("-", "_")
    verb = VERBS.get(script.replace("_", "-"))
    if verb is not None and verb.file and rest and re.match(r"[^-+~=\[]+$", rest[0]):
        rest = [*rest[1:], f"{verb.file}={rest[0]}"]
    return (script, *rest)


def examined(command: Command) -> None:
    """Whether the script, verb or target exists, and takes these arguments; nothing is run.

    Raises:
        AssertionError: if something does not exist.
        UserError: if a setting or a file does not exist, or has another form.
    """
    first, *rest = command.words
    if first == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        for word in rest:
            target = rf"^({word}|{word.partition('-')[0]}-%):"
            form = rf"^{word.partition('=')[0]} +\?=" if "=" in word else target
            assert re.search(form, makefile, re.MULTILINE), f"the Makefile has no {word}"
    elif first == "benchmarks":
        assert (ROOT / "benchmarks" / rest[0]).is_file(), f"there is no benchmarks/{rest[0]}"
    else:
        if first == "options":
            _overrides("train", rest)
            return
        if first.startswith("--") or command.template:
            return
        assert (ROOT / "scripts" / f"{first}.py").is_file(), f"there is no scripts/{first}.py"
        if rest != ["--help"]:
            _arguments(first, tuple(rest))


@cache
def _arguments(script: str, arguments: tuple[str, ...]) -> None:
    """Reads a script's arguments as the script does."""
    verb = VERBS[script.replace("_", "-")]
    if verb.verbs:
        assert arguments[0] in verb.verbs, (
            f"{script} has no verb {arguments[0]}; it has {', '.join(verb.verbs)}"
        )
        verb.verbs[arguments[0]].read(arguments[1:])
    elif verb.options is None:
        _overrides(script, arguments)
    elif verb.paths:
        verb.read_with_paths(arguments)
    else:
        verb.read(arguments)


def _overrides(script: str, arguments: Sequence[str]) -> None:
    """Composes the configuration as the command does, and looks at its numbers and files."""
    parsed = get_args_parser().parse_args(arguments)
    overrides, several = list(parsed.overrides), bool(parsed.multirun)
    taken_up = [text.partition("=")[2] for text in overrides if text.startswith("resume=")]
    if taken_up:
        rest = [text for text in overrides if not text.startswith("resume=")]
        overrides, several = recorded(taken_up[0], rest, script)
    else:
        overrides = with_asked(overrides)
    config, jobs = composed(overrides, several, parsed.config_dir)
    check(config, script, jobs, overrides)
