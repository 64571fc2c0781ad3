"""For which cases and actions the rows can speak at all (positivity), before anything is fitted.

The effect of setting a in a case x is a mean over covariates u | x. Rows can tell it only where some have
nearly this (x, u) *and* nearly this a. With z = (x, u_j), u_j = g(x) + a residual row of the regression g,
h(z) the usual action, b(w) and s(w)^2 the mean and variance of a - h(z) over the nearest rows,

    w = C^(-1/2) (z - m),    e = (a - h(z) - b(w)) / s(w),    d_5 = distance of (w, e) to the 5th nearest row,

a point is far if d_5 or |e| exceeds the 97.5th percentile of the rows' own with the same levels, and S(a) is
the share of far points; rows speak for a where S(a) <= `MOST_BEYOND`. g and h are linear or quadratic, by
BIC. The measure is that by which decisions are judged (`surrogates.outcome.near_rows`), with simpler
regressions, in NumPy alone.

Source: Petersen et al. (2012) (diagnosing violations of positivity); Schwarz (1978) (BIC); see `near_rows`
for the distance.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rehearsal_torch.data.records import evenly

Numbers = NDArray[np.float64]

# As in `near_rows`.
NEIGHBOURS, AROUND, SHARE, LEAST, FLOOR, FEW_VALUES, ROUNDING = 5, 50, 0.975, 0.25, 1e-8, 20, 1e-9
LEVELS, KEPT, RAREST = 12, 100, 10
# S up to which rows speak for an action.
MOST_BEYOND = 0.2
# Rows, cases, points (x, u_j) of all cases together, points of one case.
ROWS, CASES, POINTS, POINTS_EACH = 2000, 100, 1000, 40


def beyond(
    context: Numbers,
    before: Numbers,
    actions: Numbers,
    cases: Numbers,
    settings: Numbers,
    sets: int = 1,
    levels: Sequence[int] = (),
) -> Numbers:
    """S of G settings (G, k) in B cases (B, p), (B, G), by rows x (n, p), u (n, q), a (n, k); of many rows,
    by some, fewer where the work is shared among several `sets`; `levels` are the places of the actions with
    levels.
    """
    kinds, kind_of = np.unique(actions[:, list(levels)], axis=0, return_inverse=True)
    if not levels or len(kinds) > LEVELS:
        levels, kinds, kind_of = (), np.zeros((1, 0)), np.zeros(len(actions), int)
    most = int(ROWS / sets**0.5)
    kept = evenly(len(context), most)
    if len(context) > most and len(kinds) > 1:
        each_kind = (np.flatnonzero(kind_of == kind) for kind in range(len(kinds)))
        some = [places[evenly(len(places), KEPT)] for places in each_kind]
        kept = np.unique(np.concatenate((kept, *some)))
    if len(kinds) > 1 and np.bincount(kind_of[kept]).max() <= NEIGHBOURS:
        levels, kinds, kind_of = (), np.zeros((1, 0)), np.zeros(len(actions), int)
    rows = [part[kept] for part in (context, before, actions)]
    if len(kept) <= NEIGHBOURS:
        return np.ones((len(cases), len(settings)))
    moments = [(part.mean(0), np.where(part.std(0) > 0, part.std(0), 1.0)) for part in rows]
    x, u, a = ((part - mean) / scale for part, (mean, scale) in zip(rows, moments, strict=True))
    asked, doses = ((part - moments[at][0]) / moments[at][1] for part, at in ((cases, 0), (settings, 2)))
    points = max(8, min(POINTS_EACH, POINTS // (sets * len(cases))))
    covariates = _regression(x, u)
    residuals = u - covariates(x)
    # Rows spread evenly by the golden ratio, others in every case.
    spread = np.arange(len(cases) * points) * 0.6180339887498949 % 1
    drawn = (spread * len(x)).astype(int).reshape(len(cases), points)
    many = np.repeat(asked, points, 0)
    z, places = (
        np.concatenate(each, -1) for each in ((x, u), (many, covariates(many) + residuals[drawn.ravel()]))
    )
    for column in range(x.shape[1], z.shape[1]):
        values = np.unique(z[:, column])
        if len(values) <= FEW_VALUES:
            places[:, column] = values[np.searchsorted((values[1:] + values[:-1]) / 2, places[:, column])]
    habit = _regression(z, a)
    same = (settings[:, None, list(levels)] == kinds).all(-1)
    wanted = np.where(same.any(-1), same.argmax(-1), len(kinds))
    around = z, a - habit(z), kind_of[kept]
    far = _far(*around, places, doses[None] - habit(places)[:, None], wanted)
    share: Numbers = far.reshape(len(cases), points, len(settings)).mean(1)
    return share


def _far(
    z: Numbers,
    left: Numbers,
    kinds: NDArray[np.int_],
    places: Numbers,
    asked: Numbers,
    wanted: NDArray[np.int_],
) -> NDArray[np.bool_]:
    """Whether no row, of some kind each, is near the places (m, p) with a - h(z) (m, G, k) of kinds (G,),
    (m, G).
    """
    mean, centred = z.mean(0), z - z.mean(0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(z))
    floor = FLOOR * max(variances.max(initial=0.0), 1e-300)
    whiten = directions / np.sqrt(np.maximum(variances, floor))
    rows, points = centred @ whiten, (places - mean) @ whiten
    own, squares = _squares(rows, rows), _squares(points, rows)
    np.fill_diagonal(own, np.inf)
    counts = np.bincount(kinds, minlength=max(kinds.max(), wanted.max()) + 1)
    nearest = AROUND
    if (counts > 0).sum() > 1:
        rarest = counts[counts > NEIGHBOURS].min()
        nearest = min(max(AROUND, int(np.ceil(RAREST * len(z) / rarest))), max(AROUND, len(z) // 2))
    (centre, scale), (centres, scales) = (_around(each, left, nearest) for each in (own, squares))
    freedom = (left - centre) / scale
    fifth = own + _squares(freedom, freedom)
    fifth = np.sqrt(np.partition(fifth, NEIGHBOURS - 1, -1)[:, NEIGHBOURS - 1].clip(0))
    distances = np.stack((fifth, np.sqrt(np.square(freedom).mean(-1))))
    radii = np.full((2, len(counts)), -1.0)
    for kind in np.flatnonzero(counts > NEIGHBOURS):
        radii[:, kind] = np.quantile(distances[:, kinds == kind], SHARE, axis=-1).clip(LEAST) * (1 + 1e-9)
    reach, span = radii[:, wanted]
    free = (asked - centres[:, None]) / scales[:, None]
    far: NDArray[np.bool_] = np.sqrt(np.square(free).mean(-1)) > span
    # Of all pairs, those that are near in z.
    point, row = np.nonzero(squares <= reach.max() ** 2)
    apart, beside = squares[point, row], freedom[row]
    for dose in np.flatnonzero(reach > 0):
        near = apart + np.square(free[point, dose] - beside).sum(-1) <= reach[dose] ** 2
        far[:, dose] |= np.bincount(point[near], minlength=len(points)) < NEIGHBOURS
    return far


def _around(squares: Numbers, left: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """Mean and deviation of a - h(z) (n, k) over so many nearest rows, by squared distances (m, n)."""
    count = min(count, len(left) - 1)
    last = np.partition(squares, count - 1, -1)[:, count - 1 : count]
    nearest = (squares <= last + ROUNDING).astype(float)
    centre = left.mean(0)
    sums = np.concatenate((left - centre, np.square(left - centre)), -1)
    mean, square = np.split(nearest @ sums / nearest.sum(-1, keepdims=True), 2, axis=-1)
    least = FLOOR * max(float(np.abs(sums).max(initial=0.0)), 1e-300)
    return centre + mean, np.maximum(np.sqrt((square - np.square(mean)).clip(0)), least)


def _squares(points: Numbers, rows: Numbers) -> Numbers:
    """Squared distances, (m, p), (n, p) -> (m, n)."""
    lengths = [np.square(each).sum(-1) for each in (points, rows)]
    squares: Numbers = points @ (-2 * rows.T)
    squares += lengths[0][:, None] + lengths[1]
    return squares


def _regression(given: Numbers, values: Numbers) -> Any:
    """The means of columns (n, q) given others (n, p), each linear or quadratic, as a function of them."""
    count, width = given.shape
    pairs = np.triu_indices(width)

    def terms(points: Numbers, degree: int) -> Numbers:
        parts = [np.ones((len(points), 1)), points]
        return np.concatenate((*parts, *([points[:, pairs[0]] * points[:, pairs[1]]] * (degree - 1))), -1)

    fits = []
    for degree in (1, 2) if 4 * len(pairs[0]) < count else (1,):
        design = terms(given, degree)
        inner = design.T @ design
        weights = np.linalg.solve(inner + 1e-9 * count * np.eye(len(inner)), design.T @ values)
        rest = np.square(values - design @ weights).mean(0).clip(1e-12)
        fits.append((degree, weights, count * np.log(rest) + np.log(count) * design.shape[1]))
    best = np.argmin([fit[-1] for fit in fits], 0)

    def means(points: Numbers) -> Numbers:
        every = np.stack([terms(points, degree) @ weights for degree, weights, _ in fits])
        return every[best, :, np.arange(values.shape[1])].T

    return means
