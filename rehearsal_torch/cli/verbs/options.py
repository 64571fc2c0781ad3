"""The verb options: lists every key of a configuration with value, type and description, group by group.

Descriptions are the comments in the YAML files of the configuration's defaults list, in the order in which
they are merged: the last file that sets a key and has a comment on it counts. If there is none, the
description is that in the docstring of the class that takes the value.

The comment of a key in a YAML file is the one at the end of its line, otherwise the comment lines directly
above it. The comment at the top of the file, before its first key, describes the file itself.
"""

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra import initialize_config_dir
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationToMissingValueError, OmegaConfBaseException

from rehearsal_torch.cli.command_words import PROGRAM, with_asked
from rehearsal_torch.cli.configuration_keys import refuse_unread
from rehearsal_torch.cli.errors import exit_code
from rehearsal_torch.cli.overrides import composed
from rehearsal_torch.methods.argument_descriptions import annotated, argument_docs
from rehearsal_torch.methods.hydra_config import CONF, plain_value

# A mandatory value, in OmegaConf.
MISSING = "???"
# bool before int, as True is an int.
_KINDS = (
    (bool, "true or false"),
    (int, "whole number"),
    (float, "number"),
    (str, "text"),
    (list, "list"),
    (dict, "mapping"),
)


@dataclass(frozen=True)
class Comments:
    """The comments of a YAML file: the one at the top, and those of dotted keys outside of lists."""

    header: str
    keys: dict[str, str]


@dataclass(frozen=True)
class Knob:
    """One option: its dotted key, its resolved value ("???" where it must be given), its reference as
    written, such as ``${seed}``, its type in words, and its description.
    """

    key: str
    value: Any
    reference: str
    kind: str
    meaning: str


@dataclass(frozen=True)
class Node:
    """A node of the configuration: its dotted key, the group's option if it is a group, the dotted name of
    the class that it builds, its description, and its options, without those of the nodes below it.
    """

    key: str
    option: str
    target: str
    meaning: str
    knobs: tuple[Knob, ...]


def nodes(overrides: Sequence[str], multirun: bool = False, extra: str | None = None) -> list[Node]:
    """All nodes of the configuration (of a sweep's first job); `extra` is the folder of ``--config-dir``."""
    config, _ = composed(overrides, multirun, extra, complete=False)
    choices = {key: str(value) for key, value in config.hydra.runtime.choices.items() if "/" not in key}
    if multirun:
        chosen = [
            f"{'+' if key == 'experiment' else ''}{key}={option}"
            for key, option in choices.items()
            if option != "None"
        ]
        others = [text for text in overrides if text.partition("=")[0].lstrip("+") not in choices]
        overrides = [*chosen, *others]
    files = list(_files(overrides, extra))
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    content: Any = OmegaConf.to_container(config, resolve=False)
    return list(_Composition(config, files, choices).below("", content, ""))


def _files(overrides: Sequence[str], extra: str | None) -> Iterator[tuple[str, str, Comments]]:
    """Name, package and comments of every YAML file of the configuration, in the order of merging."""
    folders = [CONF, *([Path(extra)] if extra else [])]
    search_path = [f"hydra.searchpath=['file://{Path(extra).resolve()}']"] if extra else []
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF.resolve()), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        defaults = loader.compute_defaults_list("config", [*overrides, *search_path], RunMode.RUN).defaults
    for default in defaults:
        name = str(default.config_path)
        paths = [path for folder in folders if (path := folder / f"{name}.yaml").is_file()]
        if paths and not name.startswith("hydra/"):
            yield name, default.package or "", comments(paths[0].read_text(encoding="utf-8"))


class _Composition:
    """A composed configuration, with the comments of its files."""

    def __init__(
        self, config: DictConfig, files: Sequence[tuple[str, str, Comments]], choices: Mapping[str, str]
    ) -> None:
        self.config, self.choices = config, choices
        self.headers = {name: texts.header for name, _, texts in files}
        self.texts = {
            f"{package}.{key}".lstrip("."): text
            for _, package, texts in files
            for key, text in texts.keys.items()
        }

    def below(self, key: str, content: Mapping[str, Any], inherited: str) -> Iterator[Node]:
        """The node at a key, then those inside it."""
        children: list[tuple[str, Mapping[str, Any]]] = []
        target = str(content.get("_target_", ""))
        knobs = tuple(self._knobs(key, content, target, "", inherited, children))
        option = self.choices.get(key, "")
        header = self.headers.get(f"{key}/{option}", "") if option else ""
        yield Node(key, option, target, header or self.texts.get(key, inherited), knobs)
        for name, child in children:
            argument = name.removeprefix(f"{key}.").partition(".")[0]
            yield from self.below(name, child, argument_docs(target).get(argument, "") if target else "")

    def _knobs(
        self,
        key: str,
        content: Mapping[str, Any],
        target: str,
        argument: str,
        inherited: str,
        children: list[tuple[str, Mapping[str, Any]]],
    ) -> Iterator[Knob]:
        for name, value in content.items():
            dotted = f"{key}.{name}" if key else str(name)
            if str(name).startswith("_"):
                continue
            if isinstance(value, Mapping) and ("_target_" in value or not key):
                children.append((dotted, value))
            elif isinstance(value, Mapping) and value:
                yield from self._knobs(
                    dotted,
                    value,
                    target,
                    argument or str(name),
                    self.texts.get(dotted, inherited if argument else ""),
                    children,
                )
            else:
                yield self._knob(dotted, value, target, argument or str(name), inherited if argument else "")

    def _knob(self, key: str, raw: Any, target: str, argument: str, inherited: str) -> Knob:
        value, reference = raw, ""
        if isinstance(raw, str) and "${" in raw:
            reference = raw
            try:
                value = OmegaConf.select(self.config, key)
            except InterpolationToMissingValueError:
                value = MISSING
            except OmegaConfBaseException:
                value = raw
            value = plain_value(value)
        meaning = (
            self.texts.get(key) or inherited or (argument_docs(target).get(argument, "") if target else "")
        )
        kind = next((words for type_, words in _KINDS if isinstance(value, type_)), "null")
        if value in (None, MISSING) and target:
            kind = annotated(target, argument) or kind
        return Knob(key, value, reference, kind, meaning)


def shown(knob: Knob) -> str:
    """A value as YAML, followed by its reference; ??? where it must be given."""
    text = MISSING
    if knob.value != MISSING:
        text = yaml.safe_dump(knob.value, default_flow_style=True, width=10**6, allow_unicode=True)
        text = text.removesuffix("\n").removesuffix("\n...")
    return f"{text} = {knob.reference}" if knob.reference else text


def comments(text: str) -> Comments:
    """The comments of the text of a YAML file."""
    lines = text.splitlines()
    top = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    header = " ".join(line.lstrip("# ") for line in lines[:top] if "@package" not in line)
    keys = {
        path: comment
        for path, key, value in _key_nodes(yaml.compose(text, Loader=yaml.SafeLoader), "")
        if (comment := _comment_behind(lines, key, value) or _comment_above(lines, key.start_mark.line, top))
    }
    return Comments(header, keys)


def _key_nodes(node: yaml.Node | None, path: str) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        key_path = f"{path}.{key.value}".lstrip(".")
        yield key_path, key, value
        yield from _key_nodes(value, key_path)


def _comment_behind(lines: list[str], key: yaml.Node, value: yaml.Node) -> str:
    """The comment at the end of a key's line: after its value, or the colon if the value starts later."""
    end = value.end_mark if value.start_mark.line == key.start_mark.line else key.end_mark
    remainder = lines[end.line][end.column :].lstrip(": ") if end.line < len(lines) else ""
    return remainder.lstrip("# ").strip() if remainder.startswith("#") else ""


def _comment_above(lines: list[str], line: int, top: int) -> str:
    """The comment lines directly above a line, below the file's own description."""
    first = line
    while first > top and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return " ".join(comment.strip().lstrip("# ") for comment in lines[first:line])


_WIDEST = 28
_HELP = f"""Lists every option of a configuration: key, value, type and what it means.

Usage: {PROGRAM} options [FILE] [+experiment=NAME] [group=option ...] [key=value ...] [--config-dir FOLDER]

  {PROGRAM} options +experiment=cbo                 the keys of this experiment
  {PROGRAM} options +experiment=cbo decision=ucb    the same with another method
  {PROGRAM} options problem.yaml                    the keys of the experiment that answers a problem file
  {PROGRAM} options +experiment=cbo | grep seed     one line for each option when it does not go to a terminal

A value behind which `= ${{seed}}` stands follows that key until it is set. What can be chosen for a group is
in `{PROGRAM} train --help`."""


def main(typed: Sequence[str]) -> int:
    """Prints the options; returns the exit code."""
    if any(argument in ("-h", "--help", "help") for argument in typed):
        print(_HELP)
        return 0
    return exit_code(lambda: _run(typed), "Interrupted.")


def _run(arguments: Sequence[str]) -> int:
    parsed = get_args_parser().parse_args(list(arguments))
    typed, multirun = with_asked(parsed.overrides), bool(parsed.multirun)
    if any(override.startswith("path=") for override in typed):
        config, jobs = composed(typed, multirun, parsed.config_dir, complete=False)
        refuse_unread(config, "options", jobs, typed)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(table(nodes(typed, multirun, parsed.config_dir), width))
    return 0


def table(found: Sequence[Node], width: int | None = None) -> str:
    """The options as aligned text, with a heading for each node."""
    knobs = [knob for node in found for knob in node.knobs]
    keys = max((len(knob.key) for knob in knobs), default=0)
    values = min(max((len(shown(knob)) for knob in knobs), default=0), _WIDEST)
    kinds = max((len(knob.kind) for knob in knobs), default=0)
    lines: list[str] = []
    for node in found:
        lines += ["", *_heading(node, width)] if lines else _heading(node, width)
        for knob in node.knobs:
            lines += _lines(knob, keys, values, kinds, width)
    return "\n".join(lines)


def _heading(node: Node, width: int | None) -> list[str]:
    name = f"{node.key}={node.option}" if node.option else node.key or "The run"
    meaning = [node.meaning] if width is None else textwrap.wrap(node.meaning, max(width, 40))
    return [f"{name}  {node.target}".rstrip(), *(line for line in meaning if line)]


def _lines(knob: Knob, keys: int, values: int, kinds: int, width: int | None) -> list[str]:
    front = f"  {knob.key:<{keys}}  {shown(knob):<{values}}  {knob.kind:<{kinds}}  "
    if width is None:
        return [f"{front}{knob.meaning}".rstrip()]
    available = width - (6 + keys + values + kinds + 2)
    if available >= 30:
        parts = textwrap.wrap(knob.meaning, available) or [""]
        return [f"{front}{parts[0]}".rstrip(), *(" " * (width - available) + part for part in parts[1:])]
    return [front.rstrip(), *(f"      {part}" for part in textwrap.wrap(knob.meaning, max(width - 6, 40)))]
