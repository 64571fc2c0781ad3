"""What the answers rest on: the graph, drawn and listed, and what the kind of method takes for granted.

The graph is the one of the data card, drawn from left to right. Graphs of more than `DRAWN` variables are
listed, not drawn.
"""

import warnings
from collections.abc import Iterable
from typing import Any

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.reporting.figures.graph import graph_figure
from rehearsal_torch.reporting.page.markup import Markup, bullets, joined, paragraphs, tag
from rehearsal_torch.reporting.page.material import Material, counted, listed, mapping
from rehearsal_torch.reporting.page.pictures import embedded
from rehearsal_torch.reporting.page.question import region, settable
from rehearsal_torch.reporting.style import drawing, svg

DRAWN, LISTED = 40, 400
# What alterations of cases take for granted.
ALTERATIONS = (
    "Chances are estimated from past rows. They hold for actions only if the graph is right and no hidden "
    "common cause of an action and an outcome is missing from it.",
    "An interval covers noise and small samples, not a wrong graph.",
)
TRIALS = (
    "Each node is a function of its parents, of actions and of noise of its own; a hidden common cause would "
    "have to be measured and included.",
    "A predicted reward is the model's expectation, not a measurement.",
)
SEQUENCES = (
    "An episode is replayed under other actions with the noise that the fitted model finds in it; the model, "
    "not a trial, says what would have happened.",
    "It is assumed that no hidden common cause acts on both the actions and the states.",
)
_LEGEND = (
    ("X, Z, Y", "known before deciding, in between, outcomes"),
    ("solid arrow", "direct influence"),
    ("dashed line", "two heads: a hidden common cause, or mutual influence"),
    ("thick frame", "may be set"),
)


def assumptions(of: Material) -> Markup:
    """The section's content."""
    sentences = ALTERATIONS if of.alterations else TRIALS if of.trials else SEQUENCES if of.sequences else ()
    return joined([paragraphs(sentences), _graph(of)])


def _graph(of: Material) -> Markup:
    try:
        graph = graph_of(of.card)
        if graph is None:
            return tag("p", "The run recorded no graph.")
        return joined([_drawn(graph, of), _edges(graph)])
    except (ValueError, TypeError) as error:
        return tag("p", f"The graph in data.yaml cannot be drawn: {error}.")


def graph_of(card: dict[str, Any]) -> RehearsalGraph | None:
    """The graph of a data card; None if there is none.

    Raises:
        ValueError: if it is none that can be read.
        TypeError: the same.
    """
    plain = mapping(card.get("graph"))
    if not plain:
        return None
    cliques = tuple(tuple(map(str, listed(clique))) for clique in listed(plain.get("cliques")))
    return RehearsalGraph(cliques, _pairs(plain.get("edges")), _pairs(plain.get("bows")))


def _drawn(graph: RehearsalGraph, of: Material) -> Markup | None:
    """The picture and its legend; None for graphs that are too large."""
    if len(graph.names) > DRAWN:
        return tag("p", f"The graph has {len(graph.names)} variables, too many to be drawn.")
    roles = roles_in(graph, of.card)
    with warnings.catch_warnings(), drawing():
        # Letters that matplotlib's font lacks are drawn by the browser, with its own.
        warnings.filterwarnings("ignore", r"Glyph .* missing from")
        picture = svg(graph_figure(graph, *roles))
    alternative = (
        f"Causal graph of {counted(len(graph.names), 'variable')} with {counted(len(graph.edges), 'arrow')}; "
        "all of them are listed below."
    )
    legend = [
        (sign, meaning)
        for sign, meaning in _LEGEND
        if (sign != "dashed line" or graph.bidirected) and (sign != "thick frame" or roles[1])
    ]
    shown = bullets((joined([tag("b", sign), f" {meaning}"]) for sign, meaning in legend), "legend")
    return joined([embedded(picture, alternative, "The causal graph, as it was given."), shown])


def roles_in(graph: RehearsalGraph, card: dict[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """Context, alterable variables and outcomes, as far as the graph has them."""
    region_names = listed(mapping(card.get("region")).get("names"))
    reward = mapping(card.get("reward"))
    outcomes = region_names or [*mapping(reward.get("weights")), *mapping(reward.get("targets"))]

    def in_graph(names: Iterable[object]) -> list[str]:
        return [str(name) for name in dict.fromkeys(names) if str(name) in graph.names]

    alterable = [*mapping(card.get("box")), *mapping(card.get("actions"))]
    return in_graph(map(str, listed(card.get("context")))), in_graph(alterable), in_graph(map(str, outcomes))


def _edges(graph: RehearsalGraph) -> Markup:
    """Each variable with what acts on it directly, and pairs with a hidden common cause."""
    lines = [f"{' and '.join(graph.parents(name))} → {name}" for name in graph.names if graph.parents(name)]
    pairs = [f"{first} ↔ {second}" for first, second in graph.bidirected]
    every = [*lines, *pairs]
    more = len(every) - LISTED
    rest = [f"and {more} more, in data.yaml"] if more > 0 else []
    return tag(
        "details",
        tag("summary", "The same graph in words"),
        bullets([*every[:LISTED], *rest]) or tag("p", "No variable acts on another."),
        open=True,
    )


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    """Lists of two names as tuples."""
    pairs = [tuple(map(str, listed(pair))) for pair in listed(value)]
    wrong = [pair for pair in pairs if len(pair) != 2]
    if wrong:
        raise ValueError(f"expected edges with two ends; got {wrong[0]}")
    return tuple((first, second) for first, second in pairs)


def limits(of: Material) -> list[tuple[str, str]]:
    """What the task allows and wants, name to words, for the data card."""
    limits_in_words = [("may be set", "; ".join(settable(of.card, "box") + settable(of.card, "actions")))]
    limits_in_words += [("desired region", " and ".join(region(of.card)))]
    return [(name, words) for name, words in limits_in_words if words]
