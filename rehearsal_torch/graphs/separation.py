"""Separation in rehearsal graphs: c-separation, and valid covariate adjustment for an alteration.

c-separation. In a rehearsal graph a path may run through several members of one clique, m1 <-> ... <-> ml.
Given Z, such a run blocks the path

    as a chain or fork   if a member with an arrow out of the run, along the path, lies in Z
    as a collider        if neither a member of the run nor a descendant of one lies in Z

and Z c-separates X from Y when every path between them is blocked. As edges into one member of a clique go
into all, this is d-separation with a hidden common cause in the place of each bi-directional edge
(m-separation), which has a meaning for hidden pairs outside of cliques as well. Paths are not enumerated: it
suffices to record for each variable whether it was entered from a cause ("below") or from an effect
("above"), so that each edge is visited at most twice.

The definition differs in one place from the printed one, which blocks a chain or fork only if the *whole*
run lies in Z. With p -> {m, n}, m <-> n, n -> y and Z = {n}, the printed one leaves p -> m <-> n -> y open,
though every distribution P(p) P(m, n | p) P(y | n) makes p and y independent given n, and every compatible
directed graph d-separates them: Thm. 16 and 17 would not hold. (Their proof lets the path leave through m,
which has no arrow to y.) With the definition above they do; whatever the printed one separates, this one
separates as well, so Thm. 15 is not affected.

Adjustment. With context x, the distribution of Y after altering A is

    p(y | x, a altered) = int p(y | x, u, a) p(u | x) du

if X and U contain no descendant of A and block every non-causal path from A to Y. Of all such U, the one that
has every variable which leads to A, Y or X, and which A does not influence, blocks whatever any of them does.
A variable V that is an effect of one altered variable and leads to another may be a consequence of the first
and a confounder of the second. Then the sequential formula applies,

    p(y | x, a altered) = int int p(y | x, u, a, v) p(v | x, u, a_first) p(u | x) dv du.

Front door. Where hidden causes of A and Y leave no such U, variables V between them may do. If every directed
path from A to Y goes through V, V leads to no member of A, and (X, U) blocks the paths into A between A and
V, and (X, U, A) those into V between V and Y, then

    p(y | x, a altered) = int p(u | x) int p(v | x, u, a) int p(y | x, u, v, a') p(a' | x, u) da' dv du:

the outcome sees the action a' that is usual, and what V has become by the one that is set.

All conditions are checked by d-separation, with a hidden common cause for each bi-directional edge, be it of
a clique, of a bow, or of cliques that would overlap. So the formulas read a <-> b as a common cause alone: a
setting of a leaves b as it is. If the two influence each other, as members of a clique do for methods that
model cliques, b would answer; where b leads to the outcome, that it does not is among what is `assumed`.

Influence. Setting A changes an outcome only if a directed path leads from A to it in the graph in which A is
set. Where there is none, the graph implies that Y and A are independent given the common causes Z. This is a
test of the graph that needs no further data: with leave-one-out residuals of regressions on Z,

    R_i = (a_i - E[a | z_i]) (y_i - E[y | z_i]),        T = sqrt(n) mean(R) / sd(R),

T is asymptotically standard normal under independence (the generalised covariance measure). The regressions
are kernel ridge regressions, with width and ridge chosen by the leave-one-out error; a^2 is tested beside a.
Rows that follow each other in time are not independent: sd(R) covers n^(1/3) lags, no drifts.

Missing arrows. Variables that no edge joins are independent given a separating set (`data.graph_check`).

Source: Qin et al. (2023), Sec. 2 (alteration graphs), Def. 12, Lemma 13, Thm. 15-17; Shachter (1998)
(Bayes-Ball, the search without paths); Pearl and Robins (1995), Thm. 1 (sequential back-door); Shpitser,
VanderWeele and Robins (2010) (adjustment); van der Zander, Liskiewicz and Textor (2014), Thm. 2 (the set that
suffices if any does; the ancestors separate if any set does); Pearl (1995), Thm. 2 (front door); Du et al.
(2026), Def. 1 and Prop. 1, who require a sufficient decomposition and do not say how to find it; Shah and
Peters (2020), Eq. 3 (generalised covariance measure); Newey and West (1987) (correlated rows).
"""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.spatial.distance import cdist

from rehearsal_torch.graphs.mixed_graph import RehearsalGraph, closure

MOST_SETS = 500  # Sets of mediators of one size that are tried.


@dataclass(frozen=True)
class Adjustment:
    """What tells the effect of altering A on outcomes Y in context X from observations.

    It is the distribution of y in draws from the distributions of the rows,

        u ~ p(u | x),    v ~ p(v | x, u, a_first),    y ~ p(y | x, u, v, a),

    where u or v may be empty. By the front door v are the mediators, `first` is all of A, and the last draw
    is y ~ p(y | x, u, v, a') with a' ~ p(a | x, u), drawn apart from v. Without an alteration, one a' (of
    later actions given v as well) takes the place of a everywhere.
    """

    before: tuple[str, ...]  # U, which A does not influence
    between: tuple[str, ...]  # V, influenced by `first`
    first: tuple[str, ...]  # The altered variables that precede V
    reasons: tuple[str, ...]  # Why the formula does not hold; empty if it does
    front_door: bool = False  # Whether the outcome sees usual actions a', and v alone the altered ones
    assumed: tuple[str, ...] = ()  # What has to be true of <-> in a clique, beside the graph


def adjustment(
    graph: RehearsalGraph,
    context: Sequence[str],
    altered: Sequence[str],
    outcomes: Sequence[str],
    sequential: bool = True,
    front_door: bool = True,
) -> Adjustment:
    """How to tell what altering a set of variables does to outcomes Y, given context X. Unless `sequential`,
    covariates between alterations are left out, and unless `front_door` it is not used; the reasons say so.

    U is every intermediate variable that A does not influence and that leads to A or Y, or, where only then a
    formula holds, to X, including actionable variables that are not altered; V between alterations those that
    later ones do not influence and that lead to Y; mediators are as few as will do.
    """
    after = closure(altered, graph.effects, altered)
    outside = {*context, *altered, *outcomes}
    candidates = [
        tuple(name for name in graph.names if name in leading and name not in after | outside)
        for leading in (
            graph.ancestors([*altered, *outcomes]),
            graph.ancestors([*context, *altered, *outcomes]),
        )
    ]
    roles = graph, tuple(context), tuple(altered), tuple(outcomes)
    formulas = [_formula(*roles, before, sequential) for before in dict.fromkeys(candidates)]
    valid = next((formula for formula in formulas if not formula.reasons), None)
    if valid is None and not closure(altered, graph.effects).isdisjoint(outcomes):
        for before in dict.fromkeys((*candidates, ())):
            between = _mediators(*roles, before)
            if between and front_door:
                valid = Adjustment(before, between, tuple(altered), (), front_door=True)
                break
            if between:
                break
        if valid is None:
            reason = f"{'; '.join(formulas[0].reasons)}, and {_no_front_door(*roles, between)}"
            formulas[0] = replace(formulas[0], reasons=(reason,))
    return replace(valid or formulas[0], assumed=_assumed(*roles))


def _formula(
    graph: RehearsalGraph,
    context: tuple[str, ...],
    altered: tuple[str, ...],
    outcomes: tuple[str, ...],
    before: tuple[str, ...],
    sequential: bool,
) -> Adjustment:
    """The single formula with U, or the sequential one; with reasons where neither holds."""
    after = closure(altered, graph.effects, altered)
    covariates = {*context, *before}
    inner = [name for name in graph.names if name in after and name not in {*altered, *outcomes}]
    bridges = [name for name in inner if _confounds(graph, name, altered, outcomes)]
    bows = "".join(
        f" ({source} -> {target} accompanies {source} <-> {target})"
        for source, target in graph.hidden
        if (source, target) in graph.edges and {source, target} & after
    )
    if bridges and not sequential:
        reason = (
            f"{', '.join(bridges)} lie between alterations and influence a later one and the outcome: use "
            "the sequential formula"
        )
        return Adjustment(before, (), (), (reason,))
    if not bridges and _separated(graph, altered, altered, outcomes, covariates):
        return Adjustment(before, (), (), ())
    single = Adjustment(before, (), (), (_common_cause(altered, outcomes, [*context, *before]) + bows,))
    necessary = bool(bridges)
    if not necessary and sequential:
        # What leads from one alteration to another alone may share a cause with the outcome.
        bridges = [name for name in inner if not closure([name], graph.effects).isdisjoint(altered)]
    if not bridges:
        return single
    earliest = [
        name for name in altered if not (closure([name], graph.effects, altered) - {name}).isdisjoint(bridges)
    ]
    later = [
        name
        for name in altered
        if name not in earliest or any(name in closure([bridge], graph.effects) for bridge in bridges)
    ]
    first = tuple(name for name in altered if name not in later)
    unaffected = closure(later, graph.effects, altered)
    leading = graph.ancestors([*altered, *outcomes])
    between = tuple(name for name in inner if name in leading and name not in unaffected)
    reasons = []
    if not first or any(bridge in unaffected for bridge in bridges):
        reasons.append(
            f"{', '.join(bridges)} lie in more than one place between alterations: alter fewer variables at "
            "once"
        )
    elif not _separated(graph, first, altered, outcomes, covariates):
        reasons.append(_common_cause(first, outcomes, [*context, *before]) + bows)
    elif not _separated(graph, later, later, outcomes, {*covariates, *first, *between}):
        reasons.append(_common_cause(later, outcomes, [*context, *before, *between]) + bows)
    return single if reasons and not necessary else Adjustment(before, between, first, tuple(reasons))


def _mediators(
    graph: RehearsalGraph,
    context: tuple[str, ...],
    altered: tuple[str, ...],
    outcomes: tuple[str, ...],
    before: tuple[str, ...],
) -> tuple[str, ...]:
    """Front-door mediators given X and U: the fewest, up to three, else all eligible, or none."""
    covariates = {*context, *before}
    after, causing = closure(altered, graph.effects), graph.ancestors(outcomes)
    usable = [
        name
        for name in graph.names
        if name in after & causing
        and name not in {*covariates, *altered, *outcomes}
        and closure([name], graph.effects).isdisjoint(altered)
        and _separated(graph, altered, altered, [name], covariates)
    ]
    sizes = [size for size in range(1, min(4, len(usable) + 1)) if math.comb(len(usable), size) <= MOST_SETS]
    for names in (*(subset for size in sizes for subset in combinations(usable, size)), tuple(usable)):
        if closure(altered, graph.effects, names).isdisjoint(outcomes) and _separated(
            graph, names, names, outcomes, {*covariates, *altered}
        ):
            return names
    return ()


def _no_front_door(
    graph: RehearsalGraph,
    context: tuple[str, ...],
    altered: tuple[str, ...],
    outcomes: tuple[str, ...],
    usable: tuple[str, ...],
) -> str:
    """Why the front door is of no use: it is open to other methods, or this is in its way."""
    a, y = ", ".join(altered), ", ".join(outcomes)
    if usable:
        mediated = f"it could be told through {', '.join(usable)}, by the front door"
        return f"{mediated}, which this method does not use: decision=outcome_regression does"
    if direct := next((edge for edge in graph.edges if edge[0] in altered and edge[1] in outcomes), None):
        return f"{direct[0]} acts on {direct[1]} directly, so that there is no front door"
    between = ", ".join(
        name
        for name in graph.names
        if name in closure(altered, graph.effects) & graph.ancestors(outcomes)
        and name not in {*context, *altered, *outcomes}
    )
    return f"hidden causes join what lies between, {between}, to {a} or {y}, so that the front door is shut"


def _assumed(
    graph: RehearsalGraph, context: tuple[str, ...], altered: tuple[str, ...], outcomes: tuple[str, ...]
) -> tuple[str, ...]:
    """For each clique that is altered in part, that the rest does not answer, if it leads to the outcome."""
    sentences = []
    for clique in graph.cliques:
        if set(altered).isdisjoint(clique):
            continue
        part = ", ".join(name for name in clique if name in altered)
        rest = ", ".join(
            name
            for name in clique
            if name not in {*altered, *context, *outcomes}
            and not closure([name], graph.effects, altered).isdisjoint(outcomes)
        )
        if rest:
            sentences.append(
                f"a hidden cause joins {part} and {rest}, and a setting of {part} leaves {rest} as it is: if "
                f"they influence each other, observations do not show how {rest} would answer"
            )
    return tuple(sentences)


def _common_cause(altered: Sequence[str], outcomes: Sequence[str], covariates: Sequence[str]) -> str:
    blocked = f"is not blocked by {', '.join(covariates)}" if covariates else "nothing known blocks"
    return f"{', '.join(altered)} and {', '.join(outcomes)} have a common cause that {blocked}"


def _confounds(graph: RehearsalGraph, name: str, altered: Sequence[str], outcomes: Sequence[str]) -> bool:
    """Whether one alteration's consequence leads to another altered variable, and to the outcome itself."""
    if closure([name], graph.effects).isdisjoint(altered):
        return False
    return not closure([name], graph.effects, altered).isdisjoint(outcomes)


def _separated(
    graph: RehearsalGraph,
    sources: Iterable[str],
    altered: Iterable[str],
    outcomes: Iterable[str],
    covariates: set[str],
) -> bool:
    """Whether covariates block the non-causal paths from `sources` (edges out of them are cut)."""
    sources, targets = _variables(graph, sources), _variables(graph, outcomes)
    later, conditioning = set(altered) - sources, covariates - sources - targets
    edges = (edge for edge in _expanded(graph) if edge[0] not in sources and edge[1] not in later)
    return _reached(edges, sources, conditioning).isdisjoint(targets - covariates)


def _expanded(graph: RehearsalGraph) -> list[tuple[Hashable, str]]:
    """The directed edges, and two from a hidden cause for each bi-directional one."""
    return [*graph.edges, *((pair, end) for pair in map(frozenset, graph.bidirected) for end in pair)]


def missing_arrows(graph: RehearsalGraph) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The implied independences: for each pair without an edge that some set separates, the earlier variable,
    the later one, and the set. It is the later one's parents, or those of both unless the earlier leads to
    it, else the ancestors of both, which separate if any set does.
    """
    edges, joined = _expanded(graph), {frozenset(pair) for pair in (*graph.edges, *graph.bidirected)}
    for index, later in enumerate(graph.names):
        ancestors = graph.ancestors((later,))
        for name in graph.names[:index]:
            if frozenset((name, later)) in joined:
                continue
            parents = graph.parents((later,) if name in ancestors else (name, later))
            for z in (parents, graph.ancestors((name, later)) - {name, later}):
                if name not in z and name not in _reached(edges, {later}, z):
                    yield name, later, tuple(member for member in graph.names if member in z)
                    break


def c_separated(
    graph: RehearsalGraph,
    one: str | Iterable[str],
    other: str | Iterable[str],
    given: str | Iterable[str] = (),
) -> bool:
    """Whether `given` c-separates two disjoint sets of variables (Def. 12), else a ValueError."""
    x, y, z = _variables(graph, one), _variables(graph, other), _variables(graph, given)
    if shared := sorted((x & y) | (x & z) | (y & z)):
        raise ValueError(f"expected three disjoint sets; {shared} are in two of them: remove them from one")
    return not connected(graph, x, z) & y


def connected(
    graph: RehearsalGraph, sources: str | Iterable[str], given: str | Iterable[str] = ()
) -> frozenset[str]:
    """The variables outside `given` that it does not c-separate from `sources`, these included."""
    start, z = _variables(graph, sources), _variables(graph, given)
    if start & z:
        raise ValueError(
            f"expected sources outside `given`; got {sorted(start & z)} in both: remove them from one"
        )
    reached = _reached(_expanded(graph), start, z)
    return frozenset(name for name in graph.names if name in reached and name not in z)


def _reached(
    edges: Iterable[tuple[Hashable, Hashable]], start: Collection[Hashable], z: Collection[Hashable]
) -> set[Hashable]:
    """The nodes of a directed graph to which a path leads that `z` leaves open (Bayes-Ball)."""
    effects, causes = defaultdict[Hashable, list[Hashable]](list), defaultdict[Hashable, list[Hashable]](list)
    for source, target in edges:
        effects[source].append(target)
        causes[target].append(source)
    above, below = set(start), set[Hashable]()
    queue = [(node, True) for node in start]
    while queue:
        node, entered_above = queue.pop()
        steps = []
        if node not in z:
            steps = [(effect, False) for effect in effects.get(node, ()) if effect not in below]
        # From a known descendant the ball comes back to a collider, and enters it from below.
        if entered_above or node in z:
            sources = causes.get(node, ())
            steps += [(cause, True) for cause in sources if cause not in above and cause not in z]
        for neighbour, upwards in steps:
            (above if upwards else below).add(neighbour)
        queue += steps
    return above | below


def _variables(graph: RehearsalGraph, names: str | Iterable[str]) -> frozenset[str]:
    variables = frozenset((names,) if isinstance(names, str) else names)
    if unknown := sorted(variables - set(graph.names)):
        raise ValueError(f"unknown variables {unknown}: the variables are {list(graph.names)}")
    return variables


WIDTHS, RIDGES, MAX_POINTS = (0.3, 0.6, 1.2, 2.5, 5.0), (1e-3, 1e-2, 1e-1, 1.0), 300


def reaches(graphs: Iterable[RehearsalGraph], altered: Sequence[str], outcomes: Sequence[str]) -> bool:
    """Whether setting variables can change an outcome according to at least one of the graphs."""
    return any(bool(graph.descendants(altered, altered) & set(outcomes)) for graph in graphs)


def dependence(action: np.ndarray, outcomes: np.ndarray, given: np.ndarray) -> float:
    """The p-value of independence of all outcomes (n, |Y|) and the action (n,) given covariates (n, q): the
    smallest of a and a^2 with each outcome, Bonferroni-corrected; 1 below 20 rows. At most 300 rows are used.
    """
    if len(action) < 20:
        return 1.0
    count = len(action)
    rows = np.linspace(0, count - 1, min(MAX_POINTS, count)).round().astype(int)
    action, outcomes, given = (np.asarray(values, dtype=float)[rows] for values in (action, outcomes, given))
    standardised = _standardised(action[:, None])
    tested = _standardised(np.hstack([standardised, standardised**2, outcomes]))
    residuals = _left_out_residuals(_standardised(given), tested)
    smallest = 1.0
    for treatment in residuals[:, :2].T:
        for outcome in residuals[:, 2:].T:
            smallest = min(smallest, _p_value(treatment * outcome))
    return min(1.0, smallest * 2 * outcomes.shape[-1])


def _left_out_residuals(inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Leave-one-out residuals (n, m) of kernel ridge regressions of targets (n, m) on inputs (n, q)."""
    count = len(targets)
    if not inputs.shape[-1]:
        return (targets - targets.mean(0)) * count / (count - 1)
    distance = cdist(inputs, inputs, "sqeuclidean") / inputs.shape[-1]
    best, error = targets - targets.mean(0), (targets**2).mean(0)
    for width in WIDTHS:
        # The constant kernel models the mean, so that predictions are not shrunk towards zero.
        eigenvalues, eigenvectors = np.linalg.eigh(np.exp(-distance / (2 * width**2)) + 10.0)
        projected = eigenvectors.T @ targets
        for ridge in RIDGES:
            inverse = 1 / (eigenvalues.clip(min=0) + ridge)
            errors = (eigenvectors @ (inverse[:, None] * projected)) / (eigenvectors**2 @ inverse)[:, None]
            squares = (errors**2).mean(0)
            best, error = np.where(squares < error, errors, best), np.minimum(squares, error)
    return best


def _p_value(products: np.ndarray) -> float:
    """Two-sided p-value of a mean of zero, for rows uncorrelated beyond n^(1/3) steps."""
    count, mean = len(products), float(products.mean())
    centred = products - mean
    steps = max(1, round(count ** (1 / 3)))
    variance = float((centred**2).mean())
    if variance <= 1e-24:
        return 1.0
    correlated = sum(
        2 * (1 - lag / (steps + 1)) * float((centred[lag:] * centred[:-lag]).sum() / count)
        for lag in range(1, steps + 1)
    )
    statistic = math.sqrt(count) * abs(mean) / math.sqrt(max(variance + correlated, variance))
    return math.erfc(statistic / math.sqrt(2))


def _standardised(columns: np.ndarray) -> np.ndarray:
    if not columns.shape[-1]:
        return columns
    spread = columns.std(0)
    standard: np.ndarray = (columns - columns.mean(0)) / np.where(spread > 0, spread, 1.0)
    return standard
