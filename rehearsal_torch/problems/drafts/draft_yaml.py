"""Problem files as YAML: how they are recognised, by a part that only they have, and the lines of drafts."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import yaml

from rehearsal_torch.files.bounded_yaml import PlainFileError, read_yaml

YAML = (".yaml", ".yml")
MARK, MANY_ARROWS, MANY_NAMES = "# <- fill in", 30, 8
_PARTS = {"question", "data", "variables", "desired"}
_PLAIN = re.compile(r"[^\W\d][\w.]*")


def problem_content(path: str | Path) -> Mapping[str, Any] | None:
    """The content of a problem file; None if it is something else, or cannot be read."""
    try:
        content = read_yaml(path)
    except PlainFileError:
        return None
    return content if isinstance(content, Mapping) and _PARTS & set(content) else None


def is_plain(path: str | Path) -> bool:
    """Whether a file can be read as YAML, and has something in it."""
    try:
        return read_yaml(path) is not None
    except PlainFileError:
        return False


def scalar(text: str) -> str:
    """A text as a YAML scalar in one line, also within braces; empty if it is."""
    return (
        text
        and yaml.safe_dump([text], allow_unicode=True, width=10_000, default_flow_style=True).strip()[1:-1]
    )


def value(text: str) -> str:
    """A text as the value of a key, alone in its line: in quotes only where YAML needs them."""
    return yaml.safe_dump({"a": text}, allow_unicode=True, width=10_000).removeprefix("a:").strip()


def node(text: str) -> str:
    """A name as dagitty's statements have it, and a level as inequalities do."""
    return text if _PLAIN.fullmatch(text) and text not in ("and", "or") else f'"{text}"'


def term(name: str) -> str:
    """A name as inequalities have it."""
    return node(name) if node(name) == name or "`" in name else f"`{name}`"


def variable(name: str, note: str, role: str, **settings: str) -> str:
    """The line of a variable, with a note as a comment; without empty settings."""
    settings = {key: setting for key, setting in settings.items() if setting}
    mapping = ", ".join(f"{key}: {setting}" for key, setting in {"role": role, **settings}.items())
    return f"  {scalar(name)}: {f'{{{mapping}}}' if settings else role}{f'  # {note}' if note else ''}"


def flow(texts: Sequence[str]) -> str:
    """Texts as a list in one line."""
    return f"[{', '.join(map(scalar, texts))}]"


def omitted(reasons: Mapping[str, str]) -> list[str]:
    """The lines of columns that are left out, with the reason of each: one line for each reason."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        shown = scalar(name) if name.isprintable() else repr(name)[:40]
        names_by_reason.setdefault(reason, []).append(shown)
    lines = list[str]()
    for reason, names in names_by_reason.items():
        more = f" and {len(names) - MANY_NAMES} more" if len(names) > MANY_NAMES else ""
        lines.append(f"  # {', '.join(names[:MANY_NAMES])}{more}: left out: {reason}")
    return lines


def arrows(*edges: tuple[Sequence[str], Sequence[str]]) -> list[str]:
    """Arrows from causes to effects as comments: one for each pair, or, of many causes, for four at once."""
    lines = list[str]()
    for causes, effects in edges:
        cause_nodes, effect_nodes = list(map(node, causes)), list(map(node, effects))
        pairs = [(cause, effect) for cause in cause_nodes for effect in effect_nodes]
        if len(pairs) > MANY_ARROWS:
            groups = (" ".join(cause_nodes[start : start + 4]) for start in range(0, len(cause_nodes), 4))
            pairs = [(f"{{{cause}}}", f"{{{' '.join(effect_nodes)}}}") for cause in groups]
        lines += [f"  # - {scalar(f'{cause} -> {effect}')}" for cause, effect in pairs]
    return lines or ["  # - cause -> effect"]


def filled(template: str, **parts: str | Sequence[str]) -> str:
    """The text of a template; a part alone in its line may have several lines, or none."""
    lines = list[str]()
    for line in template.splitlines():
        part = parts.get(line[1:]) if line.startswith("$") else [Template(line).substitute(parts)]
        lines += [part] if isinstance(part, str) and part else part or ()
    return "\n".join(lines)
