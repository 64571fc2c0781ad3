"""Costs of k actions in B cases as tensors, by the formula of `data.costs`; objectives subtract them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.costs import ActionCost, CaseCosts, LevelPrices

ROUNDED = 1e-12  # Changes below this share of a value are rounding.


@dataclass(frozen=True)
class Choice:
    """Costs (B, L) of one action's L levels, at which its columns, at `places`, have `rows` (L, m)."""

    places: tuple[int, ...]
    rows: Tensor
    costs: Tensor

    def __call__(self, actions: Tensor) -> Tensor:
        """The cost at the nearest levels, (..., B, k) -> (..., B)."""
        distances = actions[..., self.places].unsqueeze(-2) - self.rows.to(actions)
        nearest = distances.abs().sum(-1).argmin(-1)
        cases = torch.arange(len(self.costs), device=actions.device)
        return self.costs.to(actions)[cases, nearest]


@dataclass(frozen=True)
class CostTable:
    """The costs of one set of k actions in B cases: those of `ActionCost`, (B, k) each; the values from which
    changes are counted, (B, k), NaN for actions that cost nothing or have prices; and the costs of levels.
    """

    up: Tensor
    down: Tensor
    fixed: Tensor
    origin: Tensor
    choices: tuple[Choice, ...] = ()

    @classmethod
    def of(cls, cases: Sequence[CaseCosts], names: Sequence[str]) -> "CostTable":
        """The table of B cases, float64 on the CPU."""
        none = ActionCost()
        priced = {
            name: cost.levels
            for case in cases
            for name, cost in case.actions.items()
            if cost.levels is not None and set(cost.levels.columns) <= set(names)
        }
        of_levels = {column for prices in priced.values() for column in prices.columns}
        per_unit = [{name: c for name, c in case.actions.items() if name not in of_levels} for case in cases]
        table = [[costs.get(name, none) for name in names] for costs in per_unit]
        parts = [[(cost.up, cost.down, cost.fixed) for cost in row] for row in table]
        origins = [
            [case.origin[name] if name in costs else math.nan for name in names]
            for case, costs in zip(cases, per_unit, strict=True)
        ]
        shape = (len(cases), len(names))
        up, down, fixed = torch.tensor(parts, dtype=torch.float64).reshape(*shape, 3).unbind(-1)
        origin = torch.tensor(origins, dtype=torch.float64).reshape(shape)
        choices = tuple(_choice(name, prices, cases, names) for name, prices in priced.items())
        return cls(up, down, fixed, origin, choices)

    def __call__(self, actions: Tensor) -> Tensor:
        """The cost of actions, (..., B, k) -> (..., B)."""
        up, down, fixed, origin = (part.to(actions) for part in (self.up, self.down, self.fixed, self.origin))
        change = (actions - origin).nan_to_num(0.0)
        change = torch.where(change.abs() <= ROUNDED * (actions.abs() + origin.abs()), 0.0, change)
        cost = (up * change.clamp_min(0) + down * (-change).clamp_min(0) + fixed * (change != 0)).sum(-1)
        for choice in self.choices:
            cost = cost + choice(actions)
        return cost


def _choice(name: str, levels: LevelPrices, cases: Sequence[CaseCosts], names: Sequence[str]) -> Choice:
    costs = [
        levels.changes(case.origin[name], case.actions[name].fixed)
        if name in case.actions
        else [0.0] * len(levels.rows)
        for case in cases
    ]
    positions = tuple(list(names).index(column) for column in levels.columns)
    rows, table = (torch.tensor(part, dtype=torch.float64) for part in (levels.rows, costs))
    return Choice(positions, rows, table.reshape(len(cases), len(levels.rows)))


def cost_of_setting(costs: CaseCosts, names: Sequence[str], values: Sequence[float]) -> float:
    """The cost of one alteration."""
    row = torch.tensor([list(values)], dtype=torch.float64).reshape(1, len(names))
    return float(CostTable.of([costs], names)(row)[0])
