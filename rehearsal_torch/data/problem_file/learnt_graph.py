"""The graph of a problem file: written there, in a file of its own, learnt from the rows, or in part known.

    graph: learn
    graph: {learn: true, level: 0.01, forbidden: [age -> dose], required: ["dose -> progression"]}

    graph: {parents: {y: [a, x]}, undirected: [[x, a]]}

In the last form, edges have no direction yet: the graphs with these edges and no further v-structure agree
with what is known (`graphs.written_graph`). Learning tests conditional independences of the complete rows by
partial correlations (the PC algorithm), with the roles as background knowledge: the context comes before, and
outcomes come after all others; rows leave some directions open as well. The task has the first of the graphs
that agree; decisions are told with the share of these graphs under which they stand (`claims.member_graphs`).
Hidden common causes are not considered: ``rehearsal learn-graph`` does that, and resamples the rows.

Source: Qin et al. (2023), Algorithm 2 (steps 1 to 3); Spirtes and Glymour (1991).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.problem_file.findings import Findings
from rehearsal_torch.data.problem_file.form import VariableForm
from rehearsal_torch.data.problem_file.kinds import of_role
from rehearsal_torch.data.reading import ReadTable, TableError, number_columns
from rehearsal_torch.files.schema import Number, Schema, fault, list_of, read
from rehearsal_torch.graphs.dagitty import edges_of, has_arrow
from rehearsal_torch.graphs.equivalence import Background
from rehearsal_torch.graphs.formats import ENDINGS, read_plain
from rehearsal_torch.graphs.learning import learn
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.written_graph import MEMBERS, GraphClass, graph_class, graph_of
from rehearsal_torch.spaces.box import as_tensor

# The end of a file's name.
_ENDING = re.compile(r"[\w-]\.[A-Za-z]\w{0,9}\Z")
LEARN, TEST, ROWS = "learn", "fisherz", 5
STANDS = "each decision says under which it stands"


def graph_part(written: Any, folder: Path, found: Findings) -> Any:
    """The graph as a task holds it: that of a file as plain data, {parents, undirected} where some edges have
    no direction; None with a fault.
    """
    name = written.strip() if isinstance(written, str) else ""
    if not name or "\n" in name:
        return written
    if Path(name).suffix not in ENDINGS:
        if has_arrow(name) or _ENDING.search(name) is None:
            return written
        remedy = "save the graph as one of these, or write its arrows here, [cause -> effect, ...]"
        endings = f"expected a file with one of the endings {', '.join(ENDINGS)}"
        found.fault("graph", f"{name}: {endings}: {remedy}")
        return None
    try:
        return read_plain(folder / name)
    except (OSError, ValueError) as error:
        found.fault("graph", str(error))
        return None


def built_graph(written: Any) -> RehearsalGraph | None:
    """The graph, if it is one; its faults are told by the reader of tasks."""
    try:
        return None if written is None else graph_of({"graph": written})
    except ValueError:
        return None


def _share(level: float) -> float:
    if not 0 < level < 1:
        raise fault("a significance level between 0 and 1", level)
    return level


Arrows = Annotated[list[str], list_of("a list of arrows, [cause -> effect, ...]")]


class LearnForm(Schema):
    """How a graph is learnt."""

    learn: Literal[True] = Field(description="true")
    level: Annotated[Number, AfterValidator(_share)] = Field(
        0.05, description="the tests' significance level"
    )
    forbidden: Arrows = Field(default_factory=list, description="arrows that do not exist")
    required: Arrows = Field(default_factory=list, description="arrows that exist")


@dataclass(frozen=True)
class LearntGraph:
    """A graph that was learnt from rows: that of the task, all that agree with the rows, this one first, and
    what was learnt, a sentence each.
    """

    graph: RehearsalGraph
    members: tuple[RehearsalGraph, ...]
    notes: tuple[str, ...]


def is_learnt(written: Any) -> bool:
    """Whether the part ``graph`` asks for a graph to be learnt."""
    return written == LEARN or (isinstance(written, Mapping) and LEARN in written)


def learnt_graph(
    written: Any,
    variables: Mapping[str, VariableForm],
    rows: ReadTable,
    codings: Mapping[str, Coding],
    found: Findings,
) -> LearntGraph | None:
    """Learns the graph of a problem from its complete rows, with codes for texts; None with a fault."""
    form, faults = read(LearnForm, {LEARN: True} if written == LEARN else written)
    for each in faults:
        found.fault("graph", each)
    if classes := [name for name, coding in codings.items() if coding.of_classes]:
        what = f"{', '.join(classes)} has classes without an order: write the arrows, or an order"
        found.fault("graph", f"a graph is learnt from numbers and levels; {what}")
    if faults or classes:
        return None
    names = list(variables)
    try:
        complete = rows.frame[~rows.frame[names].isna().any(axis=1)]
        values = as_tensor(number_columns(complete, names, rows.where, min_rows=ROWS, varying=True))
        known = Background.roles(
            names,
            of_role(variables, "context"),
            of_role(variables, "outcome"),
            _arrows(form["forbidden"], names),
            _arrows(form["required"], names),
        )
        learnt = learn(values, names, TEST, form["level"], known, bidirected=False, max_graphs=MEMBERS)
    except TableError as error:
        found.fault("data", str(error))
        return None
    except ValueError as error:
        # More graphs than can be compared, among others.
        found.fault("graph", f"cannot be learnt: {error}; write what is known, as forbidden or required")
        return None
    first, count = learnt.graphs[0], len(learnt.graphs)
    arrows = ", ".join(f"{cause} -> {effect}" for cause, effect in first.edges) or "no arrow"
    several = "the only graph that agrees with them and the roles"
    if count > 1:
        several = f"one of {count} graphs that agree with them and the roles; {STANDS}"
    note = f"the graph was learnt from {len(values)} rows, without hidden common causes: {arrows}; {several}"
    return LearntGraph(first, tuple(learnt.graphs), (note, *learnt.notes))


def partly_directed(written: Any, found: Findings) -> LearntGraph | None:
    """The graphs with some edges of unknown direction, {parents, undirected: [[one, other]]}; None with a
    fault, or if all directions are written.
    """
    if not isinstance(written, Mapping) or "undirected" not in written:
        return None
    try:
        known = graph_class(written)
    except ValueError as error:
        found.fault("graph", str(error))
        return None
    have = f"{len(known.graphs)} graph{'s have' if len(known.graphs) > 1 else ' has'} the edges of the file"
    note = f"{have}; each decision is made under the first, and says under which it stands"
    return LearntGraph(known.graphs[0], known.graphs, (note,))


def equally_likely(graphs: Sequence[RehearsalGraph]) -> GraphClass | None:
    """Graphs with equal weights; None for one alone, which leaves nothing to compare."""
    return None if len(graphs) < 2 else GraphClass(tuple(graphs), (1.0,) * len(graphs))


def _arrows(lines: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs (cause, effect) of arrows as text."""
    pairs: list[tuple[str, str]] = []
    for line in lines:
        try:
            stated = edges_of(line)
        except ValueError as error:
            raise ValueError(f"{line!r}: {error}") from error
        if stated.bidirected or not stated.directed:
            raise ValueError(f"{line!r} is no arrow: expected cause -> effect")
        if odd := [name for name in stated.names if name not in names]:
            raise ValueError(f"{odd[0]!r} in {line!r} is not under variables")
        pairs += stated.directed
    return pairs
