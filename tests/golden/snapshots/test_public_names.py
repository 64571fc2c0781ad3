"""The public names with their parameters and defaults, and the JSON schema of problem files."""

import dataclasses
import inspect
import json
import re

import rehearsal_torch
from rehearsal_torch.problems.json_schema import problem_schema

# Objects say where in memory they lie, and functions in which module.
_ADDRESS = re.compile(r"<(?:function|class) '?([\w.]+)'?(?: at 0x\w+)?>|<([\w.]+) object at 0x\w+>")
_SHOWN = ("__call__", "__init__")


def parameters(function):
    """Parameters and defaults, without types."""
    signature = inspect.signature(function)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    said = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return _ADDRESS.sub(lambda found: (found.group(1) or found.group(2)).rpartition(".")[2], said)


def members(kind):
    """Name to line of what a class of the package and its bases in the package offer."""
    found = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("rehearsal_torch"):
            continue
        for name, value in vars(base).items():
            if name.startswith("_") and name not in _SHOWN[:1]:
                continue
            if isinstance(value, classmethod | staticmethod):
                found[name] = f"{name}{parameters(value.__func__)}"
            elif inspect.isfunction(value):
                found[name] = f"{name}{parameters(value)}"
            elif isinstance(value, property) or type(value).__name__ == "cached_property":
                found[name] = name
        if dataclasses.is_dataclass(base):
            found |= {each.name: each.name for each in dataclasses.fields(base) if each.name[0] != "_"}
    return found


def public():
    """A line for each public name, and below it one for each member of a class."""
    for name in sorted(rehearsal_torch.__all__):
        value = getattr(rehearsal_torch, name)
        yield f"{name}{parameters(value)}"
        if inspect.isclass(value):
            yield from (f"    {line}" for _, line in sorted(members(value).items()))


def test_names_parameters_and_defaults_are_what_they_were(file_regression):
    file_regression.check("\n".join(public()) + "\n")


def test_the_schema_of_problem_files_is_what_it_was(file_regression):
    said = json.dumps(problem_schema(), indent=1, ensure_ascii=False)
    file_regression.check(said + "\n", extension=".json", encoding="utf-8")
