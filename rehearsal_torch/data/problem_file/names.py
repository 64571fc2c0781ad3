"""Names that one part of a problem file has and another one, its graph or its table has not."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from rehearsal_torch.data.problem_file.findings import Findings, key
from rehearsal_torch.data.reading import ReadTable
from rehearsal_torch.files.schema import meant
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph


class Variable(Protocol):
    """What a problem file says of a variable, whatever its question."""

    @property
    def role(self) -> str:
        """The role."""


def role_faults(variables: Mapping[str, Variable], roles: Sequence[str], found: Findings) -> None:
    """Faults of roles that no variable has.

    Args:
        variables: What the file says of each variable; without any, their absence is told by the schema.
        roles: The roles that are needed.
        found: Collects faults.
    """
    for role in roles:
        if variables and not any(each.role == role for each in variables.values()):
            found.fault("variables", f"expected at least one of the role {role}; there is none")


def graph_faults(variables: Mapping[str, Variable], graph: RehearsalGraph, found: Findings) -> None:
    """Faults of names that only the graph or only the variables have; a variable of the role other that is in
    no edge is a warning.

    Args:
        variables: What the file says of each variable.
        found: Collects faults.
    """
    for name in graph.names:
        if name not in variables:
            found.fault("graph", f"{name!r} is not under variables; {meant(name, variables)}")
    unnamed = [each for each in graph.names if each not in variables]
    for name, about in variables.items():
        if name in graph.names:
            continue
        path = key("variables", name)
        if about.role == "other":
            found.warn(path, "is in no edge of the graph, and so is not used")
        else:
            found.fault(path, f"is in no edge of the graph; {meant(name, unnamed or graph.names)}")


def column_faults(names: Iterable[tuple[str, str]], rows: ReadTable, found: Findings) -> None:
    """Faults of columns that the table does not have.

    Args:
        names: The key of each name in the problem file, and the name.
        rows: The table.
        found: Collects faults.
    """
    columns = [str(name) for name in rows.frame.columns]
    for path, name in names:
        if name not in columns:
            found.fault(path, f"no column {name!r} in {rows.where}; {meant(name, columns)}")
