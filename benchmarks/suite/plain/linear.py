"""Decisions under a linear Gaussian model in plain NumPy, all cases in one array.

The model is v = W' v + b + eps, eps ~ N(0, Sigma), Sigma diagonal. Context x and altered variables z are
taken out of the equations (their columns of W, b and Sigma become zero), and with T = (I - W')^-1 one
outcome is

    y = m + e' z + noise,   m = T_yx x + T_y b,   e = T_yz,   s^2 = T_y Sigma T_y',

to lie in [l, u]. The context has to contain its own ancestors.

    most probable   P(l <= y <= u) is largest where the mean is nearest to (l + u) / 2: coordinates are moved
                    one after the other from the corner with the lowest mean until the mean is reached
    cheapest        min sum_i w_i (z_i - z0_i)^2 subject to |e' z + m - (l + u) / 2| <= (u - l) / 2 - r s, r^2
                    the tau-quantile of chi^2 with one degree of freedom, and to the box; the solution is
                    z_i(t) = clip(z0_i + t e_i / w_i), whose mean is piecewise linear in t and rises
    tau             the level of a grid with the largest mean success over observed contexts, where contexts
                    without a feasible action count as not altered

Source: Qin et al. (2025b), Alg. 2 and Sec. 5; Du et al. (2024), Eq. 6-9.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2

LEVELS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)


@dataclass(frozen=True)
class PlainModel:
    """A fitted model and a task with one outcome.

    Attributes:
        names: The d variables.
        weights: W, (d, d), W[p, c] from p to c.
        intercept: b, (d,).
        variance: The diagonal of Sigma, (d,).
        context: Names of the context.
        outcome: Name of the outcome.
        desired: (l, u).
        box: Variable to its bounds.
        sets: The candidate sets.
    """

    names: tuple[str, ...]
    weights: np.ndarray
    intercept: np.ndarray
    variance: np.ndarray
    context: tuple[str, ...]
    outcome: str
    desired: tuple[float, float]
    box: Mapping[str, tuple[float, float]]
    sets: tuple[tuple[str, ...], ...]

    def effect(self, altered: Sequence[str]) -> tuple[np.ndarray, float, np.ndarray, float]:
        """(T_yx, T_y b, e, s)."""
        place = {name: index for index, name in enumerate(self.names)}
        seen, cut = [place[name] for name in self.context], [place[name] for name in altered]
        weights, intercept, variance = self.weights.copy(), self.intercept.copy(), self.variance.copy()
        weights[:, seen + cut] = 0.0
        intercept[seen + cut] = variance[seen + cut] = 0.0
        unit = np.zeros(len(self.names))
        unit[place[self.outcome]] = 1.0
        row = np.linalg.solve(np.eye(len(self.names)) - weights, unit)
        return row[seen], float(row @ intercept), row[cut], float(np.sqrt(row**2 @ variance))

    def bounds(self, altered: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds, (k,) each."""
        lower, upper = np.array([self.box[name] for name in altered]).reshape(-1, 2).T
        return lower, upper

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of all variables without context and alteration, (d,) each."""
        total = np.linalg.inv(np.eye(len(self.names)) - self.weights.T)
        return total @ self.intercept, (total**2) @ self.variance

    def success(self, mean: np.ndarray, scale: float) -> np.ndarray:
        """P(l <= y <= u)."""
        low, high = self.desired
        return ndtr((high - mean) / scale) - ndtr((low - mean) / scale)


@dataclass(frozen=True)
class PlainDecisions:
    """What was decided in each case.

    Attributes:
        which: The number of the candidate set, (B,).
        actions: One array (B, k) for each set.
        values: log P for the most probable, minus the cost for the cheapest (log P where nothing is
            feasible), (B,).
    """

    which: np.ndarray
    actions: list[np.ndarray]
    values: np.ndarray


def fitted(
    table: Any,
    parents: Mapping[str, Sequence[str]],
    context: tuple[str, ...],
    outcome: str,
    desired: tuple[float, float],
    box: Mapping[str, tuple[float, float]],
    sets: tuple[tuple[str, ...], ...],
) -> PlainModel:
    """The model by one least squares a variable, of a data frame and the parents of each variable."""
    names = tuple(parents)
    values = table[list(names)].to_numpy()
    weights, intercept = np.zeros((len(names), len(names))), np.zeros(len(names))
    variance = np.zeros(len(names))
    for place, name in enumerate(names):
        causes = [names.index(parent) for parent in parents[name]]
        inputs = np.column_stack([np.ones(len(values)), values[:, causes]])
        found, *_ = np.linalg.lstsq(inputs, values[:, place], rcond=None)
        intercept[place], weights[causes, place] = found[0], found[1:]
        variance[place] = (values[:, place] - inputs @ found).var(ddof=len(found))
    return PlainModel(names, weights, intercept, variance, context, outcome, desired, box, sets)


def most_probable(model: PlainModel, contexts: np.ndarray) -> PlainDecisions:
    """The action with the largest probability of success: contexts (B, |X|)."""
    actions, values = [], []
    for names in model.sets:
        by_context, constant, effect, scale = model.effect(names)
        base = contexts @ by_context + constant
        found = filled(base, effect, *model.bounds(names), sum(model.desired) / 2)
        actions.append(found)
        values.append(model.success(base + found @ effect, scale))
    every = np.stack(values)
    which = every.argmax(0)
    return PlainDecisions(which, actions, np.log(every[which, np.arange(len(contexts))]))


def filled(
    base: np.ndarray, effect: np.ndarray, lower: np.ndarray, upper: np.ndarray, target: float
) -> np.ndarray:
    """Actions (B, k) whose mean is nearest to the target, one coordinate after the other."""
    lowest, highest = np.where(effect > 0, lower, upper), np.where(effect > 0, upper, lower)
    found = np.tile(lowest, (len(base), 1))
    missing = target - base - lowest @ effect
    for place, each in enumerate(effect):
        if each:
            moved = np.clip(missing / each, *sorted((0.0, highest[place] - lowest[place])))
            found[:, place] += moved
            missing = missing - moved * each
    return found


def cheapest(model: PlainModel, contexts: np.ndarray, observed: np.ndarray) -> PlainDecisions:
    """The cheapest action at the level chosen from the observed contexts (n, |X|)."""
    means, variances = model.moments()
    place = {name: index for index, name in enumerate(model.names)}
    usual = [means[[place[name] for name in names]] for names in model.sets]
    weights = [1 / variances[[place[name] for name in names]] for names in model.sets]
    effects = [model.effect(names) for names in model.sets]
    by_context, constant, _, scale = model.effect(())
    alone = model.success(observed @ by_context + constant, scale)
    scores = []
    for level in LEVELS:
        costs, actions = priced(model, effects, observed, weights, usual, level)
        best = costs.argmin(0)
        reached = np.stack(
            [
                model.success(observed @ each[0] + each[1] + found @ each[2], each[3])
                for each, found in zip(effects, actions, strict=True)
            ]
        )
        rows = np.arange(len(observed))
        scores.append(np.where(np.isfinite(costs[best, rows]), reached[best, rows], alone).mean())
    costs, actions = priced(model, effects, contexts, weights, usual, LEVELS[int(np.argmax(scores))])
    which, rows = costs.argmin(0), np.arange(len(contexts))
    values = -costs[which, rows]
    stuck = ~np.isfinite(values)
    if stuck.any():
        other = most_probable(model, contexts)
        which, values = np.where(stuck, other.which, which), np.where(stuck, other.values, values)
        actions = [np.where(stuck[:, None], *pair) for pair in zip(other.actions, actions, strict=True)]
    return PlainDecisions(which, actions, values)


def priced(
    model: PlainModel,
    effects: Sequence[tuple[np.ndarray, float, np.ndarray, float]],
    contexts: np.ndarray,
    weights: Sequence[np.ndarray],
    usual: Sequence[np.ndarray],
    level: float,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Costs (sets, B), infinite where infeasible, and actions (B, k) of each set."""
    low, high = model.desired
    radius, costs, actions = float(chi2.ppf(level, 1)) ** 0.5, [], []
    for names, (by_context, constant, effect, scale), weight, start in zip(
        model.sets, effects, weights, usual, strict=True
    ):
        base = contexts @ by_context + constant
        found = nearest(
            base, effect, weight, start, *model.bounds(names), low + radius * scale, high - radius * scale
        )
        mean = base + found @ effect
        met = (mean >= low + radius * scale - 1e-9) & (mean <= high - radius * scale + 1e-9)
        costs.append(np.where(met, ((found - start) ** 2) @ weight, np.inf))
        actions.append(found)
    return np.stack(costs), actions


def nearest(
    base: np.ndarray,
    effect: np.ndarray,
    weight: np.ndarray,
    start: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    low: float,
    high: float,
) -> np.ndarray:
    """The cheapest actions (B, k) with low <= base + e' z <= high in the box; those nearest to it where there
    are none.
    """
    slope = effect / weight
    moving = np.abs(slope) > 1e-300
    ends = np.concatenate([(bound - start)[moving] / slope[moving] for bound in (lower, upper)])
    knots = np.sort(np.append(ends, 0.0))
    reached = np.clip(start + knots[:, None] * slope, lower, upper) @ effect
    free = float(np.clip(start, lower, upper) @ effect)
    # An interval that is empty has no feasible mean, whatever the action.
    wanted = np.clip(base + free, low, max(low, high)) - base
    step = np.interp(wanted, reached, knots)
    step = np.where(wanted == free, 0.0, step)
    return np.clip(start + step[:, None] * slope, lower, upper)
