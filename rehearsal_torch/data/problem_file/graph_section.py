"""The graph of a problem file: stated there, in a file of its own, learnt from the rows, or known in part.

    graph: learn
    graph: {learn: true, level: 0.01, forbidden: [age -> dose], required: ["dose -> progression"]}

    graph: {parents: {y: [a, x]}, undirected: [[x, a]]}

In the last form, the direction of some edges is unknown: the graphs with these edges and no further
v-structure agree with what is known (`graphs.graph_notation`). Learning tests conditional independences of
the complete rows by partial correlations (the PC algorithm), with the roles as background knowledge: the
context comes before, and outcomes come after all others; some directions may stay open as well. The task has
the first of the graphs that agree; each decision has the share of these graphs under which it stands
(`claims.graph_robustness`). Hidden common causes are not considered: ``rehearsal learn-graph`` does that, and
resamples the rows.

Source: Qin et al. (2023), Algorithm 2 (steps 1 to 3); Spirtes and Glymour (1991).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal_torch.data.codings.coding import Coding
from rehearsal_torch.data.problem_file.cases_schema import (
    GraphForm,
    LearnForm,
    PartlyForm,
    ProblemForm,
    VariableForm,
    graph_file,
    of_role,
)
from rehearsal_torch.data.problem_file.diagnostics import Findings
from rehearsal_torch.data.tables.reader import ReadTable, TableError, number_columns
from rehearsal_torch.files.schema import read
from rehearsal_torch.files.similar_names import as_named
from rehearsal_torch.graphs.dagitty import edges_of
from rehearsal_torch.graphs.equivalence import Background
from rehearsal_torch.graphs.graph_files import read_plain
from rehearsal_torch.graphs.graph_learning import learn
from rehearsal_torch.graphs.graph_notation import MEMBERS, GraphClass, graph_class
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.box import as_tensor

_TEST, _MIN_ROWS = "fisherz", 5


def graph_part(plain: Any, folder: Path, found: Findings) -> Any:
    """The plain data of a graph, which may stand in a file; None with a fault."""
    try:
        file = graph_file(plain)
        return plain if file is None else read_plain(as_named(folder / file))
    except (OSError, ValueError) as error:
        found.fault("graph", str(error))
        return None


@dataclass(frozen=True)
class KnownGraph:
    """The graph of a task.

    Attributes:
        members: All graphs that agree with the rows, or with what is known, `graph` first; empty if it is
            stated.
        notes: How it was chosen, a sentence each.
    """

    graph: RehearsalGraph
    members: tuple[RehearsalGraph, ...] = ()
    notes: tuple[str, ...] = ()


def known_graph(
    form: Path | LearnForm | PartlyForm | GraphForm | None, folder: Path, found: Findings
) -> KnownGraph | None:
    """The graph of a problem file, or of the file that it names; None with a fault, or if it is learnt."""
    try:
        if isinstance(form, Path):
            parts, faults = read(ProblemForm, {"graph": read_plain(as_named(folder / form))})
            found.add_faults(fault for fault in faults if fault.part == "graph")
            form = parts.get("graph")
        if isinstance(form, PartlyForm):
            graphs = graph_class(form.model_dump()).graphs
            count = f"{len(graphs)} graph{'s have' if len(graphs) > 1 else ' has'} the edges of the file"
            note = f"{count}; each decision is made under the first, and says under which it stands"
            return KnownGraph(graphs[0], graphs, (note,))
        return None if form is None or isinstance(form, LearnForm) else KnownGraph(form.graph())
    except (OSError, ValueError) as error:
        found.fault("graph", str(error))
        return None


def learnt_graph(
    form: LearnForm,
    variables: Mapping[str, VariableForm],
    rows: ReadTable,
    codings: Mapping[str, Coding],
    found: Findings,
) -> KnownGraph | None:
    """Learns the graph from the complete rows, with codes for texts; None with a fault."""
    if classes := [name for name, coding in codings.items() if coding.of_classes]:
        what = f"{', '.join(classes)} has classes without an order: write the arrows, or an order"
        found.fault("graph", f"a graph is learnt from numbers and levels; {what}")
        return None
    names = list(variables)
    try:
        complete = rows.frame[~rows.frame[names].isna().any(axis=1)]
        values = as_tensor(number_columns(complete, names, rows.where, min_rows=_MIN_ROWS, varying=True))
        background = Background.roles(
            names,
            of_role(variables, "context"),
            of_role(variables, "outcome"),
            _arrows(form.forbidden, names),
            _arrows(form.required, names),
        )
        learnt = learn(values, names, _TEST, form.level, background, bidirected=False, max_graphs=MEMBERS)
    except TableError as error:
        found.fault("data", str(error))
        return None
    except ValueError as error:
        # For instance more graphs than can be compared.
        found.fault("graph", f"cannot be learnt: {error}; write what is known, as forbidden or required")
        return None
    first, count = learnt.graphs[0], len(learnt.graphs)
    arrows = ", ".join(f"{cause} -> {effect}" for cause, effect in first.edges) or "no arrow"
    agreeing = "the only graph that agrees with them and the roles"
    if count > 1:
        agreeing = f"one of {count} graphs that agree with them and the roles"
        agreeing += "; each decision says under which it stands"
    note = f"the graph was learnt from {len(values)} rows, without hidden common causes: {arrows}; {agreeing}"
    return KnownGraph(first, tuple(learnt.graphs), (note, *learnt.notes))


def equally_likely(graphs: Sequence[RehearsalGraph]) -> GraphClass | None:
    """Graphs with equal weights; None for fewer than two, which leave nothing to compare."""
    return None if len(graphs) < 2 else GraphClass(tuple(graphs), (1.0,) * len(graphs))


def _arrows(lines: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs (cause, effect) of arrows as text; ValueError for what is no arrow between variables."""
    pairs: list[tuple[str, str]] = []
    for line in lines:
        try:
            edges = edges_of(line)
        except ValueError as error:
            raise ValueError(f"{line!r}: {error}") from error
        if edges.bidirected or not edges.directed:
            raise ValueError(f"{line!r} is no arrow: expected cause -> effect")
        if unknown := [name for name in edges.names if name not in names]:
            raise ValueError(f"{unknown[0]!r} in {line!r} is not under variables")
        pairs += edges.directed
    return pairs
