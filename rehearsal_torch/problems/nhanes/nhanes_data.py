"""NHANES: which diet, weight and rest keep HbA1c below 5.7 % and fasting glucose below 100 mg/dL?

A semi-synthetic world. The influence graph was drawn by experts, the generator was fitted to 7,465 adults of
2011-2018 and is shipped; both are taken as the truth here, whatever holds in medicine.

Given a context and an alteration, the outcomes' own noise is integrated out: with ranks C(u, v),

    P(Y in S | x, a) = E[ C(F_1(log 6.7 - f_1), F_2(log 101 - f_2)) ],

the mean over 16,384 fixed scrambled Sobol points for the variables in between, common random numbers for all
actions. Trees make it a step function of the action, so the oracle uses no gradients: it screens Sobol
points, runs coordinate ascent over all steps of each variable, and evaluates the result with all points.

Source: Du et al. (2026), Sec. 4.1 and App. E.4.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rehearsal_torch.data.records import positions
from rehearsal_torch.data.table import Table
from rehearsal_torch.problems.cases.rehearsal_world import RehearsalWorld, task_of
from rehearsal_torch.problems.nhanes.nhanes_generator import (
    ACTIONABLE,
    CONTEXT,
    DESIRED,
    INNER,
    OUTCOMES,
    PARENTS,
    SHIPPED,
    UNITS,
    VARIABLES,
    Array,
    Generator,
    influence_graph,
)
from rehearsal_torch.problems.world_size import SampleSize
from rehearsal_torch.seeding import numpy_generator, sobol

SOURCE = (
    "Du et al. (2026), App. E.4; U.S. National Center for Health Statistics, NHANES 2011-2018, public-use "
    "files"
)
CAUTION = (
    "Fitted to cross-sectional data without survey weights: the effects of an alteration hold for this "
    "generator and are not medical advice."
)
CANDIDATES = {"joint": (ACTIONABLE,), "single": tuple((name,) for name in ACTIONABLE)}
ROOTS = ("independent", "chain")
NOISE = ("paired", "independent")
POINTS = 2**14  # of the scored probability
_SCREENED, _COARSE, _FINE, _STARTS, _SWEEPS = 2**11, 2**7, 2**9, 8, 6
_CELLS_AT_ONCE = 2**21
# Cache of oracles by generator, noise, context and names: all methods in a process share the contexts.
_ORACLES: dict[tuple[object, ...], tuple[Array, float]] = {}


class Nhanes(RehearsalWorld):
    """The NHANES benchmark; ValueError if an argument is none of these, or the generator cannot be read.

    Args:
        size: Number of observations and cases.
        seed: Seed of observations and contexts.
        validation: Share of the rows held out for early stopping.
        candidates: "joint", all five actionable variables are set, or "single", one of them.
        roots: "independent", context variables from their own frequencies (the paper), or "chain", in turn.
        noise: "paired", the outcomes' noises keep their joint ranks, or "independent" (the paper's text).
        generator: A folder that ``python -m reproduction.nhanes`` wrote; None for the shipped one.
    """

    def __init__(
        self,
        size: SampleSize = SampleSize(),
        seed: int = 0,
        validation: float = 0.0,
        candidates: str = "joint",
        roots: str = "independent",
        noise: str = "paired",
        generator: str | Path | None = None,
    ) -> None:
        options = {"candidates": (candidates, CANDIDATES), "roots": (roots, ROOTS), "noise": (noise, NOISE)}
        for argument, (value, choices) in options.items():
            if value not in choices:
                raise ValueError(f"{argument}: expected {' or '.join(choices)}; got {value!r}")
        self.generator = Generator.load(SHIPPED if generator is None else Path(generator))
        self.chain, self.paired = roots == "chain", noise == "paired"
        graph, bounds = influence_graph(self.paired, self.chain), self.generator.card["bounds"]
        task = task_of(graph, CONTEXT, bounds, DESIRED, CANDIDATES[candidates])
        super().__init__(task, size, seed, validation)
        # Scrambled Sobol points, (9, POINTS), the same in every world.
        self._bank = sobol(len(INNER)).draw(POINTS, dtype=torch.float64).numpy().T.copy()

    def draw(self, count: int, stream: np.random.Generator) -> Table:
        """Participants drawn from the generator."""
        rows = self.generator.draw(count, stream, self.chain, self.paired)
        return Table.observed(VARIABLES, torch.from_numpy(rows))

    def rehearse(self, context: Tensor, names: Sequence[str], values: Tensor, count: int) -> Table:
        """Outcomes of an alteration in one context, (count, 17); values are clipped to the box."""
        # Drawn row by row, so that the first rows do not depend on `count`.
        uniform = numpy_generator(self.seed, 3).random((count, len(INNER) + 2)).T
        inputs = self._inputs(context.reshape(1, -1), names, values.reshape(1, -1))
        columns = self.generator.inner(inputs, dict(zip(INNER, uniform[:-2, None, :], strict=True)))
        columns |= self.generator.outcomes(columns, uniform[-2][None], uniform[-1][None], self.paired)
        rows = np.stack([np.broadcast_to(columns[name], (1, count))[0] for name in VARIABLES], 1)
        altered = torch.zeros(count, len(VARIABLES), dtype=torch.bool)
        altered[:, positions(VARIABLES, names)] = True
        return Table(VARIABLES, torch.from_numpy(rows), altered)

    def probability(self, contexts: Tensor, names: Sequence[str], values: Tensor) -> Tensor:
        """P(Y in S | x, alteration), (B, 6), (..., B, k) -> (..., B); values are clipped to the box."""
        shape = values.shape[:-1]
        rows = contexts.expand(*shape, len(CONTEXT)).reshape(-1, len(CONTEXT))
        flat = self._probability(rows, names, values.reshape(len(rows), len(names)), POINTS)
        return torch.from_numpy(flat).to(values).reshape(shape)

    def optimal(self, contexts: Tensor, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """By `_search`; a search with ten times the effort found less than .001 more."""
        oracles = [self._optimum(context, tuple(names)) for context in contexts]
        values, reached = zip(*oracles, strict=True)
        return torch.from_numpy(np.stack(values)).to(contexts), contexts.new_tensor(reached)

    def card(self) -> Mapping[str, Any]:
        """Sizes, roles, ranges, units, caution, and the generator's own card."""
        facts = {"source": SOURCE, "units": UNITS, "caution": CAUTION, "generator": dict(self.generator.card)}
        return {**super().card(), **facts}

    def _inputs(self, contexts: Tensor, names: Sequence[str], values: Tensor) -> dict[str, Array]:
        """Context and altered variables as columns (R, 1)."""
        settings = self.task.box.only(names).project(values.double()).numpy()
        columns = dict(zip(CONTEXT, contexts.double().numpy().T[..., None], strict=True))
        return columns | dict(zip(names, settings.T[..., None], strict=True))

    def _probability(self, contexts: Tensor, names: Sequence[str], values: Tensor, points: int) -> Array:
        """Row by row, contexts (R, 6) and values (R, k) -> (R,), over the first `points` Sobol points."""
        # Variables that influence no outcome, such as carbohydrates, are not drawn.
        needed = [name for name in INNER if name not in names and name in self._ancestors(names)]
        uniform = {name: self._bank[INNER.index(name), None, :points] for name in needed}
        bounds = (DESIRED["HbA1c"][1], DESIRED["FPG"][1])
        step, blocks = max(1, _CELLS_AT_ONCE // points), []
        for first in range(0, len(values), step):
            inputs = self._inputs(contexts[first : first + step], names, values[first : first + step])
            columns = self.generator.inner(inputs, uniform)
            blocks.append(self.generator.desired(columns, bounds, self.paired).mean(1))
        return np.concatenate(blocks)

    def _ancestors(self, names: Sequence[str]) -> frozenset[str]:
        """The ancestors of the outcomes once `names` are set."""
        return self.task.graph.altered(names).ancestors(OUTCOMES)

    def _optimum(self, context: Tensor, names: tuple[str, ...]) -> tuple[Array, float]:
        key = (self.generator.card["sha256"], self.paired, tuple(context.tolist()), names)
        if key not in _ORACLES:
            _ORACLES[key] = self._search(context, names)
        return _ORACLES[key]

    def _search(self, context: Tensor, names: tuple[str, ...]) -> tuple[Array, float]:
        """Screening, coordinate ascent over steps, and a final evaluation of the best candidates."""

        def value(actions: Array, points: int) -> Array:
            rows = context.expand(len(actions), -1)
            return self._probability(rows, names, torch.from_numpy(actions), points)

        box = self.task.box.only(names)
        grid = np.concatenate([box.centre[None].numpy(), box.sobol(_SCREENED, seed=1).numpy()])
        grid = grid[np.argsort(-value(grid, _COARSE))[: 4 * _STARTS]]
        ends = grid[np.argsort(-value(grid, _FINE))[:_STARTS]]
        edges = [self._edges(name, names) for name in names]
        steps = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
        # Moved to the middle of its step, where the probability is the same, so that equal ends are detected.
        columns = zip(steps, edges, ends.T, strict=True)
        ends = np.stack([axis[np.searchsorted(edge[1:-1], column)] for axis, edge, column in columns], 1)
        for points in (_COARSE, _FINE):
            ends = _ascend(partial(value, points=points), ends, steps)
            ends = ends[np.argsort(-value(ends, _FINE))[: max(2, _STARTS // 4)]]
        final = value(ends, POINTS)
        return ends[final.argmax()], float(final.max())

    def _edges(self, name: str, names: Sequence[str]) -> Array:
        """The steps of the probability along one variable, and the ends of its interval, (s + 1,)."""
        lower, upper = self.task.box.bounds()[name]
        affected = self._ancestors(names) - set(names)
        cuts = [
            self.generator.equations[child].trees.thresholds[parents.index(name)]
            for child, parents in PARENTS.items()
            if child in affected and name in parents
        ]
        inside = np.unique(np.concatenate([np.empty(0), *cuts]))
        return np.concatenate([[lower], inside[(inside > lower) & (inside < upper)], [upper]])


def _ascend(value: Callable[[Array], Array], starts: Array, steps: Sequence[Array]) -> Array:
    """The ends of coordinate ascents over all steps of one variable at a time, (c, k)."""
    ends, best_values, pending = starts.copy(), value(starts), np.ones(starts.shape, dtype=bool)
    for _ in range(_SWEEPS):
        for variable, axis in enumerate(steps):
            rows = np.flatnonzero(pending[:, variable])
            if not len(rows):
                continue
            candidates = np.repeat(ends[rows, None], len(axis), 1)
            candidates[:, :, variable] = axis
            values = value(candidates.reshape(-1, len(steps))).reshape(len(rows), -1)
            pending[rows, variable] = False
            moved = rows[values.max(1) > best_values[rows] + 1e-6]
            best = values.argmax(1)[np.isin(rows, moved)]
            ends[moved, variable], best_values[moved] = axis[best], values.max(1)[np.isin(rows, moved)]
            # From the new point, the other variables have to be searched again.
            pending[moved] = True
            pending[moved, variable] = False
        distinct = np.unique(ends, axis=0, return_index=True)[1]
        ends, best_values, pending = ends[distinct], best_values[distinct], pending[distinct]
        if not pending.any():
            break
    return ends
