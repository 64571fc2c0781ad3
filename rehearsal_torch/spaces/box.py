"""Boxes, the bounds and levels of variables that may be set, and alterations, variables set to values.

Altered variables a lie in a box, lower <= a <= upper, component by component. Projection onto it is clipping.
A variable may have levels, its only values (yes or no, one of some doses): projection takes the nearest.

An alteration names some of the actionable variables and fixes each to a value; every other variable keeps its
mechanism. "At most k changed actions" alter at most k variables ``action[t]`` of the unrolled graph.

Source: Du et al. (2026), Eq. (1); Qin et al. (2023), Sec. 2; Tsirtsis and Gomez-Rodriguez (2023), Eq. 9;
Bertsekas (1982) for the use of projections onto boxes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from rehearsal_torch.files.bounded_yaml import is_tensor
from rehearsal_torch.seeding import sobol

if TYPE_CHECKING:
    from torch import Tensor


# From so many levels on, those at equal distances are not listed.
EVEN = 6


@dataclass(frozen=True, eq=False)
class Alteration:
    """k variables and their values (..., k), in their units. A ValueError if names repeat or mismatch."""

    names: tuple[str, ...]
    values: Tensor

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        if len(set(self.names)) != len(self.names):
            raise ValueError(
                f"an alteration names each variable once; got {self.names}: keep one of the repeated names"
            )
        width = self.values.shape[-1] if self.values.ndim else None
        if width != len(self.names):
            raise ValueError(
                f"expected values of shape (..., {len(self.names)}), one for each of {self.names}; got "
                f"{tuple(self.values.shape)}"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Alteration):
            return NotImplemented
        alike = self.names == other.names and self.values.dtype == other.values.dtype
        return alike and self.values.detach().cpu().equal(other.values.detach().cpu())

    def __hash__(self) -> int:
        return hash((self.names, tuple(self.values.shape)))


def setting_text(value: float | str, digits: int = 4) -> str:
    """A value as text: `digits` significant digits, and three decimals of large ones below 1e15."""
    if isinstance(value, str):
        return value
    value += 0.0  # A zero without a sign
    if 10**digits <= abs(value) < 1e15:
        return f"{value:.3f}".rstrip("0").rstrip(".")
    return f"{value:.{digits}g}"


@dataclass(frozen=True, init=False)
class Box:
    """Intervals of k named variables in their units, as tensors `lower` and `upper` (k,) or numbers
    `lower_ends` and `upper_ends`, and ascending levels of those that have some, which end at the bounds. A
    ValueError for other shapes, ends or levels, lower > upper, or a repeated name.
    """

    names: tuple[str, ...]
    lower_ends: tuple[float, ...]
    upper_ends: tuple[float, ...]
    levels: Mapping[str, tuple[float, ...]]

    def __init__(
        self,
        names: Sequence[str],
        lower: Sequence[float] | Tensor,
        upper: Sequence[float] | Tensor,
        levels: Mapping[str, Sequence[float]] = MappingProxyType({}),
    ) -> None:
        levels_of = {name: tuple(map(float, values)) for name, values in levels.items()}
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "lower_ends", tuple(numbers(lower).tolist()))
        object.__setattr__(self, "upper_ends", tuple(numbers(upper).tolist()))
        object.__setattr__(self, "levels", levels_of)
        if len(set(self.names)) != len(self.names):
            raise ValueError(
                f"a box names each variable once; got {self.names}: keep one of the repeated names"
            )
        sizes = len(self.lower_ends), len(self.upper_ends)
        if sizes != (len(self.names),) * 2:
            raise ValueError(
                f"expected a lower and an upper bound for each of {self.names}; got {sizes[0]} and {sizes[1]}"
            )
        for name, (low, high) in self.bounds().items():
            if not (math.isfinite(low) and math.isfinite(high)):
                raise ValueError(
                    f"{name}: expected finite bounds; got [{low}, {high}]: give both as finite numbers"
                )
            if low > high:
                raise ValueError(f"{name}: expected lower <= upper; got [{low}, {high}]: swap them")
        for name, values in levels_of.items():
            ends = self.bounds().get(name)
            if not values or sorted(set(values)) != list(values) or (values[0], values[-1]) != ends:
                raise ValueError(
                    f"{name}: expected levels in ascending order, each once, from {ends}; got {list(values)}"
                )

    @classmethod
    def of(cls, bounds: Mapping[str, Sequence[float] | Mapping[str, Sequence[float]]]) -> Box:
        """A box from name to (lower, upper), or to {"values": levels} in any order."""
        levels, ends = dict[str, tuple[float, ...]](), dict[str, tuple[float, float]]()
        for name, interval in bounds.items():
            if isinstance(interval, Mapping):
                values = tuple(sorted(map(float, interval.get("values", ()))))
                if set(interval) != {"values"} or not values or len(set(values)) < len(values):
                    raise ValueError(f"{name}: expected {{'values': [...]}}, each once; got {dict(interval)}")
                levels[name], ends[name] = values, (values[0], values[-1])
            elif len(interval) != 2:
                raise ValueError(f"{[name]}: expected (lower, upper) for each variable")
            else:
                ends[name] = (float(interval[0]), float(interval[1]))
        return cls(
            tuple(bounds), [low for low, _ in ends.values()], [high for _, high in ends.values()], levels
        )

    def to_plain(self) -> dict[str, Any]:
        """Plain data for `of`."""
        return {
            name: {"values": list(self.levels[name])} if name in self.levels else list(bounds)
            for name, bounds in self.bounds().items()
        }

    def bounds(self) -> dict[str, tuple[float, float]]:
        """Name to (lower, upper)."""
        ends = zip(self.lower_ends, self.upper_ends, strict=True)
        return dict(zip(self.names, ends, strict=True))

    @cached_property
    def lower(self) -> Tensor:
        """(k,)."""
        return as_tensor(self.lower_ends)

    @cached_property
    def upper(self) -> Tensor:
        """(k,)."""
        return as_tensor(self.upper_ends)

    def only(self, names: Sequence[str]) -> Box:
        """The box of some of the variables, in the given order; KeyError if there is no such variable."""
        if unknown := [name for name in names if name not in self.names]:
            raise KeyError(f"no bounds for {unknown}; there are bounds for {list(self.names)}")
        bounds = self.bounds()
        lower, upper = ([bounds[name][side] for name in names] for side in (0, 1))
        levels = {name: self.levels[name] for name in names if name in self.levels}
        return Box(tuple(names), lower, upper, levels)

    def project(self, values: Tensor) -> Tensor:
        """The nearest point of the box, (..., k) -> (..., k)."""
        inside = values.maximum(self.lower.to(values)).minimum(self.upper.to(values))
        for name, levels in self.levels.items():
            column = self.names.index(name)
            inside = inside.clone()
            inside[..., column] = nearest(inside[..., column], levels)
        return inside

    def contains(self, values: Tensor) -> Tensor:
        """Whether points lie in the box, at levels where there are some, (..., k) -> (...) bool."""
        inside = ((values >= self.lower.to(values)) & (values <= self.upper.to(values))).all(-1)
        return inside & (self.project(values) == values).all(-1) if self.levels else inside

    @property
    def width(self) -> Tensor:
        """(k,), upper - lower."""
        return self.upper - self.lower

    @cached_property
    def near(self) -> Tensor:
        """`level_margin` of each variable, (k,)."""
        return as_tensor([self.level_margin(name) for name in self.names])

    def level_margin(self, name: str) -> float:
        """A quarter of the smallest distance between a variable's levels; infinite where it has none."""
        levels = self.levels.get(name, ())
        return float(np.diff(levels).min()) / 4 if len(levels) > 1 else math.inf

    def nearest_value(self, name: str, value: float) -> float:
        """The nearest value that a variable may be set to; of two as near, the lower one."""
        lower, upper = self.bounds()[name]
        levels = self.levels.get(name)
        return (
            min(max(value, lower), upper)
            if levels is None
            else min(levels, key=lambda level: abs(level - value))
        )

    @property
    def centre(self) -> Tensor:
        """(k,), the midpoint."""
        return (self.lower + self.upper) / 2

    def sobol(self, count: int, seed: int = 0) -> Tensor:
        """(count, k) points of a scrambled Sobol sequence in the box, at the nearest levels."""
        unit = sobol(len(self.names), seed).draw(count, dtype=self.lower.dtype)
        points = self.lower + unit * self.width
        return self.project(points) if self.levels else points


def levels_text(levels: Sequence[float], before_list: str = "") -> str:
    """Ascending levels as text: `EVEN` or more at equal distances by their ends, of others the first ten."""
    if len(levels) >= EVEN:
        first, last = levels[0], levels[-1]
        step = (last - first) / (len(levels) - 1)
        ends = f"{setting_text(first, 6)} to {setting_text(last, 6)}"
        if np.allclose(levels, np.linspace(first, last, len(levels)), 0, 1e-6 * step):
            if step == 1 and first == round(first):
                return f"whole numbers from {ends}"
            return f"values from {ends} in steps of {setting_text(step, 6)}"
    texts = [setting_text(level, 6) for level in levels[:10]]
    return before_list + ", ".join(texts + (["..."] if len(levels) > 10 else []))


def nearest(values: Tensor, levels: Sequence[float]) -> Tensor:
    """The nearest of some levels, elementwise (...) -> (...); the lower one of two as near."""
    choices = values.new_tensor(tuple(levels))
    return choices[(values.unsqueeze(-1) - choices).abs().argmin(-1)]


def margin(lower: Tensor, upper: Tensor, share: float) -> Tensor:
    """The rounding allowance of bounds: `share` of the interval, and four units in their last place."""
    import torch

    size = lower.abs().maximum(upper.abs())
    return share * (upper - lower) + 4 * torch.finfo(size.dtype).eps * size


def numbers(values: Any) -> np.ndarray:
    """Numbers, or those of a tensor, as an array, float64."""
    return np.asarray(values.detach().cpu() if is_tensor(values) else values, dtype=np.float64)


def as_tensor(values: Any) -> Tensor:
    """Numbers as a float64 tensor; only this loads torch, which checks of files do without."""
    import torch

    return torch.tensor(np.asarray(values, dtype=np.float64))
