"""Codings of a task: their YAML, and its box, graph and region with codes in the place of texts.

    codings:
      smoker: [no, yes]                               # no is 0, yes is 1
      severity: [low, medium, high]                   # 0, 1, 2
      ward: {classes: [A, B, C], reference: A}        # the columns ward=B and ward=C
    box: {smoker: {values: [no, yes]}}              # some of the texts or classes, or all of them
    region: severity <= medium

With a table, `binary` and `categorical` are enough: the levels are then those of the column, two of them
sorted, and classes with the most frequent first, which is the reference (`codings_in`).

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
    unseen_levels,
)
from rehearsal_torch.data.codings.one_hot_actions import classes_in, offered_places
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import Fault, path_of
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.inequalities import InequalityError, desired_classes, inequalities

# Codings that leave their levels to a table.
_BY_ROWS = ("binary", "categorical")
CODINGS = "{variable: [texts in the order of their codes], or {classes: [...], reference: ...}}"


def levels_in(column: pd.Series) -> list[str]:
    """The different cells of a column as levels: numbers in their order, then texts, sorted."""
    cells = column.dropna().unique().tolist()
    numbers = {float(cell) for cell in cells if not isinstance(cell, str) and text_of(cell) is not None}
    texts = sorted(texts_in(column), key=str.casefold)
    return [text for text in map(text_of, [*sorted(numbers), *texts]) if text is not None]


def _offered_in(box: object, name: str, classes: Sequence[str]) -> list[str]:
    """The classes that a box offers, without values that are faults of the box."""
    settable = box.get(name) if isinstance(box, Mapping) else None
    values = settable.get("values") if isinstance(settable, Mapping) else None
    if not isinstance(values, list | tuple):
        return []
    return [text for text in level_texts(values, classes) if text in classes]


def classes_of(
    name: str,
    column: pd.Series,
    classes: Sequence[str],
    reference: str | None = None,
    among: Sequence[str] = (),
    stated: bool = False,
) -> Coding:
    """The coding of classes, by default with the most frequent class as reference, the first of several.

    Args:
        among: The classes from which the reference is chosen; empty for all.
        stated: Whether `classes` are in a stated order; else the most frequent ones come first, so that the
            columns, and what is estimated from them, do not depend on names.
    """
    places = Coding(name, tuple(classes), reference).places(column)
    counts = {text: int((places == place).sum()) for place, text in enumerate(classes)}
    ordered = classes if stated else sorted(classes, key=lambda text: -counts[text])
    if reference is None:
        reference = max([text for text in ordered if text in (among or classes)], key=counts.__getitem__)
    return Coding(name, tuple(ordered), reference)


def codings_in(
    plain: object,
    rows: pd.DataFrame | None = None,
    box: object = None,
    known: Mapping[str, Coding] = MappingProxyType({}),
) -> tuple[dict[str, Coding], list[Fault]]:
    """The codings of a task, and their faults.

    Args:
        rows: A table from which levels and references are taken where the task does not name them.
        box: The box of the task; a reference is one of the classes that it offers.
        known: Fitted codings, for those that the task leaves to a table.
    """
    if not isinstance(plain, Mapping):
        return {}, [Fault("codings", f"expected {CODINGS}; got {beginning(str(plain), 60)!r}")]
    codings, faults = dict[str, Coding](), list[Fault]()
    for key, content in plain.items():
        name, by_rows = str(key), isinstance(content, str) and content in _BY_ROWS
        no_reference = isinstance(content, Mapping) and set(content) == {"classes"}
        try:
            if rows is not None and name in rows.columns:
                codings[name] = _coding_of_column(name, content, rows[name], box)
            elif name in known and (by_rows or no_reference):
                codings[name] = known[name]
            elif by_rows:
                raise ValueError(f"{content!r} needs the rows, and there are none here: name the levels")
            else:
                codings[name] = Coding.of(name, content)
        except ValueError as error:
            faults.append(Fault(path_of(("codings", name)), str(error)))
    return codings, faults


def _coding_of_column(name: str, content: Any, column: pd.Series, box: object) -> Coding:
    """A coding, with levels and reference of a column where the task does not name them."""
    texts = levels_in(column)
    if isinstance(content, list | tuple):
        return Coding.of(name, level_texts(content, texts))
    if isinstance(content, Mapping) and set(content) == {"classes"}:
        classes = level_texts(content["classes"], texts)
        coding = classes_of(name, column, classes, None, _offered_in(box, name, classes), stated=True)
        if lost := unseen_levels(coding, column):
            raise ValueError(f"no row has {listed(lost)}, so that nothing is known of it: leave it out")
        return coding
    if not isinstance(content, str) or content not in _BY_ROWS:
        return Coding.of(name, content)
    if content == "binary" and len(texts) > 2:
        raise ValueError(f"expected two texts; got {len(texts)}")
    if len(texts) <= 2:
        return Coding(name, tuple(texts))
    return classes_of(name, column, texts, among=_offered_in(box, name, texts))


def box_in_codes(box: Any, codings: Mapping[str, Coding], faults: list[Fault]) -> Any:
    """A box with codes in the place of texts; anything but a mapping stays as it is."""
    if not isinstance(box, Mapping):
        return box
    codes = dict[Any, Any]()
    for name, settable in box.items():
        try:
            codes |= _settable(codings[name], settable) if name in codings else {name: settable}
        except ValueError as error:
            faults.append(Fault(path_of(("box", name)), str(error)))
    return codes


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


def _settable(coding: Coding, content: Any) -> dict[str, Any]:
    """What the columns of a variable may be set to, with codes for texts."""
    values = content.get("values") if isinstance(content, Mapping) else None
    if not isinstance(values, list | tuple) or not values:
        example = f"{{values: [{listed(coding.levels)}]}}"
        raise ValueError(f"a variable of texts is set to one of these: write {example}")
    places = places_of(coding, values)
    if coding.reference is None:
        return {coding.name: {**content, "values": [float(place) for place in places]}}
    texts = [coding.levels[place] for place in places]
    if coding.reference not in texts:
        remedy = f"name one of {listed(texts)} as the reference"
        raise ValueError(f"the reference of {coding.name}, {coding.reference}, is not offered: {remedy}")
    columns = zip(coding.columns, coding.rows[places].T.tolist(), strict=True)
    return {column: {**content, "values": sorted(set(codes))} for column, codes in columns}


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
