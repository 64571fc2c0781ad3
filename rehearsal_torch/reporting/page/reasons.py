"""What the answers of a run rest on: adjustment, assumptions and graph, findings by kind.

Hidden common causes, other graphs and findings are shown as they were recorded. Nothing is computed here but
counts, and what the recorded graph asks to adjust for (`graphs.separation`). The graph of the data card is
drawn from left to right; one of more than `DRAWN` variables is listed, not drawn.
"""

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal_torch.data.codings.decision_texts import recorded_codings
from rehearsal_torch.data.finding import KINDS, texts_of
from rehearsal_torch.evaluation import overturning_sentences
from rehearsal_torch.evaluation.run_record import Decided
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import adjustment
from rehearsal_torch.reporting import no_action_score
from rehearsal_torch.reporting.figure_style import drawing, svg
from rehearsal_torch.reporting.figures.graph_figure import graph_figure
from rehearsal_torch.reporting.page.html import Figure, embedded, name_of, sentence, words
from rehearsal_torch.reporting.page.page_content import Material, and_list, counted, listed, mapping

DRAWN, LISTED = 40, 400
# Assumptions, by the kind of a run.
ALTERATIONS, TRIALS, SEQUENCES = (tuple(words(name)) for name in ("alterations", "trials", "sequences"))
# Candidate sets whose covariates are named one by one.
_MOST_SETS = 12
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_UNKNOWN = "The run left no status: it was killed, or has not ended yet; the page shows what there was."
_NOTHING = "Nothing is recommended, so there is no recommendation that a hidden common cause could overturn."


@dataclass(frozen=True)
class FindingGroup:
    """Findings of one kind: how many decisions have one, the sentences that differ in more than numbers, and
    whether they `vary` in these; then those of the `first` case are shown.
    """

    kind: str
    count: int
    texts: tuple[str, ...]
    varies: bool
    first: str


def by_kind(decisions: Sequence[Decided], key: str = "findings") -> list[FindingGroup]:
    """The findings of decisions, or their reasons, by kind, the most frequent kind first."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for decision in decisions:
        records = listed(decision.get(key)) if key == "findings" else [decision.get(key)]
        for record in map(mapping, records):
            if record:
                entry = (name_of(decision), str(record.get("text", "")))
                kind = str(record.get("kind"))
                groups.setdefault(kind if kind in KINDS else "note", []).append(entry)
    found = []
    for kind, entries in groups.items():
        alike: dict[str, str] = {}
        for _, text in entries:
            alike.setdefault(_NUMBER.sub("#", text), text)
        names = dict.fromkeys(name for name, _ in entries)
        varies = len({text for _, text in entries}) > len(alike)
        found.append(FindingGroup(kind, len(names), tuple(alike.values()), varies, entries[0][0]))
    return sorted(found, key=lambda group: -group.count)


def adjustments(report: Material) -> list[str]:
    """For each candidate set, the rows among which it is compared; empty without a readable graph."""
    try:
        graph = graph_of(report.card)
        if graph is None:
            return []
        context, alterable, outcomes = roles_in(graph, report.card)
        codings = recorded_codings(report.card.get("codings")).values()
        variable_of = {column: coding.name for coding in codings for column in coding.columns}
        sets = [
            tuple(dict.fromkeys(variable_of.get(str(name), str(name)) for name in listed(names)))
            for names in listed(report.card.get("candidates")) or [[name] for name in alterable]
        ]
        suggested = [
            (names, adjustment(graph, context, names, outcomes))
            for names in dict.fromkeys(sets)
            if names and set(names) <= set(graph.names)
        ]
    except (ValueError, TypeError, KeyError):
        return []
    sentences = []
    for names, covariates in suggested[:_MOST_SETS]:
        before = [*context, *covariates.before]
        by_adjustment = bool(report.record.get("by_adjustment"))
        details = covariates.between, covariates.front_door, by_adjustment, covariates.reasons
        sentences.append(sentence("adjusted", names, before, *details))
    more = len(suggested) - len(sentences)
    return sentences + ([f"{counted(more, 'further candidate set')}: see model.explain."] if more > 0 else [])


def overturning(report: Material) -> list[str]:
    """What would overturn the recommendations, in sentences; empty where it is not known."""
    decisions = report.run.decisions
    if report.sequences:
        texts = [overturning_sentences.sequences_overall(decisions, report.words.actions)]
    elif not report.alterations:
        texts = []
    elif all(decision.get("alteration") is None for decision in decisions):
        texts = [_NOTHING]
    else:
        texts = [overturning_sentences.overall(decisions), overturning_sentences.graphs_overall(decisions)]
    return [text for text in texts if text]


@dataclass(frozen=True)
class GraphView:
    """The graph of a data card: figure, edges in words, what its legend explains, and what is wrong."""

    figure: Figure | None = None
    edges: tuple[str, ...] = ()
    hidden: bool = False
    settable: bool = False
    fault: str = ""


def graph_view(report: Material) -> GraphView:
    """The graph as it was given; of a large one the edges alone."""
    try:
        graph = graph_of(report.card)
    except (ValueError, TypeError) as error:
        return GraphView(fault=f"The graph in data.yaml cannot be drawn: {error}.")
    if graph is None or not graph.names:
        return GraphView(fault="The run recorded no graph.")
    edges = [f"{and_list(graph.parents(name))} → {name}" for name in graph.names if graph.parents(name)]
    edges += [f"{first} ↔ {second}" for first, second in graph.bidirected]
    more = len(edges) - LISTED
    edges = [*edges[:LISTED], *([f"and {more} more, in data.yaml"] if more > 0 else [])]
    if len(graph.names) > DRAWN:
        fault = f"The graph has {len(graph.names)} variables, too many to be drawn."
        return GraphView(edges=tuple(edges), fault=fault)
    roles = roles_in(graph, report.card)
    with warnings.catch_warnings(), drawing():
        # Letters that matplotlib's font lacks are drawn by the browser, with its own.
        warnings.filterwarnings("ignore", r"Glyph .* missing from")
        picture = svg(graph_figure(graph, *roles))
    size = f"{counted(len(graph.names), 'variable')} with {counted(len(graph.edges), 'arrow')}"
    figure = embedded(picture, "graph", "The causal graph, as it was given", f"{size}.")
    return GraphView(figure, tuple(edges), bool(graph.bidirected), bool(roles[1]))


def graph_of(card: dict[str, Any]) -> RehearsalGraph | None:
    """The graph of a data card, None if there is none; ValueError or TypeError if it cannot be read."""
    plain = mapping(card.get("graph"))
    if not plain:
        return None
    cliques = tuple(tuple(map(str, listed(clique))) for clique in listed(plain.get("cliques")))
    return RehearsalGraph(cliques, _pairs(plain.get("edges")), _pairs(plain.get("hidden")))


def roles_in(graph: RehearsalGraph, card: dict[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """Context, alterable variables and outcomes, as far as the graph has them."""
    region_names = listed(mapping(card.get("region")).get("names"))
    reward = mapping(card.get("reward"))
    outcomes = region_names or [*mapping(reward.get("weights")), *mapping(reward.get("targets"))]

    def in_graph(names: Iterable[object]) -> list[str]:
        return [str(name) for name in dict.fromkeys(names) if str(name) in graph.names]

    alterable = [name for key in ("box", "actions", "settable") for name in mapping(card.get(key))]
    return in_graph(map(str, listed(card.get("context")))), in_graph(alterable), in_graph(map(str, outcomes))


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    """Lists of two names as tuples."""
    pairs = [tuple(map(str, listed(pair))) for pair in listed(value)]
    malformed = [pair for pair in pairs if len(pair) != 2]
    if malformed:
        raise ValueError(f"expected edges with two ends; got {malformed[0]}")
    return tuple((first, second) for first, second in pairs)


def warnings_of_run(report: Material) -> list[str]:
    """How the run ended, if not well; warnings and notes of its data; what is known of its checkpoint."""
    texts = []
    if not report.ended and report.status.get("state") != "ok":
        state, message = report.status.get("state"), report.status.get("message", "")
        texts.append(f"The run did not end well ({state}): {message}" if state else _UNKNOWN)
    texts += [str(report.card["caution"])] if "caution" in report.card else []
    texts += [*texts_of(report.card), *map(str, listed(report.card.get("notes")))]
    texts += [str(text) for text in listed(report.record.get("training_faults"))]
    if report.run.config.get("checkpoint") and report.run.held_out_seen:
        texts.append(f"{no_action_score.SEEN}.")
    return texts
