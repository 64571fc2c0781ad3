"""Sums of small regression trees, evaluated with bit masks.

A boosted model is a constant and a sum of trees, f(x) = c + sum_t v_t(x). A tree of at most eight leaves is a
set of leaves, one bit each, numbered from left to right. A node "x_f <= threshold" that fails rules out the
leaves to its left; the remaining leaves of a tree are the AND over all failed nodes, and the leftmost of them
is where x ends. All nodes on one variable are evaluated by one lookup in a table with a row for each interval
between that variable's thresholds. A variable that is the same for many rows is thus looked up once, and only
trees that use a variable which changes from row to row are evaluated for each row.

Trees are plain arrays of numbers: nothing is unpickled, and what is read is checked before it is used.

Source: Friedman (2001), Alg. 1 (boosted trees); Lucchese et al. (2015), Sec. 3 (evaluation with bit masks).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LEAVES = 8
LEAF = -1
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """f(x) = start + sum_t v_t(x), with T trees of at most L nodes and 8 leaves over p variables.

    Attributes:
        width, start: p and c.
        feature: (T, L) int16, the variable that a node compares; -1 at leaves and at unused places.
        threshold: (T, L) float32; a row with x_f <= threshold goes left. x is rounded to float32 first.
        left, right: (T, L) int16, the indices of the children, larger than their parent's; 0 at leaves.
        value: (T, L) float32, the contribution of a leaf.

    Raises:
        ValueError: if shapes disagree, a number is not finite, or the arrays are not trees.
    """

    width: int
    start: float
    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    left: NDArray[np.int16]
    right: NDArray[np.int16]
    value: NDArray[np.float32]

    def __post_init__(self) -> None:
        shape = self.feature.shape
        sides = (self.left, self.right)
        if len(shape) != 2 or any(each.shape != shape for each in (self.threshold, *sides, self.value)):
            names = "feature, threshold, left, right and value"
            raise ValueError(f"trees: expected {names} of one shape (trees, nodes); the file is damaged")
        inner = self.feature != LEAF
        here = np.broadcast_to(np.arange(shape[1]), shape)
        numbers = (self.threshold, self.value, self.start)
        early = [inner & ((side <= here) | (side >= shape[1])) for side in sides]
        features = (self.feature < LEAF) | (self.feature >= self.width)
        bad = {
            "a number is not finite": not all(np.isfinite(each).all() for each in numbers),
            f"a node's feature is not one of {self.width} variables": features.any(),
            "a child does not come after its parent": np.any(early),
        }
        if any(bad.values()):
            words = " and ".join(text for text, wrong in bad.items() if wrong)
            raise ValueError(f"trees: {words}; the file is damaged")
        for tree in range(shape[0]):
            _walk(self, tree)

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray], width: int) -> "BoostedTrees":
        """Trees from named arrays of any types of numbers.

        Raises:
            ValueError: if an array is missing or invalid.
        """
        types = dict.fromkeys(("feature", "left", "right"), np.int16) | dict.fromkeys(
            ("threshold", "value"), np.float32
        )
        missing = [name for name in (*types, "start") if name not in arrays]
        if missing:
            raise ValueError(f"trees: no array {missing}; the file is damaged")
        nodes: dict[str, Any] = {name: arrays[name].astype(kind) for name, kind in types.items()}
        return cls(width, float(arrays["start"].reshape(())), **nodes)

    def __call__(self, columns: Sequence[Array]) -> Array:
        """f(x), float64, in the broadcast shape of the p columns, each (R, M), (R, 1), (1, M) or (1, 1)."""
        if len(columns) != self.width:
            raise ValueError(f"expected {self.width} columns; got {len(columns)}")
        shape = np.broadcast_shapes(*(column.shape for column in columns))
        changing = tuple(variable for variable, column in enumerate(columns) if column.shape[1] > 1)
        often, seldom = self._split(changing)
        total = np.full(shape, self.start)
        if seldom is not None:
            total += seldom([column[:, :1] if column.shape[1] > 1 else column for column in columns])
        if often is not None:
            total += often(columns)
        return total

    def _split(self, changing: tuple[int, ...]) -> "tuple[BitTrees | None, BitTrees | None]":
        """The trees that use one of the changing variables, and the others."""
        if changing not in self._splits:
            asks: NDArray[np.bool_] = np.isin(self.feature, changing).max(1)
            self._splits[changing] = (
                BitTrees.of(self, asks) if asks.any() else None,
                BitTrees.of(self, ~asks) if not asks.all() else None,
            )
        return self._splits[changing]

    @cached_property
    def _splits(self) -> "dict[tuple[int, ...], tuple[BitTrees | None, BitTrees | None]]":
        return {}

    @cached_property
    def thresholds(self) -> tuple[Array, ...]:
        """For each variable, the thresholds of all nodes that compare it, ascending."""
        cuts = (self.threshold[self.feature == variable] for variable in range(self.width))
        return tuple(np.unique(each).astype(np.float64) for each in cuts)


@dataclass(frozen=True, eq=False)
class BitTrees:
    """Trees as tables of bit masks.

    Attributes:
        cuts: For each variable, its thresholds, ascending, (c_f,) float32.
        masks: For each variable, the leaves that its failed nodes do not rule out, (c_f + 1, T) uint8; row j
            for values above j thresholds.
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
            inner, order = _walk(trees, int(tree))
            nodes += [(variable, cut, column, mask) for variable, cut, mask in inner]
            for mask in range(1, 256):
                lowest = (mask & -mask).bit_length() - 1
                values[column, mask] = order[lowest] if lowest < len(order) else 0.0
        cuts, masks = [], []
        for variable in range(trees.width):
            own = [node for node in nodes if node[0] == variable]
            edges = np.unique(np.asarray([cut for _, cut, _, _ in own], dtype=np.float32))
            table = np.full((len(edges) + 1, len(chosen)), 255, dtype=np.uint8)
            for _, cut, column, mask in own:
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
                part = (slice(first, first + step), slice(second, second + _ROWS_AT_ONCE))
                alive: dict[tuple[int, ...], NDArray[np.uint8]] = {}
                for table, interval in zip(self.masks, bins, strict=True):
                    if interval is not None:
                        sides = zip(part, interval.shape, strict=True)
                        piece = interval[tuple(cut if length > 1 else slice(None) for cut, length in sides)]
                        alive[piece.shape] = alive.get(piece.shape, np.uint8(255)) & table[piece]
                mask = np.full((1, 1, len(offsets)), 255, dtype=np.uint8)
                for allowed in alive.values():
                    mask = mask & allowed
                total[part] = self.values.take(mask + offsets).sum(-1, dtype=np.float64)
        return total


def _walk(trees: BoostedTrees, tree: int) -> tuple[list[tuple[int, float, int]], list[float]]:
    """A tree's inner nodes (variable, threshold, leaves to the left), and its leaves' values in order."""
    nodes: list[tuple[int, float, int]] = []
    leaves: list[float] = []

    def descend(node: int) -> None:
        if trees.feature[tree, node] == LEAF:
            leaves.append(float(trees.value[tree, node]))
            if len(leaves) > LEAVES:
                why = "the file is damaged, or was fitted with deeper trees"
                raise ValueError(f"trees: expected at most {LEAVES} leaves in a tree; {why}")
            return
        first = len(leaves)
        descend(int(trees.left[tree, node]))
        mask = sum(1 << leaf for leaf in range(first, len(leaves)))
        nodes.append((int(trees.feature[tree, node]), float(trees.threshold[tree, node]), mask))
        descend(int(trees.right[tree, node]))

    descend(0)
    return nodes, leaves
