"""Adjustment: which covariates turn observations into the effect of an alteration.

With context x, the law of Y after altering A is

    p(y | x, a altered) = int p(y | x, u, a) p(u | x) du

when X and U hold no descendant of A and block every non-causal path from A to Y. A variable V that follows one altered
variable, precedes another, and influences the outcome otherwise spoils this: it is a consequence of the first and a
confounder of the second. Then the sequential formula holds,

    p(y | x, a altered) = int int p(y | x, u, a, v) p(v | x, u, a_first) p(u | x) dv du.

Both conditions are checked by d-separation, a bi-directional edge standing for a hidden common cause; so does that of a bow, an
arrow a -> b beside a <-> b. From an altered variable to an outcome, a bow cannot be adjusted for, and the reasons name it.

Source: Pearl and Robins (1995), Thm. 1 (sequential back-door); Shpitser, VanderWeele and Robins (2010) (adjustment);
Du et al. (2026), Def. 1 and Prop. 1, who require a sufficient decomposition and do not say how to find it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import networkx as nx

from rehearsal_torch.graphs.rehearsal import RehearsalGraph


@dataclass(frozen=True)
class Adjustment:
    """What to adjust for, and whether that suffices.

    Attributes:
        before: U, covariates that the alteration does not influence.
        between: V, covariates between two alterations; empty where the single formula serves.
        first: The altered variables that precede V.
        reasons: Why the formula does not hold; empty where it holds.
    """

    before: tuple[str, ...]
    between: tuple[str, ...]
    first: tuple[str, ...]
    reasons: tuple[str, ...]


def adjustment(graph: RehearsalGraph, context: Sequence[str], altered: Sequence[str], outcomes: Sequence[str], sequential: bool = True) -> Adjustment:
    """The covariates for altering a set of variables.

    Args:
        graph: Who influences whom.
        context: X.
        altered: A.
        outcomes: Y.
        sequential: Looks for covariates between alterations; without it, they are left out and the reasons say so.

    Returns:
        U: every intermediate variable that A does not influence and that leads to A or Y, actionable ones that are not altered now included. V: what
        lies between, together with what the later alterations do not influence and that leads to Y.
    """
    known, cut = set(context), graph.altered(altered)
    leading = graph.ancestors([*altered, *outcomes])
    after = cut.descendants(altered)
    outside = known | set(altered) | set(outcomes)
    before = tuple(name for name in graph.names if name in leading and name not in after and name not in outside)
    reasons = []
    for clique in graph.cliques:
        some = [name for name in clique if name in altered]
        if some and len(some) < len(clique):
            rest = [name for name in clique if name not in altered]
            reasons.append(f"{some} and {rest} influence each other: how {rest} follow an alteration of {some} is not seen in observations")
    bows = "".join(f" ({one} -> {other} stands beside {one} <-> {other})" for one, other in graph.bows if {one, other} & (set(altered) | after))
    bridges = [name for name in graph.names if name in after and name not in outside and _spoils(graph, name, altered, outcomes)]
    if bridges and not sequential:
        reasons.append(f"{bridges} lie between alterations and influence a later one and the outcome: use the sequential formula")
    if not bridges or not sequential:
        if not bridges and not _separated(graph, altered, altered, outcomes, known | set(before)):
            reasons.append(f"{list(altered)} and {list(outcomes)} have a common cause that {[*context, *before]} do not block{bows}")
        return Adjustment(before, (), (), tuple(reasons))
    earliest = [name for name in altered if any(bridge in graph.descendants([name]) - {name} for bridge in bridges)]
    later = [name for name in altered if name not in earliest or any(name in graph.descendants([bridge]) for bridge in bridges)]
    first = tuple(name for name in altered if name not in later)
    untouched = cut.descendants(later)
    between = tuple(name for name in graph.names if name in after and name in leading and name not in outside and name not in untouched)
    if not first or any(bridge in cut.descendants(later) for bridge in bridges):
        reasons.append(f"{bridges} lie in more than one place between alterations: alter fewer variables at once")
    elif not _separated(graph, first, altered, outcomes, known | set(before)):
        reasons.append(f"{list(first)} and {list(outcomes)} have a common cause that {[*context, *before]} do not block{bows}")
    elif not _separated(graph, later, later, outcomes, known | set(before) | set(first) | set(between)):
        reasons.append(f"{later} and {list(outcomes)} have a common cause that {[*context, *before, *between]} do not block{bows}")
    return Adjustment(before, between, first, tuple(reasons))


def _spoils(graph: RehearsalGraph, name: str, altered: Sequence[str], outcomes: Sequence[str]) -> bool:
    """Whether a consequence of one alteration leads to another altered variable and, past all altered ones, to the outcome."""
    to_later = any(later in graph.descendants([name]) for later in altered)
    past = graph.altered(altered).descendants([name])
    return to_later and any(outcome in past for outcome in outcomes)


def _separated(graph: RehearsalGraph, moved: Iterable[str], altered: Iterable[str], outcomes: Iterable[str], given: set[str]) -> bool:
    """Whether `given` blocks every path from `moved` to the outcomes that is not causal: arrows out of `moved`, and into later altered variables, are cut."""
    moved, later = set(moved), set(altered) - set(moved)
    whole = nx.DiGraph()
    whole.add_nodes_from(graph.names)
    whole.add_edges_from((source, target) for source, target in graph.edges if source not in moved and target not in later)
    for clique in graph.cliques:
        for one, other in combinations(clique, 2):
            whole.add_edges_from((("hidden", one, other), end) for end in (one, other) if end not in later)
    for one, other in graph.bows:
        whole.add_edges_from((("hidden", one, other), end) for end in (one, other) if end not in later)
    return bool(nx.is_d_separator(whole, moved, set(outcomes) - given, given - moved - set(outcomes)))
