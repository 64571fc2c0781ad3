"""Outcomes of classes: which of them the desired region names, and what it then is as faces.

    region: status in {well, mild} and cost <= 4
    codings: {status: {classes: [well, mild, ill], desired: [well, mild]}}

An outcome of classes is to the methods whether its class is desired, 0 or 1, so that its classes need no
order, and the chance that status is well or mild is that of its column being 1. What else depends on the
class itself cannot be learnt from that column: such an outcome has no children in the graph.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rehearsal_torch.data.codings.coding import Coding, either
from rehearsal_torch.files.schema import Fault
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.inequalities import InequalityError, desired_classes, worded_inequalities


def with_desired(region: Any, codings: Mapping[str, Coding]) -> dict[str, Coding]:
    """The codings with the classes of outcomes that a region desires; as they are where it is no text, or
    cannot be read.
    """
    try:
        found = desired_classes(region, levels_of(codings), unordered_of(codings)) if _texts(region) else {}
    except InequalityError:
        return dict(codings)
    made = {name: replace(codings[name], reference=None, desired=classes) for name, classes in found.items()}
    return {**codings, **made}


def region_in_codes(written: Any, codings: Mapping[str, Coding], faults: list[Fault]) -> Any:
    """Inequalities with texts as faces, `{names, normals, offsets}`; None with a fault, and as they are if
    they are no texts.
    """
    if isinstance(written, Mapping):
        names = written.get("names", written)
        for name in names if isinstance(names, Mapping | Sequence) else ():
            coding = codings.get(name) if isinstance(name, str) else None
            if coding is not None and coding.reference is not None:
                faults.append(
                    Fault(
                        "region",
                        f"{name} has classes, which have no order: name those that are desired, as the text "
                        f"{name} in {{{', '.join(coding.levels[:-1])}}}",
                    )
                )
                return None
    if not _texts(written):
        return written
    levels, classes = levels_of(codings), unordered_of(codings)
    lines = written if isinstance(written, list) else [written]
    for place, line in enumerate(lines):
        try:
            # With the lines before it, since classes are named once.
            worded_inequalities(line, levels, classes)
            found = worded_inequalities(lines[: place + 1], levels, classes)
        except InequalityError as error:
            where = f"inequality {place + 1}, " if isinstance(written, list) else ""
            faults.append(Fault("region", f"{where}{error}"))
            return None
    return {
        "names": list(found.names),
        "normals": [list(normal) for normal in found.normals],
        "offsets": list(found.offsets),
    }


def levels_of(codings: Mapping[str, Coding]) -> dict[str, tuple[str, ...]]:
    """Variable to its levels, for those that are no classes."""
    return {name: each.levels for name, each in codings.items() if not each.of_classes}


def unordered_of(codings: Mapping[str, Coding]) -> dict[str, tuple[str, ...]]:
    """Variable to its classes, for those that have some."""
    return {name: each.levels for name, each in codings.items() if each.of_classes}


def outcome_faults(graph: RehearsalGraph, codings: Sequence[Coding]) -> list[Fault]:
    """A fault for each outcome of classes on which another variable depends."""
    found = list[Fault]()
    for each in codings:
        after = [name for cause, name in graph.edges if cause == each.name] if each.desired else []
        if after:
            others = " and ".join(after)
            found.append(
                Fault(
                    "graph",
                    f"{each.name} -> {after[0]}: {each.name} is an outcome of {len(each.levels)} classes: a "
                    f"method knows of {each.name} only whether it is {either(each.desired)}, and {others} "
                    f"may depend on the class itself. Take the arrow out if it does not, take {others} out "
                    "of the graph if nothing desired depends on it, or give each class a column of 0 and 1 "
                    "that is a variable of its own",
                )
            )
    return found


def _texts(written: Any) -> bool:
    lines = written if isinstance(written, list) else [written]
    return bool(lines) and all(isinstance(line, str) for line in lines)
