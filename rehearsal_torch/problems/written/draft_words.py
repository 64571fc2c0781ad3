"""Names and texts as a first draft of a problem file writes them, and columns guessed by their names."""

import re
from collections.abc import Iterable

import yaml

OUTCOMES = "outcome|target|result|response|label|progression|success|yield|score|y"
ACTIONS = "action|treatment|dose|dosage|drug|price|rate|budget|setting|temperature|intervention"
MARK = "# <- fill in"
_PLAIN = re.compile(r"[^\W\d][\w.]*")


def scalar(text: str) -> str:
    """A text as a YAML scalar in one line, also within braces."""
    return yaml.safe_dump([text], allow_unicode=True, width=10_000, default_flow_style=True).strip()[1:-1]


def value(text: str) -> str:
    """A text as the value of a key, alone in its line: in quotes only where YAML needs them."""
    return yaml.safe_dump({"a": text}, allow_unicode=True, width=10_000).removeprefix("a:").strip()


def node(name: str) -> str:
    """A name as dagitty's statements have it."""
    return name if _PLAIN.fullmatch(name) else f'"{name}"'


def term(name: str) -> str:
    """A name as inequalities have it."""
    if _PLAIN.fullmatch(name) and name not in ("and", "or"):
        return name
    return f'"{name}"' if "`" in name else f"`{name}`"


def level(text: str) -> str:
    """A level as inequalities have it."""
    return text if _PLAIN.fullmatch(text) and text not in ("and", "or") else f'"{text}"'


def has_word(name: str, words: str) -> bool:
    """Whether a name has one of some words, between signs, blanks or its ends.

    Args:
        name: The name of a column.
        words: Alternatives of a regular expression.
    """
    return re.search(rf"(?:\A|[\W_])(?:{words})(?:\Z|[\W_])", name, re.IGNORECASE) is not None


def writable(name: str) -> bool:
    """Whether a column can be a variable: a name of 1 to 200 letters in one line."""
    return bool(name.strip()) and len(name) <= 200 and name.isprintable() and not name.startswith("Unnamed: ")


def has_quotes(name: str) -> bool:
    """Whether a name has double quotes, with which arrows cannot name it."""
    return '"' in name


def commented(sentences: Iterable[str]) -> list[str]:
    """Sentences as comments."""
    return [f"# {each}." for each in sentences]
