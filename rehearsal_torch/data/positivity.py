"""Positivity: which cases and actions have rows near them, checked before anything is fitted.

The effect of setting a in a case x is a mean over covariates u | x. Rows identify it only where some have
nearly this (x, u) *and* nearly this a. With z = (x, u_j), u_j = g(x) + a residual row of the regression g,
h(z) the usual action, b(w) and s(w)^2 the mean and variance of a - h(z) over the nearest rows,

    w = C^(-1/2) (z - m),    e = (a - h(z) - b(w)) / s(w),    d_5 = distance of (w, e) to the 5th nearest row,

a point is far if d_5 or |e| exceeds the 97.5th percentile of the rows' own with the same levels, and S(a) is
the share of far points; a is supported where S(a) <= `MOST_BEYOND`. g and h are linear or quadratic, by BIC.
The measure is that of `surrogates.outcome.near_rows`, with simpler regressions, in NumPy alone.

The rows' own distances grow with the rarity of their level: a dozen rows that are scattered over the table
have every case within their reach. A level that too few rows have (`least_rows`) is therefore far everywhere.

Source: Petersen et al. (2012) (violations of positivity); Gruber et al. (2022) (the least share of rows with
an action, 5 / (sqrt(n) ln n)); Schwarz (1978) (BIC).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rehearsal_torch.data.records import evenly

Numbers = NDArray[np.float64]

# As in `near_rows`.
NEIGHBOURS, AROUND, SHARE, LEAST, FLOOR, FEW_VALUES, ROUNDING = 5, 50, 0.975, 0.25, 1e-8, 20, 1e-9
LEVELS, KEPT, RAREST = 12, 100, 10
MOST_BEYOND = 0.2  # S up to which rows speak for an action.
# Rows, cases, points (x, u_j) of all cases together, points of one case.
ROWS, CASES, POINTS, POINTS_EACH = 2000, 100, 1000, 40


def least_rows(count: int) -> int:
    """The fewest of n rows that have to have a level: 5 sqrt(n) / ln n, at most `KEPT`."""
    return min(KEPT, math.ceil(5 * count**0.5 / math.log(max(count, 8))))


def beyond(
    context: Numbers,
    before: Numbers,
    actions: Numbers,
    cases: Numbers,
    settings: Numbers,
    sets: int = 1,
    levels: Sequence[int] = (),
) -> Numbers:
    """S of G settings (G, k) in B cases (B, p), (B, G), by at most `ROWS` rows x (n, p), u (n, q), a (n, k),
    fewer for several `sets`; `levels` are the indices of actions with levels.
    """
    groups, group_of = np.unique(actions[:, list(levels)], axis=0, return_inverse=True)
    if not levels or len(groups) > LEVELS:
        levels, groups, group_of = (), np.zeros((1, 0)), np.zeros(len(actions), int)
    most = int(ROWS / sets**0.5)
    sample = evenly(len(context), most)
    if len(context) > most and len(groups) > 1:
        members = (np.flatnonzero(group_of == group) for group in range(len(groups)))
        rare_rows = [indices[evenly(len(indices), KEPT)] for indices in members]
        sample = np.unique(np.concatenate((sample, *rare_rows)))
    least = least_rows(len(context))
    if len(groups) > 1 and np.bincount(group_of[sample]).max() < least:
        levels, groups, group_of = (), np.zeros((1, 0)), np.zeros(len(actions), int)
    rows = [matrix[sample] for matrix in (context, before, actions)]
    if len(sample) <= NEIGHBOURS:
        return np.ones((len(cases), len(settings)))
    moments = [(matrix.mean(0), np.where(matrix.std(0) > 0, matrix.std(0), 1.0)) for matrix in rows]
    x, u, a = ((matrix - mean) / scale for matrix, (mean, scale) in zip(rows, moments, strict=True))
    x_cases, doses = ((block - moments[i][0]) / moments[i][1] for block, i in ((cases, 0), (settings, 2)))
    points = max(8, min(POINTS_EACH, POINTS // (sets * len(cases))))
    covariates = _regression(x, u)
    residuals = u - covariates(x)
    # Rows spread evenly by the golden ratio, others in every case.
    spread = np.arange(len(cases) * points) * 0.6180339887498949 % 1
    donors = (spread * len(x)).astype(int).reshape(len(cases), points)
    repeated = np.repeat(x_cases, points, 0)
    z, drawn_z = (
        np.concatenate(blocks, -1)
        for blocks in ((x, u), (repeated, covariates(repeated) + residuals[donors.ravel()]))
    )
    for column in range(x.shape[1], z.shape[1]):
        values = np.unique(z[:, column])
        if len(values) <= FEW_VALUES:
            drawn_z[:, column] = values[np.searchsorted((values[1:] + values[:-1]) / 2, drawn_z[:, column])]
    usual = _regression(z, a)
    matches = (settings[:, None, list(levels)] == groups).all(-1)
    group_of_setting = np.where(matches.any(-1), matches.argmax(-1), len(groups))
    fitted = z, a - usual(z), group_of[sample]
    far = _far(*fitted, drawn_z, doses[None] - usual(drawn_z)[:, None], group_of_setting, least)
    share: Numbers = far.reshape(len(cases), points, len(settings)).mean(1)
    return share


def _far(
    z: Numbers,
    deviations: Numbers,
    group_of: NDArray[np.int_],
    points: Numbers,
    settings: Numbers,
    groups: NDArray[np.int_],
    fewest: int,
) -> NDArray[np.bool_]:
    """Whether points (m, p) with deviations `settings` (m, G, k) have no row of `groups` (G,) near, of which
    each must have `fewest` rows where there are several.
    """
    mean, centred = z.mean(0), z - z.mean(0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(z))
    least = FLOOR * max(variances.max(initial=0.0), 1e-300)
    whiten = directions / np.sqrt(np.maximum(variances, least))
    rows, whitened = centred @ whiten, (points - mean) @ whiten
    between, squares = _squared_distances(rows, rows), _squared_distances(whitened, rows)
    np.fill_diagonal(between, np.inf)
    sizes = np.bincount(group_of, minlength=max(group_of.max(), groups.max()) + 1)
    count = AROUND
    several = (sizes > 0).sum() > 1
    if several:
        rarest = sizes[sizes >= fewest].min()
        count = min(max(AROUND, int(np.ceil(RAREST * len(z) / rarest))), max(AROUND, len(z) // 2))
    (centre, scale), (centres, scales) = (_local_moments(d, deviations, count) for d in (between, squares))
    freedom = (deviations - centre) / scale
    fifth = between + _squared_distances(freedom, freedom)
    fifth = np.sqrt(np.partition(fifth, NEIGHBOURS - 1, -1)[:, NEIGHBOURS - 1].clip(0))
    distances = np.stack((fifth, np.sqrt(np.square(freedom).mean(-1))))
    radii = np.full((2, len(sizes)), -1.0)
    for g in np.flatnonzero(sizes >= fewest if several else sizes > NEIGHBOURS):
        radii[:, g] = np.quantile(distances[:, group_of == g], SHARE, axis=-1).clip(LEAST) * (1 + 1e-9)
    reach, span = radii[:, groups]
    free = (settings - centres[:, None]) / scales[:, None]
    far: NDArray[np.bool_] = np.sqrt(np.square(free).mean(-1)) > span
    # Of all pairs, those that are near in z.
    point, row = np.nonzero(squares <= reach.max() ** 2)
    apart, beside = squares[point, row], freedom[row]
    for dose in np.flatnonzero(reach > 0):
        near = apart + np.square(free[point, dose] - beside).sum(-1) <= reach[dose] ** 2
        far[:, dose] |= np.bincount(point[near], minlength=len(whitened)) < NEIGHBOURS
    return far


def _local_moments(squares: Numbers, deviations: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """Mean and deviation of a - h(z) (n, k) over so many nearest rows, by squared distances (m, n)."""
    count = min(count, len(deviations) - 1)
    last = np.partition(squares, count - 1, -1)[:, count - 1 : count]
    nearest = (squares <= last + ROUNDING).astype(float)
    centre = deviations.mean(0)
    sums = np.concatenate((deviations - centre, np.square(deviations - centre)), -1)
    mean, square = np.split(nearest @ sums / nearest.sum(-1, keepdims=True), 2, axis=-1)
    least = FLOOR * max(float(np.abs(sums).max(initial=0.0)), 1e-300)
    return centre + mean, np.maximum(np.sqrt((square - np.square(mean)).clip(0)), least)


def _squared_distances(points: Numbers, rows: Numbers) -> Numbers:
    lengths = [np.square(matrix).sum(-1) for matrix in (points, rows)]
    squares: Numbers = points @ (-2 * rows.T)
    squares += lengths[0][:, None] + lengths[1]
    return squares


def _regression(inputs: Numbers, values: Numbers) -> Any:
    """A function from columns (n, p) to the means of others, each linear or quadratic, fitted to rows."""
    count, width = inputs.shape
    pairs = np.triu_indices(width)

    def terms(points: Numbers, degree: int) -> Numbers:
        parts = [np.ones((len(points), 1)), points]
        return np.concatenate((*parts, *([points[:, pairs[0]] * points[:, pairs[1]]] * (degree - 1))), -1)

    fits = []
    for degree in (1, 2) if 4 * len(pairs[0]) < count else (1,):
        design = terms(inputs, degree)
        inner = design.T @ design
        weights = np.linalg.solve(inner + 1e-9 * count * np.eye(len(inner)), design.T @ values)
        variances = np.square(values - design @ weights).mean(0).clip(1e-12)
        fits.append((degree, weights, count * np.log(variances) + np.log(count) * design.shape[1]))
    best = np.argmin([fit[-1] for fit in fits], 0)

    def means(points: Numbers) -> Numbers:
        predictions = np.stack([terms(points, degree) @ weights for degree, weights, _ in fits])
        return predictions[best, :, np.arange(values.shape[1])].T

    return means
