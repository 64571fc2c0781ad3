"""Structural generator of the NHANES benchmark: variables of 2011-2018, influence graph, fitted equations.

Context variables influence all others; `PARENTS` has the rest of the graph. A variable v >= 0 with parents p
satisfies

    v = clip(exp(f(p) + e) - 1),

f a boosted sum of trees fitted to log(1 + v), e drawn from the residuals of f, and the clip keeps v within
the observed support. The six context variables are roots: each is drawn from its own frequencies
(``independent``), or one after the other, each given those before it (``chain``: boosted classifiers, and the
same equation for income). The noises of the two outcomes are drawn with joint ranks (``paired``) or
independently.

Residuals e are kept as the means of Q equally large groups of neighbours, m_1 < ... < m_Q. Between the levels
(j - 1/2) / Q their quantile function is linear, beyond them flat; the quantile of a uniform u is a smoothed
residual bootstrap, and no residual of one person is kept. Two regressions with dependent residuals share a
table of how often the ranks of both fall into each cell of a grid; inside a cell they are uniform. The joint
distribution of the two ranks (a copula) is then bilinear between the grid lines.

A generator is a folder of two files: arrays of numbers in ``weights.safetensors``, everything else in
``card.yaml``, with the SHA-256 of the numbers. It holds trees, frequencies and group means; no row of a
participant. Nothing is unpickled, and the hash says whether the numbers are those that were written.

Trees are evaluated with bit masks. A boosted model is a constant and a sum of trees, f(x) = c + sum_t v_t(x).
A tree of at most eight leaves is a set of leaves, one bit each, numbered from left to right. A node "x_f <=
threshold" that fails rules out the leaves to its left; the remaining leaves of a tree are the AND over all
failed nodes, and the leftmost of them is where x ends. All nodes on one variable are evaluated by one lookup
in a table with a row for each interval between that variable's thresholds. A variable that is the same for
many rows is looked up once, and only trees of variables that change are evaluated for each row.

Source: Du et al. (2026), App. E.4 (variables, influence, equations; the chain and the joint ranks are ours);
the CDC's codebooks of 2011-2018; Efron and Tibshirani (1993), Sec. 9.4 (bootstrapping residuals); Sklar
(1959) (separating ranks from margins); Friedman (2001), Alg. 1 (boosted trees); Lucchese et al. (2015),
Sec. 3 (evaluation with bit masks).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from rehearsal_torch.files.bounded_yaml import PlainFileError, read_yaml
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph

Array = NDArray[np.float64]
LEAF = -1
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """f(x) = start + sum_t v_t(x), T trees of at most L nodes and 8 leaves over p variables.

    Attributes:
        width, start: p and c.
        feature: (T, L) int16, the variable that a node compares; -1 at leaves and at unused places.
        threshold: (T, L) float32; a row with x_f <= threshold goes left. x is rounded to float32 first.
        left, right: (T, L) int16, the indices of the children, larger than their parent's; 0 at leaves.
        value: (T, L) float32, the contribution of a leaf.
    """

    width: int
    start: float
    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    left: NDArray[np.int16]
    right: NDArray[np.int16]
    value: NDArray[np.float32]

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray], width: int) -> "BoostedTrees":
        """Trees from named arrays."""
        integers, floats = ("feature", "left", "right"), ("threshold", "value")
        dtypes = dict.fromkeys(integers, np.int16) | dict.fromkeys(floats, np.float32)
        nodes: dict[str, Any] = {name: arrays[name].astype(dtype) for name, dtype in dtypes.items()}
        return cls(width, float(arrays["start"].reshape(())), **nodes)

    def __call__(self, columns: Sequence[Array]) -> Array:
        """f(x), float64, in the broadcast shape of the p columns, each (R, M), (R, 1), (1, M) or (1, 1)."""
        shape = np.broadcast_shapes(*(column.shape for column in columns))
        changing = tuple(variable for variable, column in enumerate(columns) if column.shape[1] > 1)
        changing_trees, fixed_trees = self._split(changing)
        total = np.full(shape, self.start)
        if fixed_trees is not None:
            total += fixed_trees([column[:, :1] if column.shape[1] > 1 else column for column in columns])
        if changing_trees is not None:
            total += changing_trees(columns)
        return total

    def _split(self, changing: tuple[int, ...]) -> "tuple[BitTrees | None, BitTrees | None]":
        """The trees that use one of the changing variables, and the others."""
        if changing not in self._splits:
            uses: NDArray[np.bool_] = np.isin(self.feature, changing).max(1)
            self._splits[changing] = (
                BitTrees.of(self, uses) if uses.any() else None,
                BitTrees.of(self, ~uses) if not uses.all() else None,
            )
        return self._splits[changing]

    @cached_property
    def _splits(self) -> "dict[tuple[int, ...], tuple[BitTrees | None, BitTrees | None]]":
        return {}

    @cached_property
    def thresholds(self) -> tuple[Array, ...]:
        """For each variable, the thresholds of all nodes that compare it, ascending."""
        cuts = (self.threshold[self.feature == variable] for variable in range(self.width))
        return tuple(np.unique(values).astype(np.float64) for values in cuts)


@dataclass(frozen=True, eq=False)
class BitTrees:
    """Trees as tables of bit masks.

    Attributes:
        cuts: For each variable, its thresholds, ascending, (c_f,) float32.
        masks: By variable, leaves that its nodes do not rule out above j thresholds, (c_f + 1, T) uint8.
        values: (T * 256,) float32, the value of the leftmost leaf of each mask.
    """

    cuts: tuple[NDArray[np.float32], ...]
    masks: tuple[NDArray[np.uint8], ...]
    values: NDArray[np.float32]

    @classmethod
    def of(cls, trees: BoostedTrees, keep: NDArray[np.bool_]) -> "BitTrees":
        """The tables of the trees selected by keep (T,)."""
        chosen = np.flatnonzero(keep)
        nodes: list[tuple[int, float, int, int]] = []  # variable, threshold, tree, leaves to the left
        values = np.zeros((len(chosen), 256), dtype=np.float32)
        for column, tree in enumerate(chosen):
            inner_nodes, leaf_values = _walk(trees, int(tree))
            nodes += [(variable, cut, column, mask) for variable, cut, mask in inner_nodes]
            for mask in range(1, 256):
                lowest = (mask & -mask).bit_length() - 1
                values[column, mask] = leaf_values[lowest] if lowest < len(leaf_values) else 0.0
        cuts, masks = [], []
        for variable in range(trees.width):
            variable_nodes = [node for node in nodes if node[0] == variable]
            edges = np.unique(np.asarray([cut for _, cut, _, _ in variable_nodes], dtype=np.float32))
            table = np.full((len(edges) + 1, len(chosen)), 255, dtype=np.uint8)
            for _, cut, column, mask in variable_nodes:
                table[int(np.searchsorted(edges, np.float32(cut))) + 1 :, column] &= np.uint8(255 ^ mask)
            cuts.append(edges)
            masks.append(table)
        return cls(tuple(cuts), tuple(masks), values.reshape(-1))

    def __call__(self, columns: Sequence[Array]) -> Array:
        """The sum over the trees, in the broadcast shape of the columns."""
        shape = np.broadcast_shapes(*(column.shape for column in columns))
        # In float32, as the trees were grown, so that a value equal to a threshold goes left in both.
        bins = [
            np.searchsorted(cuts, column.astype(np.float32)) if len(cuts) else None
            for cuts, column in zip(self.cuts, columns, strict=True)
        ]
        total = np.empty(shape)
        offsets = np.arange(0, len(self.values), 256)
        step = max(1, _ROWS_AT_ONCE // shape[1])
        for first in range(0, shape[0], step):
            for second in range(0, shape[1], _ROWS_AT_ONCE):
                block = (slice(first, first + step), slice(second, second + _ROWS_AT_ONCE))
                masks: dict[tuple[int, ...], NDArray[np.uint8]] = {}
                for table, interval in zip(self.masks, bins, strict=True):
                    if interval is not None:
                        axes = zip(block, interval.shape, strict=True)
                        rows = interval[tuple(part if length > 1 else slice(None) for part, length in axes)]
                        masks[rows.shape] = masks.get(rows.shape, np.uint8(255)) & table[rows]
                mask = np.full((1, 1, len(offsets)), 255, dtype=np.uint8)
                for remaining in masks.values():
                    mask = mask & remaining
                total[block] = self.values.take(mask + offsets).sum(-1, dtype=np.float64)
        return total


def _walk(trees: BoostedTrees, tree: int) -> tuple[list[tuple[int, float, int]], list[float]]:
    """A tree's inner nodes (variable, threshold, leaves to the left), and its leaves' values in order."""
    nodes: list[tuple[int, float, int]] = []
    leaves: list[float] = []

    def descend(node: int) -> None:
        if trees.feature[tree, node] == LEAF:
            leaves.append(float(trees.value[tree, node]))
            return
        first = len(leaves)
        descend(int(trees.left[tree, node]))
        mask = sum(1 << leaf for leaf in range(first, len(leaves)))
        nodes.append((int(trees.feature[tree, node]), float(trees.threshold[tree, node]), mask))
        descend(int(trees.right[tree, node]))

    descend(0)
    return nodes, leaves


CONTEXT = ("Age", "Sex", "Race", "FamilyHx_Diabetes", "Education", "Income_Ratio")
ACTIONABLE = ("BMI", "CalIntake", "CarbIntake", "FiberIntake", "Sedentary_min")
OUTCOMES = ("HbA1c", "FPG")
INNER = (*ACTIONABLE, "SBP", "DBP", "TotalCholesterol", "HDL")
VARIABLES = CONTEXT + INNER + OUTCOMES
UNITS = {
    "Age": "years, 80 and more are 80",
    "Sex": "1 male, 2 female",
    "Race": "RIDRETH3: 1 Mexican American, 2 other Hispanic, 3 white, 4 black, 6 Asian, 7 other (3-7 "
    "non-Hispanic)",
    "FamilyHx_Diabetes": "1 a close relative has diabetes, 0 none",
    "Education": "1 below 9th grade ... 5 college graduate",
    "Income_Ratio": "family income to poverty level, 5 and more are 5",
    "BMI": "kg/m2",
    "CalIntake": "kcal a day",
    "CarbIntake": "g a day",
    "FiberIntake": "g a day",
    "Sedentary_min": "minutes a day",
    "SBP": "mmHg",
    "DBP": "mmHg",
    "TotalCholesterol": "mg/dL",
    "HDL": "mg/dL",
    "HbA1c": "%",
    "FPG": "mg/dL",
}
_BODY = (*CONTEXT, "BMI")
_DIET = (*_BODY, "CalIntake")
_ALL = (*_DIET, "FiberIntake", "Sedentary_min", "SBP", "TotalCholesterol", "HDL")
PARENTS: dict[str, tuple[str, ...]] = {
    "BMI": CONTEXT,
    "CalIntake": _BODY,
    **dict.fromkeys(("CarbIntake", "FiberIntake"), _DIET),
    "Sedentary_min": CONTEXT,
    **dict.fromkeys(("SBP", "DBP"), _BODY),
    **dict.fromkeys(("TotalCholesterol", "HDL"), _DIET),
    **dict.fromkeys(OUTCOMES, _ALL),
}
DESIRED = {"HbA1c": (None, 5.7), "FPG": (None, 100.0)}


def influence_graph(paired: bool = True, chain: bool = False) -> RehearsalGraph:
    """The influence graph; paired outcomes, and a chain of contexts, are joined by bidirected edges."""
    bidirected = ([OUTCOMES] if paired else []) + ([CONTEXT] if chain else [])
    return RehearsalGraph.of(PARENTS, bidirected)


@dataclass(frozen=True, eq=False)
class ResidualDistribution:
    """A quantile function through the means of Q equally large groups, (Q,), strictly ascending."""

    means: Array

    @property
    def _levels(self) -> Array:
        return (np.arange(len(self.means)) + 0.5) / len(self.means)

    def quantile(self, uniform: Array) -> Array:
        """Residuals from uniform numbers, (...) -> (...)."""
        return np.interp(uniform, self._levels, self.means)

    def below(self, residual: Array) -> Array:
        """P(e < residual), (...) -> (...): an atom at a bound counts above it."""
        return np.interp(residual, self.means, self._levels, left=0.0, right=1.0)


@dataclass(frozen=True, eq=False)
class PairedRanks:
    """The joint distribution of two ranks: grid lines from 0 to 1, (E,), and the probability of each cell, (E
    - 1, E - 1), whose rows and columns sum to the cells' widths.
    """

    edges: Array
    shares: Array

    @classmethod
    def independent(cls) -> "PairedRanks":
        """Independent ranks."""
        return cls(np.array([0.0, 1.0]), np.array([[1.0]]))

    def second(self, first: Array, uniform: Array) -> Array:
        """The second rank given the first, from uniform numbers; (...), (...) -> (...)."""
        row = np.clip(np.searchsorted(self.edges, first, side="right") - 1, 0, len(self.edges) - 2)
        cumulative = np.pad(np.cumsum(self.shares / self.shares.sum(1, keepdims=True), 1), ((0, 0), (1, 0)))
        cumulative[:, -1] = 1.0
        column = np.clip((cumulative[row, 1:] <= uniform[..., None]).sum(-1), 0, len(self.edges) - 2)
        start, end = cumulative[row, column], cumulative[row, column + 1]
        inside = (uniform - start) / np.maximum(end - start, 1e-300)
        return self.edges[column] + np.clip(inside, 0, 1) * (self.edges[column + 1] - self.edges[column])

    def below(self, first: Array, second: Array) -> Array:
        """P(rank one < first, rank two < second), (...), (...) -> (...); bilinear between the grid lines."""
        joint = np.pad(self.shares.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        cells, fractions = [], []
        for rank in (first, second):
            cell = np.clip(np.searchsorted(self.edges, rank, side="right") - 1, 0, len(self.edges) - 2)
            cells.append(cell)
            fractions.append((rank - self.edges[cell]) / (self.edges[cell + 1] - self.edges[cell]))
        (row, column), (down, along) = cells, fractions
        upper = joint[row, column] * (1 - along) + joint[row, column + 1] * along
        lower = joint[row + 1, column] * (1 - along) + joint[row + 1, column + 1] * along
        return upper * (1 - down) + lower * down


FORMAT = 1
SHIPPED = Path(__file__).parent / "generators" / "nhanes"
LARGEST = 2**28
FILES = ("weights.safetensors", "card.yaml")


@dataclass(frozen=True, eq=False)
class Frequencies:
    """An empirical categorical distribution: values, (K,), ascending, and shares, (K,), that sum to 1."""

    values: Array
    shares: Array

    def quantile(self, uniform: Array) -> Array:
        """Values from uniform numbers, (...) -> (...)."""
        index = np.searchsorted(np.cumsum(self.shares), uniform, side="right")
        return self.values[np.clip(index, 0, len(self.values) - 1)]


@dataclass(frozen=True, eq=False)
class Classifier:
    """P(v = values_j | parents), the softmax of K sums of boosted trees; of K - 1 if the first is 0."""

    values: Array
    scores: tuple[BoostedTrees, ...]

    def quantile(self, columns: list[Array], uniform: Array) -> Array:
        """Classes from uniform numbers, given columns of the parents."""
        logits = [score(columns) for score in self.scores]
        logits = [np.zeros_like(logits[0]), *logits] if len(logits) < len(self.values) else logits
        odds = np.exp(np.stack(logits) - np.max(logits, 0))
        cumulative = np.cumsum(odds, 0) / odds.sum(0)
        return self.values[np.clip((cumulative <= uniform).sum(0), 0, len(self.values) - 1)]


@dataclass(frozen=True, eq=False)
class LogEquation:
    """v = clip(exp(f(parents) + e) - 1): f, the distribution of e, and the smallest and the largest v."""

    trees: BoostedTrees
    noise: ResidualDistribution
    support: tuple[float, float]

    def quantile(self, columns: list[Array], uniform: Array) -> Array:
        """Values from uniform numbers, given columns of the parents."""
        return np.clip(np.expm1(self.trees(columns) + self.noise.quantile(uniform)), *self.support)

    def rank_of(self, columns: list[Array], bound: float) -> Array:
        """P(v <= bound | parents) for a bound inside the support, given columns of the parents."""
        return self.noise.below(np.log1p(bound) - self.trees(columns))


@dataclass(frozen=True, eq=False)
class Generator:
    """The fitted generator.

    Attributes:
        chain: Each context variable but the first to its conditional distribution given those before it.
        equations: Every other variable to its equation.
        ranks: The joint distribution of the ranks of the two outcomes' noises.
        card: Data, goodness of fit, and the [1 %, 99 %] interval of each actionable variable.
    """

    roots: Mapping[str, Frequencies]
    chain: Mapping[str, Classifier | LogEquation]
    equations: Mapping[str, LogEquation]
    ranks: PairedRanks
    card: Mapping[str, Any] = field(default_factory=dict)

    def contexts(self, uniform: Array, chain: bool = False) -> dict[str, Array]:
        """Context variables from uniform numbers (6, n), each (n, 1)."""
        columns: dict[str, Array] = {}
        for name, levels in zip(CONTEXT, uniform[..., None], strict=True):
            distribution = self.chain[name] if chain and name in self.chain else self.roots[name]
            if isinstance(distribution, Frequencies):
                columns[name] = distribution.quantile(levels)
            else:
                columns[name] = distribution.quantile([*columns.values()], levels)
        return columns

    def inner(self, given: Mapping[str, Array], uniform: Mapping[str, Array]) -> dict[str, Array]:
        """The variables between context and outcomes: given ones, (R, 1) or (1, 1), are kept, the others
        follow from their uniform numbers, (R, 1) or (1, M), or are left out where they have none.
        """
        columns = dict(given)
        for name in INNER:
            if name not in columns and name in uniform:
                parents = [columns[parent] for parent in PARENTS[name]]
                columns[name] = self.equations[name].quantile(parents, uniform[name])
        return columns

    def outcomes(
        self, columns: Mapping[str, Array], first: Array, second: Array, paired: bool = True
    ) -> dict[str, Array]:
        """The two outcomes, from two uniform numbers per row."""
        levels = (first, (self.ranks if paired else PairedRanks.independent()).second(first, second))
        return {
            name: self.equations[name].quantile([columns[parent] for parent in PARENTS[name]], level)
            for name, level in zip(OUTCOMES, levels, strict=True)
        }

    def desired(
        self, columns: Mapping[str, Array], bounds: tuple[float, float], paired: bool = True
    ) -> Array:
        """P(HbA1c and FPG <= bounds | all variables before them), the outcomes' noise integrated out."""
        ranks = [
            self.equations[name].rank_of([columns[parent] for parent in PARENTS[name]], bound)
            for name, bound in zip(OUTCOMES, bounds, strict=True)
        ]
        return self.ranks.below(*ranks) if paired else ranks[0] * ranks[1]

    def draw(
        self, count: int, stream: np.random.Generator, chain: bool = False, paired: bool = True
    ) -> Array:
        """Rows of all variables under no action, (count, 17)."""
        uniform = stream.random((count, len(VARIABLES))).T
        columns = self.inner(
            self.contexts(uniform[: len(CONTEXT)], chain),
            dict(zip(INNER, uniform[len(CONTEXT) : -2, :, None], strict=True)),
        )
        columns |= self.outcomes(columns, uniform[-2][:, None], uniform[-1][:, None], paired)
        return np.concatenate([columns[name] for name in VARIABLES], 1)

    @classmethod
    def load(cls, folder: Path = SHIPPED) -> "Generator":
        """Reads a folder; ValueError if a file is missing, was changed since, or holds no generator."""
        weights, card_file = folder / FILES[0], folder / FILES[1]
        if missing := [name for name in FILES if not (folder / name).is_file()]:
            raise ValueError(
                f"{folder}: there is no {' and no '.join(missing)}: give a folder that `python -m "
                "reproduction.nhanes` wrote as <out>/generator"
            )
        remedy = "prepare the generator again"
        if weights.stat().st_size > LARGEST:
            raise ValueError(f"{weights}: expected at most {LARGEST // 2**20} MiB; it is larger: {remedy}")
        content = weights.read_bytes()
        try:
            card = read_yaml(card_file)
        except PlainFileError as error:
            raise ValueError(f"{error}: {remedy}") from error
        if not isinstance(card, dict) or card.get("format") != FORMAT:
            raise ValueError(f"{card_file}: expected a card of format {FORMAT}: {remedy}")
        if hashlib.sha256(content).hexdigest() != card.get("sha256"):
            mismatch = "is not the file that card.yaml describes (its SHA-256 differs)"
            raise ValueError(f"{weights} {mismatch}: {remedy}")
        try:
            return _parse(load(content), card)
        except SafetensorError as error:
            raise ValueError(f"{weights} is not a safetensors file ({error}): {remedy}") from error
        except (KeyError, IndexError) as error:
            raise ValueError(f"{weights} lacks {error}: {remedy}") from error


def _parse(arrays: Mapping[str, NDArray], card: Mapping[str, Any]) -> Generator:
    def distribution(group: str, name: str, width: int) -> Classifier | LogEquation:
        trees: list[BoostedTrees] = []
        while f"{group}.{name}.{len(trees)}.feature" in arrays:
            prefix = f"{group}.{name}.{len(trees)}."
            nodes = {key.removeprefix(prefix): part for key, part in arrays.items() if key.startswith(prefix)}
            trees.append(BoostedTrees.of(nodes, width))
        if f"{group}.{name}.values" in arrays:
            values = arrays[f"{group}.{name}.values"]
            return Classifier(values, tuple(trees))
        lower, upper = arrays[f"{group}.{name}.support"].tolist()
        return LogEquation(trees[0], ResidualDistribution(arrays[f"{group}.{name}.means"]), (lower, upper))

    equations: dict[str, LogEquation] = {}
    for name in (*INNER, *OUTCOMES):
        equation = distribution("equations", name, len(PARENTS[name]))
        assert isinstance(equation, LogEquation)
        equations[name] = equation
    roots = {
        name: Frequencies(arrays[f"roots.{name}.values"], arrays[f"roots.{name}.shares"]) for name in CONTEXT
    }
    return Generator(
        roots,
        {name: distribution("chain", name, index + 1) for index, name in enumerate(CONTEXT[1:])},
        equations,
        PairedRanks(arrays["ranks.edges"], arrays["ranks.shares"]),
        card,
    )
