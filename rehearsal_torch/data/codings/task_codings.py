"""Codings as a task writes them, and tasks in which texts stand for codes.

    codings:
      smoker: [no, yes]                               # no is 0, yes is 1
      severity: [low, medium, high]                   # 0, 1, 2
      ward: {classes: [A, B, C], reference: A}        # the columns ward=B and ward=C
    box: {smoker: {values: [no, yes]}}              # some of the texts or classes, or all of them
    region: severity <= medium

Beside rows, `binary` and `categorical` are enough: the levels are then those of the column, two of them
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

An outcome of classes is to the methods whether its class is desired, 0 or 1, so that its classes need no
order, and the chance that status is well or mild is that of its column being 1. What else depends on the
class itself cannot be learnt from that column: such an outcome has no children in the graph.

Source: Qin et al. (2023), Def. 1-3 and 12.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd

from rehearsal_torch.data.codings.coding import Coding, either, hinted, listed, spelled, text_of, unseen
from rehearsal_torch.data.codings.one_hot_actions import offered, whole
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import Fault, path_of
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.inequalities import InequalityError, desired_classes, inequalities

BY_ROWS = ("binary", "categorical")
CODINGS = "{variable: [texts in the order of their codes], or {classes: [...], reference: ...}}"


def levels_in(column: pd.Series) -> list[str]:
    """The different cells of a column as levels: numbers in their order, then texts, sorted."""
    cells = column.dropna().unique().tolist()
    texts = {each.strip() for each in cells if isinstance(each, str)}
    numbers = {float(each) for each in cells if not isinstance(each, str) and text_of(each) is not None}
    ordered = [*sorted(numbers), *sorted(texts, key=lambda text: (text.casefold(), text))]
    return [text for text in map(text_of, ordered) if text is not None]


def _offered_in(box: object, name: str, classes: Sequence[str]) -> list[str]:
    """The classes that a box offers, as far as they can be read; what else is there is told with the box."""
    written = box.get(name) if isinstance(box, Mapping) else None
    values = written.get("values") if isinstance(written, Mapping) else None
    if not isinstance(values, list | tuple):
        return []
    return [each for each in spelled(values, classes) if each in classes]


def classes_of(
    name: str,
    column: pd.Series,
    classes: Sequence[str],
    reference: str | None = None,
    among: Sequence[str] = (),
    stated: bool = False,
) -> Coding:
    """The coding of classes; without a reference that of the most frequent class (of `among`, if there are
    some), the first of several. Unless their order is stated, the most frequent classes come first, so that
    the columns, and what is estimated from them, do not depend on names.
    """
    places = Coding(name, tuple(classes), reference).places(column)
    counts = {each: int((places == place).sum()) for place, each in enumerate(classes)}
    ordered = classes if stated else sorted(classes, key=lambda each: -counts[each])
    if reference is None:
        reference = max([each for each in ordered if each in (among or classes)], key=counts.__getitem__)
    return Coding(name, tuple(ordered), reference)


def codings_in(
    plain: object,
    rows: pd.DataFrame | None = None,
    box: object = None,
    known: Mapping[str, Coding] = MappingProxyType({}),
) -> tuple[dict[str, Coding], list[Fault]]:
    """The codings of a task, and their faults.

    Args:
        rows: Say levels and references where the task leaves them to rows.
        box: Of the classes that it offers, the reference is one.
        known: Codings of a fit, which stand for those that are left to rows.
    """
    if plain is None:
        return {}, []
    if not isinstance(plain, Mapping):
        return {}, [Fault("codings", f"expected {CODINGS}; got {beginning(str(plain), 60)!r}")]
    found, faults = dict[str, Coding](), list[Fault]()
    for key, each in plain.items():
        name, completed = str(key), isinstance(each, Mapping) and set(each) == {"classes"}
        try:
            if rows is not None and name in rows.columns:
                found[name] = _of_column(name, each, rows[name], box)
            elif name in known and (completed or (isinstance(each, str) and each in BY_ROWS)):
                found[name] = known[name]
            elif isinstance(each, str) and each in BY_ROWS:
                raise ValueError(f"{each!r} needs the rows, and there are none here: name the levels")
            else:
                found[name] = Coding.of(name, each)
        except ValueError as error:
            faults.append(Fault(path_of(("codings", name)), str(error)))
    return found, faults


def _of_column(name: str, written: Any, column: pd.Series, box: object) -> Coding:
    """A coding with levels and reference of a column, where it leaves them to rows."""
    texts = levels_in(column)
    if isinstance(written, list | tuple):
        return Coding.of(name, spelled(written, texts))
    if isinstance(written, Mapping) and set(written) == {"classes"}:
        classes = spelled(written["classes"], texts)
        coding = classes_of(name, column, classes, None, _offered_in(box, name, classes), stated=True)
        if lost := unseen(coding, column):
            raise ValueError(f"no row has {listed(lost)}, so that nothing is known of it: leave it out")
        return coding
    if not isinstance(written, str) or written not in BY_ROWS:
        return Coding.of(name, written)
    if written == "binary" and len(texts) > 2:
        raise ValueError(f"expected two texts; got {len(texts)}")
    if len(texts) <= 2:
        return Coding(name, tuple(texts))
    return classes_of(name, column, texts, among=_offered_in(box, name, texts))


def box_in_codes(box: Any, codings: Mapping[str, Coding], faults: list[Fault]) -> Any:
    """A box with codes in the place of texts; what is none stays."""
    made = dict[Any, Any]()
    for name, each in box.items() if isinstance(box, Mapping) else ():
        try:
            made |= _settable(codings[name], each) if name in codings else {name: each}
        except ValueError as error:
            faults.append(Fault(path_of(("box", name)), str(error)))
    return made if isinstance(box, Mapping) else box


def box_in_texts(box: Mapping[str, Any], codings: Mapping[str, Coding]) -> dict[str, Any]:
    """A box as a task writes it: texts for levels and classes, so that no number is taken for a text."""
    found: dict[str, Any] = {}
    classes = {column: each for each in whole(list(box), list(codings.values())) for column in each.columns}
    for name, each in box.items():
        coding = codings.get(name)
        if name in classes:
            coding = classes[name]
            levels = {column: box[column]["values"] for column in coding.columns}
            found[coding.name] = {"values": [coding.levels[place] for place in offered(coding, levels)]}
        elif coding is not None and isinstance(each, Mapping):
            found[name] = {"values": [coding.levels[int(code)] for code in each["values"]]}
        else:
            found[name] = each
    return found


def _settable(coding: Coding, written: Any) -> dict[str, Any]:
    """What the columns of a variable may be set to, with codes for texts."""
    values = written.get("values") if isinstance(written, Mapping) else None
    if not isinstance(values, list | tuple) or not values:
        example = f"{{values: [{listed(coding.levels)}]}}"
        raise ValueError(f"a variable of texts is set to one of these: write {example}")
    codes = places_of(coding, values)
    if coding.reference is None:
        return {coding.name: {**written, "values": [float(code) for code in codes]}}
    texts = [coding.levels[code] for code in codes]
    if coding.reference not in texts:
        remedy = f"name one of {listed(texts)} as the reference"
        raise ValueError(f"the reference of {coding.name}, {coding.reference}, is not offered: {remedy}")
    rows = coding.rows[codes]
    return {
        column: {**written, "values": sorted(set(rows[:, place].tolist()))}
        for place, column in enumerate(coding.columns)
    }


def places_of(coding: Coding, named: Sequence[Any]) -> list[int]:
    """The places of levels on offer; ValueError if one is unknown or named twice, or there is none."""
    known, places = listed(coding.levels), [coding.place(each) for each in named]
    if None in places:
        odd = named[places.index(None)]
        raise ValueError(f"expected some of {known}; got {odd!r}{hinted(str(odd), coding.levels)}")
    if not places or len(set(places)) < len(places):
        got = listed(spelled(named, coding.levels)) or "none"
        raise ValueError(f"expected some of {known}, each once; got {got}")
    return [place for place in places if place is not None]


def coded_names(names: Sequence[str], codings: Mapping[str, Coding]) -> list[str]:
    """Names with the indicators in the place of each variable of classes."""
    return [column for name in names for column in (codings[name].columns if name in codings else (name,))]


def expanded(graph: RehearsalGraph, codings: Mapping[str, Coding]) -> RehearsalGraph:
    """The graph with the indicators of classes in the place of their variables; those that it has stay."""
    several = {
        name: each.columns
        for name, each in codings.items()
        if each.reference is not None and name in graph.names
    }
    if not several:
        return graph
    bowed = {name for pair in graph.hidden for name in pair if name in several}
    cliques, edges = list[tuple[str, ...]](), list[tuple[str, str]]()
    for clique in graph.cliques:
        members = tuple(column for name in clique for column in several.get(name, (name,)))
        parted = bowed.issuperset(clique)
        cliques += [(each,) for each in members] if parted else [members]
        if parted:
            edges += [(one, other) for place, one in enumerate(members) for other in members[place + 1 :]]
    edges += _pairs(graph.edges, several)
    return RehearsalGraph(tuple(cliques), tuple(edges), tuple(_pairs(graph.hidden, several)))


def _pairs(pairs: Sequence[tuple[str, str]], several: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [
        (one, other)
        for source, target in pairs
        for one in several.get(source, (source,))
        for other in several.get(target, (target,))
    ]


def faces_of_text(
    written: str | Sequence[str], codings: Mapping[str, Coding] = MappingProxyType({})
) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Inequalities, a text or several, as faces {names, normals, offsets}, and outcomes of classes to those
    that are desired.

    Raises:
        InequalityError: with the number of the line among several.
    """
    levels, classes = levels_of(codings), unordered_of(codings)
    lines = [written] if isinstance(written, str) else written
    for place, line in enumerate(lines):
        try:
            # With the lines before it, since classes are named once.
            inequalities(line, levels, classes)
            found = inequalities(lines[: place + 1], levels, classes)
        except InequalityError as error:
            error.args = (str(error) if isinstance(written, str) else f"inequality {place + 1}, {error}",)
            raise
    normals = [list(normal) for normal in found.normals]
    faces = {"names": list(found.names), "normals": normals, "offsets": list(found.offsets)}
    return faces, desired_classes(lines, levels, classes)


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
            words = (
                f"{each.name} -> {after[0]}: {each.name} is an outcome of {len(each.levels)} classes: a "
                f"method knows of {each.name} only whether it is {either(each.desired)}, and {others} may "
                f"depend on the class itself. Take the arrow out if it does not, take {others} out of the "
                "graph if nothing desired depends on it, or give each class a column of 0 and 1 that is a "
                "variable of its own"
            )
            found.append(Fault("graph", words))
    return found
