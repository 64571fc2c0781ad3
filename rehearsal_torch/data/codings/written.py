"""Codings as a task writes them, and tasks in which texts stand for codes.

    codings:
      smoker: [no, yes]                               # no is 0, yes is 1
      severity: [low, medium, high]                   # 0, 1, 2
      ward: {classes: [A, B, C], reference: A}        # the columns ward=B and ward=C
    box: {smoker: {values: [no, yes]}}              # some of the texts or classes, or all of them
    region: severity <= medium

Beside rows, `binary` and `categorical` are enough: the levels are then those of the column, two of them
sorted, and classes with the most frequent first, which is the reference (`resolved`).

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
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pandas as pd

from rehearsal_torch.data.codings.class_actions import offered, whole
from rehearsal_torch.data.codings.coding import Coding, either, listed, spelled, text_of, unseen
from rehearsal_torch.files.addresses import beginning
from rehearsal_torch.files.schema import Fault
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.inequalities import InequalityError, desired_classes, inequalities

BY_ROWS = ("binary", "categorical")
CODINGS = "{variable: [texts in the order of their codes], or {classes: [...], reference: ...}}"


def resolved(
    plain: Mapping[str, Any], frame: pd.DataFrame, box: object = None
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Codings with levels and references, where rows say what they are; the variables whose levels were found
    in the rows; and faults, a sentence each. Of the classes that a box offers, the reference is one.
    """
    found, names, faults = dict(plain), list[str](), list[str]()
    for name, each in plain.items():
        if name not in frame.columns:
            continue
        column, texts = frame[name], levels_in(frame[name])
        try:
            if isinstance(each, list | tuple):
                found[name] = spelled(each, texts)
            elif isinstance(each, Mapping) and set(each) == {"classes"}:
                known = spelled(each["classes"], texts)
                coding = classes_of(name, column, known, None, _offered_in(box, name, known), stated=True)
                if lost := unseen(coding, column):
                    words = f"no row has {listed(lost)}, so that nothing is known of it: leave it out"
                    raise ValueError(words)
                found[name] = coding.to_plain()
            elif isinstance(each, str) and each in BY_ROWS:
                coding = Coding(name, tuple(texts))
                if each == "binary" and len(texts) > 2:
                    raise ValueError(f"expected two texts; got {len(texts)}")
                if len(texts) > 2:
                    coding = classes_of(name, column, texts, among=_offered_in(box, name, texts))
                found[name] = coding.to_plain()
                names.append(name)
        except ValueError as error:
            faults.append(f"codings.{name}: {error}")
    return found, names, faults


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


def codings_in(plain: object) -> tuple[dict[str, Coding], list[Fault]]:
    """The codings of a task, and their faults."""
    if plain is None:
        return {}, []
    if not isinstance(plain, Mapping):
        return {}, [Fault("codings", f"expected {CODINGS}; got {beginning(str(plain), 60)!r}")]
    found, faults = dict[str, Coding](), list[Fault]()
    for name, each in plain.items():
        try:
            if isinstance(each, str) and each in BY_ROWS:
                raise ValueError(f"{each!r} needs the rows, and there are none here: name the levels")
            found[str(name)] = Coding.of(str(name), each)
        except ValueError as error:
            faults.append(Fault(f"codings.{name}", str(error)))
    return found, faults


def in_codes(plain: Mapping[str, Any], codings: Mapping[str, Coding]) -> tuple[dict[str, Any], list[Fault]]:
    """A task with codes in the place of texts in its box and its region, and faults."""
    made, faults = {part: each for part, each in plain.items() if part != "codings"}, list[Fault]()
    if isinstance(made.get("box"), Mapping):
        box: dict[Any, Any] = {}
        for name, each in made["box"].items():
            if name not in codings:
                box[name] = each
                continue
            try:
                box |= _settable(codings[name], each)
            except ValueError as error:
                faults.append(Fault(f"box.{name}", str(error)))
        made["box"] = box
    if region := made.get("region"):
        made["region"] = region_in_codes(region, codings, faults)
        if made["region"] is None:
            del made["region"]
    return made, faults


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
    codes = list[int]()
    for value in values:
        place = coding.place(value)
        if place is None:
            raise ValueError(f"expected some of {listed(coding.levels)}; got {value!r}")
        codes.append(place)
    if coding.reference is None:
        return {coding.name: {**written, "values": [float(code) for code in codes]}}
    if len(set(codes)) < len(codes):
        raise ValueError(f"each class is offered once; got {listed(spelled(values))}")
    texts = [coding.levels[code] for code in codes]
    if coding.reference not in texts:
        remedy = f"name one of {listed(texts)} as the reference"
        raise ValueError(f"the reference of {coding.name}, {coding.reference}, is not offered: {remedy}")
    rows = coding.rows[codes]
    return {
        column: {**written, "values": sorted(set(rows[:, place].tolist()))}
        for place, column in enumerate(coding.columns)
    }


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


def with_desired(region: Any, codings: Mapping[str, Coding]) -> dict[str, Coding]:
    """The codings with the classes of outcomes that a region of texts desires, where it can be read."""
    try:
        found = desired_classes(region, levels_of(codings), unordered_of(codings)) if _texts(region) else {}
    except InequalityError:
        return dict(codings)
    made = {name: replace(codings[name], reference=None, desired=classes) for name, classes in found.items()}
    return {**codings, **made}


def region_in_codes(written: Any, codings: Mapping[str, Coding], faults: list[Fault]) -> Any:
    """Inequalities with texts as faces, {names, normals, offsets}; None with a fault; all else as it is."""
    if isinstance(written, Mapping):
        names = written.get("names", written)
        for name in names if isinstance(names, Mapping | Sequence) else ():
            coding = codings.get(name) if isinstance(name, str) else None
            if coding is not None and coding.reference is not None:
                some = f"{name} in {{{', '.join(coding.levels[:-1])}}}"
                words = f"{name} has classes, which have no order: name those that are desired, as the text"
                faults.append(Fault("region", f"{words} {some}"))
                return None
    try:
        return faces_of_text(written, codings) if _texts(written) else written
    except InequalityError as error:
        faults.append(Fault("region", str(error)))
        return None


def faces_of_text(written: Any, codings: Mapping[str, Coding] = MappingProxyType({})) -> dict[str, Any]:
    """Inequalities, a text or a list of texts, as faces {names, normals, offsets}.

    Raises:
        InequalityError: with the number of the line among several.
    """
    levels, classes = levels_of(codings), unordered_of(codings)
    lines = written if isinstance(written, list) else [written]
    for place, line in enumerate(lines):
        try:
            # With the lines before it, since classes are named once.
            inequalities(line, levels, classes)
            found = inequalities(lines[: place + 1], levels, classes)
        except InequalityError as error:
            error.args = (f"inequality {place + 1}, {error}" if isinstance(written, list) else str(error),)
            raise
    normals = [list(normal) for normal in found.normals]
    return {"names": list(found.names), "normals": normals, "offsets": list(found.offsets)}


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


def _texts(written: Any) -> bool:
    lines = written if isinstance(written, list) else [written]
    return bool(lines) and all(isinstance(line, str) for line in lines)
