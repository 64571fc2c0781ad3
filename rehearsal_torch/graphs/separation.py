"""Separation in rehearsal graphs: c-separation, and valid covariate adjustment for an alteration.

c-separation. In a rehearsal graph a path may run through several members of one clique, m1 <-> ... <-> ml.
Given Z, such a run blocks the path

    as a chain or fork   if a member with an arrow out of the run, along the path, lies in Z
    as a collider        if neither a member of the run nor a descendant of one lies in Z

and Z c-separates X from Y when every path between them is blocked. Paths are not enumerated. Edges into one
member of a clique go into all of them, so it suffices to record for each clique whether it was entered from a
cause ("below") or from within or from an effect ("above"). Any entry continues to the effects of every member
outside Z; entering from above, or from below where the clique or a descendant is in Z, continues to the
causes outside Z. Each edge is visited at most twice.

The definition differs in one place from the printed one, which blocks a chain or fork only if the *whole*
run lies in Z. With p -> {m, n}, m <-> n, n -> y and Z = {n}, the printed one leaves p -> m <-> n -> y open,
though every distribution P(p) P(m, n | p) P(y | n) makes p and y independent given n, and every compatible
directed graph d-separates them: Thm. 16 and 17 would not hold. (Their proof lets the path leave through m,
which has no arrow to y.) With the definition above they do; whatever the printed one separates, this one
separates as well, so Thm. 15 is not affected.

Adjustment. With context x, the distribution of Y after altering A is

    p(y | x, a altered) = int p(y | x, u, a) p(u | x) du

if X and U contain no descendant of A and block every non-causal path from A to Y. A variable V that is an
effect of one altered variable, a cause of another, and influences the outcome otherwise violates this: it is
a consequence of the first and a confounder of the second. Then the sequential formula applies,

    p(y | x, a altered) = int int p(y | x, u, a, v) p(v | x, u, a_first) p(u | x) dv du.

Both conditions are checked by d-separation, with a hidden common cause for each bi-directional edge,
including that of a bow, an edge a -> b together with a <-> b. A bow from an altered variable to an outcome
cannot be adjusted for, and the reasons name it.

Influence. Setting A changes an outcome only if a directed path leads from A to it in the graph in which A is
set. Where there is none, the graph implies that Y and A are independent given the common causes Z. This is a
test of the graph that needs no further data: with leave-one-out residuals of regressions on Z,

    R_i = (a_i - E[a | z_i]) (y_i - E[y | z_i]),        T = sqrt(n) mean(R) / sd(R),

T is asymptotically standard normal under independence (the generalised covariance measure). The regressions
are kernel ridge regressions, with width and ridge chosen by the leave-one-out error; a^2 is tested beside a.
Rows that follow each other in time are not independent: sd(R) includes their autocorrelation up to n^(1/3)
steps, but not slower drifts.

Missing arrows. Two variables that no edge joins are independent given a set that separates them; each such
claim can be tested (`data.graph_check`).

Source: Qin et al. (2023), Sec. 2 (alteration graphs), Def. 12, Lemma 13, Thm. 15-17; Shachter (1998)
(Bayes-Ball, the search without paths); Pearl and Robins (1995), Thm. 1 (sequential back-door); Shpitser,
VanderWeele and Robins (2010) (adjustment); Du et al. (2026), Def. 1 and Prop. 1, who require a sufficient
decomposition and do not say how to find it; Shah and Peters (2020), Eq. 3 (generalised covariance measure);
Newey and West (1987) (correlated rows); van der Zander, Liskiewicz and Textor (2019), Thm. 1 (the ancestors
separate if any set does).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.graphs.mixed_graph import Node, RehearsalGraph, closure


@dataclass(frozen=True)
class Adjustment:
    """Covariates to adjust for: U, which the alteration does not influence, and V, between two alterations,
    empty where the single formula suffices; the altered variables that precede V; and why the formula does
    not hold, empty if it holds.
    """

    before: tuple[str, ...]
    between: tuple[str, ...]
    first: tuple[str, ...]
    reasons: tuple[str, ...]


def adjustment(
    graph: RehearsalGraph,
    context: Sequence[str],
    altered: Sequence[str],
    outcomes: Sequence[str],
    sequential: bool = True,
) -> Adjustment:
    """The covariates for altering a set of variables, given context X and outcomes Y. Unless `sequential`,
    covariates between alterations are left out and the reasons say so.

    U is every intermediate variable that A does not influence and that leads to A or Y, including actionable
    variables that are not altered; V the variables in between, and those that the later alterations do not
    influence and that lead to Y.
    """
    known = set(context)
    leading = graph.ancestors([*altered, *outcomes])
    after = graph.descendants(altered, altered)
    outside = known | set(altered) | set(outcomes)
    before = tuple(
        name for name in graph.names if name in leading and name not in after and name not in outside
    )
    reasons = []
    for clique in graph.cliques:
        part = ", ".join(name for name in clique if name in altered)
        rest = ", ".join(name for name in clique if name not in altered)
        if part and rest:
            reasons.append(
                f"{part} and {rest} influence each other: observations do not show how {rest} respond to an "
                f"alteration of {part}"
            )
    bows = "".join(
        f" ({source} -> {target} accompanies {source} <-> {target})"
        for source, target in graph.bows
        if {source, target} & (set(altered) | after)
    )
    bridges = [
        name
        for name in graph.names
        if name in after and name not in outside and _spoils(graph, name, altered, outcomes)
    ]
    if bridges and not sequential:
        reasons.append(
            f"{', '.join(bridges)} lie between alterations and influence a later one and the outcome: use "
            "the sequential formula"
        )
    if not bridges or not sequential:
        if not bridges and not _separated(graph, altered, altered, outcomes, known | set(before)):
            reasons.append(_common(altered, outcomes, [*context, *before]) + bows)
        return Adjustment(before, (), (), tuple(reasons))
    earliest = [
        name for name in altered if any(bridge in graph.descendants([name]) - {name} for bridge in bridges)
    ]
    later = [
        name
        for name in altered
        if name not in earliest or any(name in graph.descendants([bridge]) for bridge in bridges)
    ]
    first = tuple(name for name in altered if name not in later)
    unaffected = graph.descendants(later, altered)
    between = tuple(
        name
        for name in graph.names
        if name in after and name in leading and name not in outside and name not in unaffected
    )
    if not first or any(bridge in unaffected for bridge in bridges):
        reasons.append(
            f"{', '.join(bridges)} lie in more than one place between alterations: alter fewer variables at "
            "once"
        )
    elif not _separated(graph, first, altered, outcomes, known | set(before)):
        reasons.append(_common(first, outcomes, [*context, *before]) + bows)
    elif not _separated(graph, later, later, outcomes, known | set(before) | set(first) | set(between)):
        reasons.append(_common(later, outcomes, [*context, *before, *between]) + bows)
    return Adjustment(before, between, first, tuple(reasons))


def _common(altered: Sequence[str], outcomes: Sequence[str], known: Sequence[str]) -> str:
    """That a common cause of two sets of variables remains."""
    blocked = f"is not blocked by {', '.join(known)}" if known else "nothing known blocks"
    return f"{', '.join(altered)} and {', '.join(outcomes)} have a common cause that {blocked}"


def _spoils(graph: RehearsalGraph, name: str, altered: Sequence[str], outcomes: Sequence[str]) -> bool:
    """Whether one alteration's consequence leads to another altered variable, and to the outcome itself."""
    if graph.descendants([name]).isdisjoint(altered):
        return False
    return not graph.descendants([name], altered).isdisjoint(outcomes)


def _separated(
    graph: RehearsalGraph,
    moved: Iterable[str],
    altered: Iterable[str],
    outcomes: Iterable[str],
    given: set[str],
) -> bool:
    """Whether `given` blocks every non-causal path from `moved` to the outcomes: edges out of `moved`, and
    into later altered variables, are cut.
    """
    moved, asked = _named(graph, moved), _named(graph, outcomes)
    reached = _open_from(graph, moved, given - moved - asked, moved, set(altered) - moved)
    return reached.isdisjoint(asked - given)


def _open_from(
    graph: RehearsalGraph,
    start: Collection[str],
    known: Collection[str],
    without: Collection[str] = (),
    into: Collection[str] = (),
) -> set[Hashable]:
    """What an open path given `known` joins with `start`, each bi-directional edge being a hidden common
    cause: without edges out of `without`, and `into` some.
    """
    hidden = [(pair, end) for pair in graph.bidirected for end in pair]
    effects, causes = defaultdict[Hashable, list[Hashable]](list), defaultdict[Hashable, list[Hashable]](list)
    for source, target in (*graph.edges, *hidden):
        if source not in without and target not in into:
            effects[source].append(target)
            causes[target].append(source)
    return _reached(
        start,
        lambda name: () if name in known else effects.get(name, ()),
        lambda name: [cause for cause in causes.get(name, ()) if cause not in known],
        closure(known, causes),
    )


def missing_arrows(graph: RehearsalGraph) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The independences that a graph implies, one for each pair that no edge joins and some set separates:
    the earlier variable, the later one, and the set. It is the later one's parents, and, unless the earlier
    one leads to it, those of both: they separate where there are no bi-directional edges. Else it is the
    ancestors of both, which separate if any set does.
    """
    joined = {frozenset(pair) for pair in (*graph.edges, *graph.bidirected)}
    for place, later in enumerate(graph.names):
        leading = graph.ancestors((later,))
        for name in graph.names[:place]:
            if frozenset((name, later)) in joined:
                continue
            parents = graph.parents((later,) if name in leading else (name, later))
            for given in (parents, graph.ancestors((name, later)) - {name, later}):
                if name not in given and name not in _open_from(graph, (later,), given):
                    yield name, later, tuple(each for each in graph.names if each in given)
                    break


def c_separated(
    graph: RehearsalGraph,
    one: str | Iterable[str],
    other: str | Iterable[str],
    given: str | Iterable[str] = (),
) -> bool:
    """Whether Z, `given`, c-separates X from Y, each a variable or several (Def. 12).

    Raises:
        ValueError: if the three sets are not disjoint, or name an unknown variable.
    """
    x, y, z = _named(graph, one), _named(graph, other), _named(graph, given)
    if shared := sorted((x & y) | (x & z) | (y & z)):
        raise ValueError(f"expected three disjoint sets; {shared} are in two of them: remove them from one")
    return not connected(graph, x, z) & y


def connected(
    graph: RehearsalGraph, sources: str | Iterable[str], given: str | Iterable[str] = ()
) -> frozenset[str]:
    """Every variable outside `given` that `given` does not c-separate from `sources`, including the sources;
    ValueError if the two sets overlap, or name an unknown variable.
    """
    start, known = _named(graph, sources), _named(graph, given)
    if start & known:
        raise ValueError(
            f"expected sources outside `given`; got {sorted(start & known)} in both: remove them from one"
        )
    clique_of = {name: index for index, clique in enumerate(graph.cliques) for name in clique}
    effects: list[set[int]] = [set() for _ in graph.cliques]
    for source, target in graph.edges:
        if source not in known:
            effects[clique_of[source]].add(clique_of[target])
    causes = [{clique_of[name] for name in parents if name not in known} for _, parents in graph.factors]
    # A clique is open as a collider if one of its members, or a descendant of one, is in Z.
    opened = {clique_of[name] for name in graph.ancestors(known)}
    reached = _reached({clique_of[name] for name in start}, effects.__getitem__, causes.__getitem__, opened)
    return frozenset(name for index in reached for name in graph.cliques[index] if name not in known)


def _reached(
    start: Collection[Node],
    effects: Callable[[Node], Iterable[Node]],
    causes: Callable[[Node], Iterable[Node]],
    opened: Collection[Node],
) -> set[Node]:
    """The nodes to which an open path leads; `effects` and `causes` of a node are those to which it may
    continue, and `opened` those that are open as colliders.
    """
    above, below = set(start), set[Node]()
    waiting = [(node, True) for node in start]
    while waiting:
        node, entered_above = waiting.pop()
        following = [(effect, False) for effect in effects(node) if effect not in below]
        if entered_above or node in opened:
            following += [(cause, True) for cause in causes(node) if cause not in above]
        for neighbour, upwards in following:
            (above if upwards else below).add(neighbour)
        waiting += following
    return above | below


def _named(graph: RehearsalGraph, names: str | Iterable[str]) -> frozenset[str]:
    """A set of variables of the graph; a string is one variable."""
    variables = frozenset((names,) if isinstance(names, str) else names)
    if unknown := sorted(variables - set(graph.names)):
        raise ValueError(f"unknown variables {unknown}: the variables are {list(graph.names)}")
    return variables


WIDTHS, RIDGES, MAX_POINTS = (0.3, 0.6, 1.2, 2.5, 5.0), (1e-3, 1e-2, 1e-1, 1.0), 300


def reaches(graphs: Iterable[RehearsalGraph], altered: Sequence[str], outcomes: Sequence[str]) -> bool:
    """Whether setting variables can change an outcome according to at least one of the graphs."""
    return any(bool(graph.descendants(altered, altered) & set(outcomes)) for graph in graphs)


def dependence(action: Tensor, outcomes: Tensor, given: Tensor) -> float:
    """The p-value of the hypothesis that no outcome (n, |Y|) depends on the action (n,) given covariates (n,
    q), in any units; of more than 300 rows, 300 evenly spaced ones are used. It is the smallest of a and a^2
    with each outcome, times the number of tests (Bonferroni), at most 1; 1 if there are fewer than 20 rows.
    """
    if len(action) < 20:
        return 1.0
    count = len(action)
    rows = torch.linspace(0, count - 1, min(MAX_POINTS, count), dtype=torch.float64).round().long()
    rows = rows.to(action.device)
    standardised = _standardised(action[rows].double().unsqueeze(-1))
    tested = _standardised(torch.cat([standardised, standardised.square(), outcomes[rows].double()], -1))
    residuals = _left_out(_standardised(given[rows].double()), tested)
    smallest = 1.0
    for moved in residuals[:, :2].T:
        for outcome in residuals[:, 2:].T:
            smallest = min(smallest, _p_value(moved * outcome))
    return min(1.0, smallest * 2 * outcomes.shape[-1])


def _left_out(inputs: Tensor, targets: Tensor) -> Tensor:
    """Leave-one-out residuals (n, m) of kernel ridge regressions of targets (n, m) on inputs (n, q)."""
    count = len(targets)
    if not inputs.shape[-1]:
        return (targets - targets.mean(0)) * count / (count - 1)
    distance = torch.cdist(inputs, inputs).square() / inputs.shape[-1]
    best, error = targets - targets.mean(0), targets.square().mean(0)
    for width in WIDTHS:
        # The constant kernel models the mean, so that predictions are not shrunk towards zero.
        values, vectors = torch.linalg.eigh(torch.exp(-distance / (2 * width**2)) + 10.0)
        turned = vectors.mT @ targets
        for ridge in RIDGES:
            inverse = 1 / (values.clamp_min(0) + ridge)
            errors = (vectors @ (inverse.unsqueeze(-1) * turned)) / (vectors.square() @ inverse).unsqueeze(-1)
            squares = errors.square().mean(0)
            best, error = torch.where(squares < error, errors, best), torch.minimum(squares, error)
    return best


def _p_value(products: Tensor) -> float:
    """Two-sided p-value of a mean of zero, for rows uncorrelated beyond n^(1/3) steps."""
    count, mean = len(products), float(products.mean())
    centred = products - mean
    steps = max(1, round(count ** (1 / 3)))
    variance = float(centred.square().mean())
    if variance <= 1e-24:
        return 1.0
    correlated = sum(
        2 * (1 - lag / (steps + 1)) * float((centred[lag:] * centred[:-lag]).sum() / count)
        for lag in range(1, steps + 1)
    )
    statistic = math.sqrt(count) * abs(mean) / math.sqrt(max(variance + correlated, variance))
    return math.erfc(statistic / math.sqrt(2))


def _standardised(columns: Tensor) -> Tensor:
    if not columns.shape[-1]:
        return columns
    spread = columns.std(0, correction=0)
    return (columns - columns.mean(0)) / torch.where(spread > 0, spread, torch.ones_like(spread))
