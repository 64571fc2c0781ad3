"""Codings of a task: their YAML, and its box, graph and region with codes in the place of texts.

    codings:
      smoker: [no, yes]                               # no is 0, yes is 1
      severity: [low, medium, high]                   # 0, 1, 2
      ward: {classes: [A, B, C], reference: A}        # the columns ward=B and ward=C
    box: {smoker: {values: [no, yes]}}              # some of the texts or classes, or all of them
    region: severity <= medium

With a table, `binary` and `categorical` are enough: the levels are then those of the column, two of them
sorted, and classes with the most frequent first, which is the reference.

Graphs. The node of a variable of classes is replaced by its indicators, each with the edges of the node; they
are joined by bi-directional edges, since one cause, the class, moves all of them. A path through the node is
a path through one of the indicators, and a path through several of them is open exactly if one through the
node is, as long as all of them are observed or none is. So every separation and every valid adjustment of
the graph stays what it was (Qin et al., Def. 12). Where a hidden common cause accompanies an arrow of the
node, arrows from each indicator to those after it take the place of bi-directional edges, which such a pair
does not allow.

    region: status in {well, mild} and cost <= 4
    codings: {status: {classes: [well, mild, ill], desired: [well, mild]}}

The column of an outcome of classes is 1 where its class is desired, else 0: the classes need no order, and
the chance that status is well or mild is that of the column being 1. What depends on the class itself cannot
be learnt from that column: such an outcome has no children in the graph.

Source: Qin et al. (2023), Def. 1-3 and 12.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from types import MappingProxyType
from typing import Any

import pandas as pd

from rehearsal_torch.data.codings.coding import (
    Coding,
    alternatives,
    hinted,
    level_texts,
    listed,
    text_of,
    texts_in,
)
from rehearsal_torch.data.codings.one_hot_actions import classes_in, offered_places
from rehearsal_torch.files.schema import Fault
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.inequalities import InequalityError, desired_classes, inequalities


def levels_in(column: pd.Series) -> list[str]:
    """The different cells of a column as levels: numbers in their order, then texts, sorted."""
    cells = column.dropna().unique().tolist()
    numbers = {float(cell) for cell in cells if not isinstance(cell, str) and text_of(cell) is not None}
    texts = sorted(texts_in(column), key=str.casefold)
    return [text for text in map(text_of, [*sorted(numbers), *texts]) if text is not None]


def box_in_texts(box: Mapping[str, Any], codings: Mapping[str, Coding]) -> dict[str, Any]:
    """The box of a task in texts for levels and classes, so that no number is taken for a text."""
    texts: dict[str, Any] = {}
    whole = classes_in(list(box), list(codings.values()))
    classes = {column: coding for coding in whole for column in coding.columns}
    for name, settable in box.items():
        if (coding := classes.get(name)) is not None:
            levels = {column: box[column]["values"] for column in coding.columns}
            offered = [coding.levels[place] for place in offered_places(coding, levels)]
            texts[coding.name] = {"values": offered}
        elif name in codings and isinstance(settable, Mapping):
            texts[name] = {"values": [codings[name].levels[int(code)] for code in settable["values"]]}
        else:
            texts[name] = settable
    return texts


def box_in_codes(coding: Coding, values: Sequence[Any]) -> dict[str, Any]:
    """What the columns of a variable may be set to, for some of its levels or classes; ValueError if one is
    unknown or repeated, there is none, or the reference is not among them.
    """
    places = places_of(coding, values)
    if coding.reference is None:
        return {coding.name: {"values": [float(place) for place in places]}}
    if coding.levels.index(coding.reference) not in places:
        remedy = f"name one of {listed([coding.levels[place] for place in places])} as the reference"
        raise ValueError(f"the reference of {coding.name}, {coding.reference}, is not offered: {remedy}")
    columns = zip(coding.columns, coding.rows[places].T.tolist(), strict=True)
    return {column: {"values": sorted(set(codes))} for column, codes in columns}


def places_of(coding: Coding, values: Sequence[Any]) -> list[int]:
    """The places of levels that may be set; ValueError if one is unknown or repeated, or there is none."""
    known, places = listed(coding.levels), list[int]()
    for value in values:
        if (place := coding.place(value)) is None:
            hint = hinted(str(value), coding.levels)
            raise ValueError(f"expected some of {known}; got {value!r}{hint}")
        places.append(place)
    if not places or len(set(places)) < len(places):
        got = listed(level_texts(values, coding.levels)) or "none"
        raise ValueError(f"expected some of {known}, each once; got {got}")
    return places


def coded_names(names: Sequence[str], codings: Mapping[str, Coding]) -> list[str]:
    """Names with the indicators in the place of each variable of classes."""
    return [column for name in names for column in (codings[name].columns if name in codings else (name,))]


def expanded(graph: RehearsalGraph, codings: Mapping[str, Coding]) -> RehearsalGraph:
    """The graph with the indicators of classes in the place of their variables; those that it has stay."""
    classes = {name for name, each in codings.items() if each.reference is not None and name in graph.names}
    if not classes:
        return graph
    columns = {name: codings[name].columns if name in classes else (name,) for name in graph.names}
    # Nodes with a hidden common cause beside an arrow, of whose indicators none may be joined by <->.
    accompanied = {name for pair in graph.hidden for name in pair if name in classes}
    cliques, edges = list[tuple[str, ...]](), list[tuple[str, str]]()
    for clique in graph.cliques:
        members = tuple(column for name in clique for column in columns[name])
        if accompanied.issuperset(clique):
            cliques += [(member,) for member in members]
            edges += combinations(members, 2)
        else:
            cliques.append(members)
    edges += [pair for source, target in graph.edges for pair in product(columns[source], columns[target])]
    hidden = [pair for first, second in graph.hidden for pair in product(columns[first], columns[second])]
    return RehearsalGraph(tuple(cliques), tuple(edges), tuple(hidden))


def faces_of_text(
    written: str | Sequence[str], codings: Mapping[str, Coding] = MappingProxyType({})
) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Inequalities, a text or several, as faces {names, normals, offsets}, and outcomes of classes to their
    desired classes.

    Raises:
        InequalityError: with the number of the line among several.
    """
    levels = {name: coding.levels for name, coding in codings.items() if not coding.of_classes}
    classes = {name: coding.levels for name, coding in codings.items() if coding.of_classes}
    lines = [written] if isinstance(written, str) else written
    for number, line in enumerate(lines, 1):
        try:
            inequalities(line, levels, classes)
            # With the lines before it, since the classes of an outcome may be named in one line only.
            parsed = inequalities(lines[:number], levels, classes)
        except InequalityError as error:
            error.args = (str(error) if isinstance(written, str) else f"inequality {number}, {error}",)
            raise
    normals = [list(normal) for normal in parsed.normals]
    faces = {"names": list(parsed.names), "normals": normals, "offsets": list(parsed.offsets)}
    return faces, desired_classes(lines, levels, classes)


def outcome_faults(graph: RehearsalGraph, codings: Sequence[Coding]) -> Iterator[Fault]:
    """A fault for each outcome of classes on which another variable depends."""
    for coding in codings:
        name = coding.name
        children = [effect for cause, effect in graph.edges if cause == name] if coding.desired else []
        if children:
            effects, desired = " and ".join(children), alternatives(coding.desired)
            yield Fault(
                "graph",
                f"{name} -> {children[0]}: {name} is an outcome of {len(coding.levels)} classes: a method "
                f"knows of {name} only whether it is {desired}, and {effects} may depend on "
                f"the class itself. Take the arrow out if it does not, take {effects} out of the graph if "
                "nothing desired depends on it, or give each class a column of 0 and 1 that is a variable of "
                "its own",
            )
