"""Tasks as people write them: a YAML file, or plain data, checked part by part so that all faults are told at once.

    graph:                        # every variable; a child's direct causes
      parents: {rate: [score, stability], repaid: [stability, rate]}
      bidirected: []              # sets of variables that move together for hidden reasons
    context: [score]              # seen before deciding
    box: {rate: [0, 1]}           # what may be set, and how far
    region: {repaid: [0.6, null]} # what is wanted; null leaves a side open
    candidates: [[rate]]          # optional: which variables may be set together; each by itself where left out

The region may also be faces, {names: [...], normals: [[...]], offsets: [...]}, for M y <= d.

Source: Du et al. (2026), Sec. 2.1 and Eq. (2), for what a task consists of.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml

from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.rehearsal import RehearsalGraph
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.spaces.polytope import Polytope

NEEDED = ("graph", "context", "box", "region")
PARTS = (*NEEDED, "candidates")
Made = TypeVar("Made")


class TaskError(ValueError):
    """A task that cannot be used; its message lists every fault."""


def written_task(task: str | Path | Mapping[str, Any] | None, columns: Sequence[str] | None = None) -> RehearsalTask:
    """Reads a task.

    Args:
        task: A YAML file, or its content.
        columns: The columns that a table offers; every variable must be one of them. None does not compare.

    Raises:
        TaskError: if there is no such file, it is no YAML, a part is missing or wrong, or a variable is no column; all faults are listed.
    """
    source, plain = task_content(task, PARTS)
    faults = [f"unknown part {key!r}: {meant(key, PARTS)}" for key in plain if key not in PARTS]
    faults += [f"no part {key!r}: a task needs {', '.join(NEEDED)}" for key in NEEDED if key not in plain]
    named, graph = _graph(plain["graph"], faults) if "graph" in plain else ([], None)
    if "box" in plain:
        _attempt("box", faults, lambda: Box.of(_bounds(plain["box"], faults, "box")))
    if "region" in plain:
        _attempt("region", faults, lambda: _region(plain["region"], faults))
    parts = {
        "context": _names(plain.get("context")),
        "box": _keys(plain.get("box")),
        "region": _region_names(plain.get("region")),
        "candidates": [name for names in _sets(plain.get("candidates")) for name in names],
    }
    strange: set[str] = set()
    if graph is not None:
        for part, names in parts.items():
            among, where = (parts["box"], "the box") if part == "candidates" and parts["box"] else (named, "the graph")
            faults += [f"{part}: {name!r} is not in {where}; {meant(name, among)}" for name in names if name not in among]
            strange |= set(names) - set(among)
    if columns is not None:
        wanted = dict.fromkeys([*named, *(name for names in parts.values() for name in names)])
        faults += [f"no column {name!r}; {meant(name, columns)}" for name in wanted if name not in columns and name not in strange]
    if faults:
        raise _listed(source, faults)
    whole = {**plain, "context": parts["context"], "candidates": _sets(plain.get("candidates"))}
    whole |= {part: {str(name): value for name, value in plain[part].items()} for part in ("box", "region")}
    if graph is not None:
        whole["graph"] = graph.to_plain()
    try:
        return RehearsalTask.of(whole)
    except ValueError as error:
        raise _listed(source, [str(error)]) from error


def meant(word: str, choices: Iterable[str]) -> str:
    """Which choice was probably meant, or what there is."""
    known = list(choices)
    near = get_close_matches(word, known, 1, 0.6)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known[:30])}"


def task_content(task: str | Path | Mapping[str, Any] | None, parts: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """What a task is called in messages, and its content: that of a YAML file, or what was given.

    Args:
        task: A YAML file, or its content.
        parts: What it should hold, for messages.

    Raises:
        TaskError: if none is named, there is no such file, or it is no YAML with parts.
    """
    if task is None:
        raise TaskError(f"no task is named: set dataset.task=task.yaml, a file with {', '.join(parts)} (see docs)")
    if isinstance(task, Mapping):
        return "the task", {str(key): value for key, value in task.items()}
    file = Path(task)
    if not file.is_file():
        raise TaskError(f"there is no task file {file}: check dataset.task=, which is relative to the folder the command is typed in")
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TaskError(f"{file} cannot be read as YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise TaskError(f"{file}: expected the parts {', '.join(parts)}; got {type(content).__name__}")
    return str(file), {str(key): value for key, value in content.items()}


def _graph(plain: Any, faults: list[str]) -> tuple[list[str], RehearsalGraph | None]:
    """The variables, as far as they are known, and the graph where it is one."""
    if isinstance(plain, Mapping) and "cliques" in plain:
        made = _attempt("graph", faults, lambda: RehearsalGraph(tuple(map(tuple, plain["cliques"])), tuple((one, two) for one, two in plain.get("edges", ()))))
        return list(made.names) if made else [], made
    if not isinstance(plain, Mapping) or not isinstance(plain.get("parents"), Mapping):
        faults.append("graph: expected {parents: {child: [causes]}, bidirected: [[...]]}")
        return [], None
    odd = [str(key) for key in plain if key not in ("parents", "bidirected")]
    faults += [f"graph: unknown part {key!r}; {meant(key, ('parents', 'bidirected'))}" for key in odd]
    parents = {str(child): _names(causes) for child, causes in plain["parents"].items()}
    joined = _sets(plain.get("bidirected"))
    named = list(dict.fromkeys([name for child, causes in parents.items() for name in (*causes, child)] + [name for clique in joined for name in clique]))
    return named, _attempt("graph", faults, lambda: RehearsalGraph.of(parents, joined))


def _region(plain: Any, faults: list[str]) -> Polytope | None:
    if isinstance(plain, Mapping) and "normals" in plain:
        return Polytope(tuple(_names(plain.get("names"))), plain["normals"], plain["offsets"])
    return Polytope.of(_bounds(plain, faults, "region"))


def _bounds(plain: Any, faults: list[str], part: str) -> dict[str, tuple[Any, Any]]:
    """Variable to (lower, upper); a fault for each that is none, whatever else the part lacks."""
    if not isinstance(plain, Mapping) or not plain:
        raise ValueError("expected {variable: [lower, upper]}")
    found, wrong = {}, []
    for name, pair in plain.items():
        ends = list(pair) if isinstance(pair, Sequence) and not isinstance(pair, str) else []
        try:
            lower, upper = (None if end is None and part == "region" else float(end) for end in ends)
        except (TypeError, ValueError):
            wrong.append(f"{part}: {name}: expected [lower, upper]{', null for an open side' if part == 'region' else ''}; got {pair!r}")
            continue
        if lower is not None and upper is not None and lower > upper:
            wrong.append(f"{part}: {name}: expected lower <= upper; got [{lower:g}, {upper:g}]: swap them")
            continue
        found[str(name)] = (lower, upper)
    faults += wrong
    if wrong and not found:
        raise _NotedError
    return found


class _NotedError(ValueError):
    """What is wrong has been noted already."""


def _attempt(part: str, faults: list[str], make: Callable[[], Made]) -> Made | None:
    try:
        return make()
    except _NotedError:
        return None
    except KeyError as error:
        faults.append(f"{part}: no {error.args[0]!r}")
    except (ValueError, TypeError) as error:
        faults.append(f"{part}: {error}")
    return None


def _names(plain: Any) -> list[str]:
    """A list of names; one by itself is a list of one."""
    if plain is None:
        return []
    return [str(plain)] if isinstance(plain, str) or not isinstance(plain, Sequence) else [str(name) for name in plain]


def _keys(plain: Any) -> list[str]:
    return [str(name) for name in plain] if isinstance(plain, Mapping) else []


def _region_names(plain: Any) -> list[str]:
    return _names(plain.get("names")) if isinstance(plain, Mapping) and "normals" in plain else _keys(plain)


def _sets(plain: Any) -> list[list[str]]:
    return [_names(names) for names in plain] if isinstance(plain, Sequence) and not isinstance(plain, str) else []


def _listed(source: str, faults: Sequence[str]) -> TaskError:
    count = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
    return TaskError(f"{source}: {count}, nothing was fitted\n" + "\n".join(f"- {fault}" for fault in faults))
