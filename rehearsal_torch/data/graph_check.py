"""Checks of a task's graph against the observations.

If the graph has no directed path from an action to an outcome, the two must be independent given the context
and the action's adjustment set. This independence can be tested on any table of observations.

Every other missing arrow is a claim as well: two variables u and v are independent given a set Z
(`graphs.separation.missing_arrows`). With residuals r of regressions on Z, the size of a dependence is the
partial correlation, and its test the generalised covariance measure,

    rho = mean(r_u r_v) / sd(r_u) sd(r_v)
    se  = sd of the mean of  r_u r_v - rho (r_u^2 + r_v^2) / 2     (r in standard deviations)
    T   = artanh(rho) (1 - rho^2) / se

which at rho = 0 is that of `graphs.separation`. The mean is one over units where rows belong together, else
over blocks of n^(1/3) rows, as rows may follow each other in time; T is compared with Student's t.

A claim is refuted where two tests refute it: one with linear regressions, on all rows, and one with flexible
ones, on at most 4,000, as a curved common cause in Z leaves what a line does not explain. These are ridge
regressions of the linear residuals on steps, bends, squares, products and cosines of Z, with leave-one-out
residuals and the penalty that predicts best. They come near a curve and do not reach it, so that they must
leave a quarter of the covariance: in worlds whose dependence was of Z alone, with kinks, steps and
interactions, they left at most 8 %. The p-value is the larger of both, times the number of pairs of
indicators where a variable has classes; the level is 1 % by Holm's rule over all claims. Pairs of context
variables are left out: answers are given the context, and rest on no claim about it.

Bounds: at most 1,000 pairs; rows are thinned beyond 3e7 / pairs; flexible tests: the 12 sets of smallest p.

Source: Shah and Peters (2020), Eq. 3 (generalised covariance measure); Pearl (1988) (what a missing arrow
claims); Holm (1979); Fisher (1915) (artanh).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.special import stdtr

from rehearsal_torch.data.finding import Finding
from rehearsal_torch.data.records import Records, evenly
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.graphs.separation import adjustment, dependence, missing_arrows, reaches
from rehearsal_torch.seeding import numpy_generator

SIGNIFICANT = 1e-3
LEVEL = 0.01
PAIRS, TOGETHER, CELLS, FLEXIBLE_ROWS, FLEXIBLE_SETS = 1000, 20, 30_000_000, 4000, 12
# The share of the covariance that a flexible regression leaves, if Z does not explain it.
LEFT = 0.25
PENALTIES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
# Rows, and units or blocks of rows, without which nothing is tested.
FEWEST, FEWEST_GROUPS = 30, 8
SHOWN = 3
# Two variables, and the set Z that separates them by the graph.
_Claim = tuple[str, str, tuple[str, ...]]


def contradiction(task: RehearsalTask, name: str, p_value: float) -> Finding:
    """The warning that outcomes depend on an action that by the graph cannot change them."""
    return Finding(
        "refuted_graph",
        f"setting {name} cannot change {', '.join(task.outcomes)} by the graph, but in the "
        f"observations they depend on it (p = {p_value:.1g}): an edge or a common cause may be missing, or "
        "the rows may be a time series",
        {"p": p_value},
    )


def untrue_graph(table: Records, task: RehearsalTask) -> list[Finding]:
    """A warning for each action that by the graph changes no outcome, if the table contradicts that."""
    recorded = table.as_recorded()
    return contradictions(task, {name: dependence_given(recorded, task, name) for name in _unlinked(task)})


def _unlinked(task: RehearsalTask) -> list[str]:
    """The actions that have no path to an outcome."""
    return [name for name in task.box.names if not reaches((task.graph,), (name,), task.outcomes)]


def contradictions(task: RehearsalTask, p_values: Mapping[str, float]) -> list[Finding]:
    """Warnings of actions that by the graph change no outcome, on which outcomes depend all the same."""
    smallest: dict[str, float] = {}
    for name, p_value in p_values.items():
        (variable,) = task.variables((name,))
        if p_value < SIGNIFICANT / len(p_values):
            smallest[variable] = min(p_value, smallest.get(variable, p_value))
    return [contradiction(task, name, p_value) for name, p_value in smallest.items()]


def dependence_given(table: Records, task: RehearsalTask, name: str) -> float:
    """The p-value of independence of outcomes and action, given the context and the adjustment set."""
    adjusted = adjustment(task.graph, task.context, (name,), task.outcomes)
    covariates = table.columns((*task.context, *adjusted.before))
    return dependence(table.columns((name,))[:, 0], table.columns(task.outcomes), covariates)


@dataclass(frozen=True)
class Refuted:
    """A missing arrow that the observations contradict.

    Attributes:
        first, second: The variables, in the graph's order; of a variable of classes, the columns.
        size: Their partial correlation given the set, of the columns with the largest, and its 95 % interval.
        p: The p-value, before Holm's rule.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    given: tuple[str, ...]
    size: float
    lower: float
    upper: float
    p: float
    claims: int


@dataclass(frozen=True)
class _Correlation:
    """A partial correlation, its statistic with standard error in units of artanh, and the p-value."""

    size: float = 0.0
    error: float = 1.0
    p: float = 1.0


def refuted_claims(
    table: Records, task: RehearsalTask, units: Sequence[str] | None = None
) -> tuple[Refuted, ...]:
    """The missing arrows that a table contradicts, largest first; `units` are those of the rows."""
    # Imputed cells depend on what they were imputed from.
    complete = np.ones(len(table), dtype=bool) if table.complete is None else table.complete
    context, unlinked = set(task.context), set(_unlinked(task))
    pairs = [
        claim
        for claim in missing_arrows(task.graph)
        if not context.issuperset(claim[:2])
        # These have a test of their own.
        and not (set(claim[:2]) & unlinked and set(claim[:2]) & set(task.outcomes))
    ]
    roles = context.union(task.box.names, task.outcomes)
    pairs = sorted(pairs, key=lambda claim: -len(roles & set(claim[:2])))[:PAIRS]
    if not pairs or complete.sum() < FEWEST:
        return ()
    rows = np.flatnonzero(complete)
    if table.places is not None:
        rows = rows[np.argsort(table.places[rows])]
    rows = rows[evenly(len(rows), CELLS // len(pairs))]
    columns = dict(zip(task.graph.names, table.columns(task.graph.names)[rows].T, strict=True))
    groups = _groups(len(rows), None if units is None else [units[row] for row in rows])
    if int(groups.max()) + 1 < FEWEST_GROUPS:
        return ()
    correlations = _partial_correlations(columns, pairs, groups)
    return _by_holm(task, pairs, _confirmed(columns, pairs, groups, correlations))


def _by_holm(
    task: RehearsalTask, pairs: Sequence[_Claim], correlations: Sequence[_Correlation]
) -> tuple[Refuted, ...]:
    """The refuted claims about variables, each of which may have several columns."""
    claims = defaultdict[tuple[str, str], list[int]](list)
    for index, (*ends, _) in enumerate(pairs):
        (first,), (second,) = (task.variables((end,)) for end in ends)
        claims[first, second].append(index)
    refuted = []
    for indices in claims.values():
        smallest = min(indices, key=lambda index: correlations[index].p)
        best, (_, _, separators) = correlations[smallest], pairs[smallest]
        lower, upper = (math.tanh(math.atanh(best.size) + sign * 1.96 * best.error) for sign in (-1, 1))
        first_names, second_names = (
            tuple(dict.fromkeys(columns))
            for columns in zip(*(pairs[index][:2] for index in indices), strict=True)
        )
        p = min(1.0, best.p * len(indices))
        size = best.size, lower, upper
        refuted.append(Refuted(first_names, second_names, separators, *size, p, len(claims)))
    refuted.sort(key=lambda claim: claim.p)
    for rank, claim in enumerate(refuted):
        if claim.p > LEVEL / (len(refuted) - rank):
            refuted = refuted[:rank]
            break
    return tuple(sorted(refuted, key=lambda claim: -abs(claim.size)))


def _groups(count: int, units: Sequence[str] | None) -> np.ndarray:
    """The number of each row's unit, (n,), or of its block of n^(1/3) rows."""
    if units is None:
        return np.arange(count) // max(1, round(count ** (1 / 3)))
    return np.unique(units, return_inverse=True)[1]


def _partial_correlations(
    columns: Mapping[str, np.ndarray], pairs: Sequence[_Claim], groups: np.ndarray
) -> list[_Correlation]:
    values = _standardised(list(columns.values()))
    position = {name: index for index, name in enumerate(columns)}
    products, correlations = values.T @ values, []
    for start in range(0, len(pairs), TOGETHER):
        batch = pairs[start : start + TOGETHER]
        weights = np.zeros((len(position), len(batch), 2))
        for index, (first, second, separators) in enumerate(batch):
            inside, ends = [position[name] for name in separators], [position[first], position[second]]
            inverse = np.linalg.pinv(products[np.ix_(inside, inside)], rcond=1e-12, hermitian=True)
            weights[inside, index] = -inverse @ products[np.ix_(inside, ends)]
            weights[ends, index, [0, 1]] = 1.0
        residuals = (values @ weights.reshape(len(position), -1)).T
        couples = zip(residuals[::2], residuals[1::2], strict=True)
        correlations += [_correlation(*couple, groups) for couple in couples]
    return correlations


def _confirmed(
    columns: Mapping[str, np.ndarray],
    pairs: Sequence[_Claim],
    groups: np.ndarray,
    correlations: list[_Correlation],
) -> list[_Correlation]:
    """Of linear and flexible regression, the correlation with the larger p-value."""
    of_set = defaultdict[tuple[str, ...], list[int]](list)
    for index in sorted(range(len(pairs)), key=lambda index: correlations[index].p):
        if correlations[index].p < LEVEL and pairs[index][2]:
            of_set[pairs[index][2]].append(index)
    rows = evenly(len(groups), FLEXIBLE_ROWS)
    for number, (separators, indices) in enumerate(of_set.items()):
        if number >= FLEXIBLE_SETS:
            for index in indices:
                correlations[index] = replace(correlations[index], p=1.0)
            continue
        names = list(dict.fromkeys(name for index in indices for name in pairs[index][:2]))
        covariates = _standardised([columns[name][rows] for name in separators])
        ends = _standardised([columns[name][rows] for name in names])
        lines = _linear(covariates, ends)
        curves = _flexible(covariates, lines)
        position = {name: index for index, name in enumerate(names)}
        for index in indices:
            first, second = (position[name] for name in pairs[index][:2])
            curved = _correlation(curves[:, first], curves[:, second], groups[rows])
            line, curve = (float((e[:, first] * e[:, second]).mean()) for e in (lines, curves))
            curved = curved if curve * line >= LEFT * line**2 else _Correlation()
            correlations[index] = max(correlations[index], curved, key=lambda measured: measured.p)
    return correlations


def _standardised(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Columns in standard deviations, (n, d); constant ones are 0."""
    values = np.stack(columns, -1).astype(float) if columns else np.empty((0, 0))
    spread = values.std(0) if columns else np.empty(0)
    return (values - values.mean(0)) / np.where(spread > 0, spread, 1.0) if columns else values


def _linear(covariates: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Residuals (n, m) of linear regressions on standardised columns (n, q)."""
    if not covariates.size:
        return values
    weights = np.linalg.pinv(covariates.T @ covariates, rcond=1e-12, hermitian=True) @ (covariates.T @ values)
    return values - covariates @ weights


def _flexible(covariates: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Leave-one-out residuals (n, m) of ridge regressions of `lines` on features of (n, q)."""
    best, rows = lines, len(covariates)
    features = _features(covariates)[:, : rows // 3]
    features = _linear(covariates, features - features.mean(0))
    spread = features.std(0)
    features = features[:, spread > 1e-6] / spread[spread > 1e-6]
    if not features.size:
        return best
    eigenvalues, eigenvectors = np.linalg.eigh(features.T @ features)
    stable = eigenvalues > 1e-9 * eigenvalues[-1]
    basis, powers = features @ eigenvectors[:, stable] / np.sqrt(eigenvalues[stable]), eigenvalues[stable]
    projected, error = basis.T @ lines, (lines**2).mean(0)
    for ridge in PENALTIES:
        shrunk = powers / (powers + ridge * rows)
        leverage = (basis**2 @ shrunk + (covariates.shape[1] + 1) / rows).clip(max=0.99)
        errors = (lines - basis @ (shrunk[:, None] * projected)) / (1 - leverage)[:, None]
        squares = (errors**2).mean(0)
        best, error = np.where(squares < error, errors, best), np.minimum(squares, error)
    return best


def _features(covariates: np.ndarray) -> np.ndarray:
    """Squares, bends, steps, products and cosines (n, p) of standardised columns (n, q)."""
    curved = [column for column in covariates.T if len(np.unique(column)) > 2]
    cuts = [np.unique(np.quantile(column, np.arange(1, 10) / 10)) for column in curved]
    squares = [column**2 for column in curved]
    bends = [
        np.maximum(column - cut, 0.0)
        for column, column_cuts in zip(curved, cuts, strict=True)
        for cut in column_cuts[[len(column_cuts) // 4, len(column_cuts) // 2, 3 * len(column_cuts) // 4]]
    ]
    steps = [
        (column > cut).astype(float)
        for column, column_cuts in zip(curved[:10], cuts, strict=False)
        for cut in column_cuts
    ]
    products = [first * second for first, second in list(combinations(covariates.T, 2))[:60]]
    stream = numpy_generator(0)
    width = np.repeat([0.5, 1.0, 2.0, 4.0], 25)
    frequencies = stream.standard_normal((covariates.shape[1], 100)) / (width * np.sqrt(covariates.shape[1]))
    cosines = np.cos(covariates @ frequencies + stream.uniform(0, 2 * np.pi, 100))
    features = [*squares, *bends, *steps, *products, *(cosines.T[stream.permutation(100)] if curved else ())]
    return np.stack(features, -1) if features else np.empty((len(covariates), 0))


def _correlation(first: np.ndarray, second: np.ndarray, groups: np.ndarray) -> _Correlation:
    """The correlation of two columns of residuals, with rows in groups; nothing where one is constant."""
    count, scales = len(first), [float(np.sqrt((residuals**2).mean())) for residuals in (first, second)]
    if min(scales) < 1e-6:
        return _Correlation()
    first, second = first / scales[0], second / scales[1]
    size = float(np.clip((first * second).mean(), -1 + 1e-9, 1 - 1e-9))
    parts = first * second - size * (first**2 + second**2) / 2
    sums = np.bincount(groups, parts)
    sums = sums[np.bincount(groups) > 0]
    # Groups may only add to the error: their own correlation is estimated, and may seem negative.
    error = max(float(sums @ sums), float(parts @ parts)) ** 0.5 / count / (1 - size**2)
    error = max(error, 1e-9)
    p = 2 * float(stdtr(len(sums) - 1, -abs(math.atanh(size)) / error))
    return _Correlation(size, error, p)


def refutations(task: RehearsalTask, refuted: Sequence[Refuted]) -> list[Finding]:
    """The warning of the missing arrows that the observations contradict; none without any."""
    if not refuted:
        return []
    more = f"; and {len(refuted) - SHOWN} more" if len(refuted) > SHOWN else ""
    largest, count = refuted[0], refuted[0].claims
    share = f"{len(refuted)} of the {count} independences" if count > 1 else "the independence"
    text = (
        f"the rows contradict {share} that the graph claims by its missing arrows: "
        f"{'; '.join(in_words(task, refuted[:SHOWN]))}{more}: draw the arrow, the hidden common cause (<->), "
        "or what goes between"
    )
    numbers = {"refuted": len(refuted), "claims": count, "p": largest.p}
    sizes = {"size": largest.size, "lower": largest.lower, "upper": largest.upper}
    return [Finding("refuted_graph", text, {**numbers, **sizes})]


def in_words(task: RehearsalTask, refuted: Iterable[Refuted]) -> list[str]:
    """The missing arrows with the sizes of the dependences, for readers."""
    sentences = []
    for claim in refuted:
        (first,), (second,) = task.variables(claim.first), task.variables(claim.second)
        z = ", ".join(task.variables(claim.given))
        size, lower, upper = (f"{number:.2f}" for number in (claim.size, claim.lower, claim.upper))
        sentences.append(
            f"no arrow joins {first} and {second}, and their partial correlation"
            f"{f' given {z}' if z else ''} is {size} [{lower}, {upper}]"
        )
    return sentences
