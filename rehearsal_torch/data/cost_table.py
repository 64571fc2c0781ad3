"""Costs of many actions in many cases (`data.costs`), as tensors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rehearsal_torch.data.costs import ActionCost, CaseCosts, LevelPrices

# Changes below this share of a value are rounding.
ROUNDED = 1e-12


@dataclass(frozen=True)
class Choice:
    """The costs of setting the levels of one action in B cases: (B, L) for L levels, at which its m columns,
    in some `places` of an alteration, have the values of `rows`, (L, m).
    """

    places: tuple[int, ...]
    rows: Tensor
    costs: Tensor

    def __call__(self, actions: Tensor) -> Tensor:
        """The cost at the nearest levels, (..., B, k) -> (..., B)."""
        away = actions[..., self.places].unsqueeze(-2) - self.rows.to(actions)
        nearest = away.abs().sum(-1).argmin(-1)
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
            name: each.levels
            for case in cases
            for name, each in case.actions.items()
            if each.levels is not None and set(each.levels.columns) <= set(names)
        }
        apart = {column for each in priced.values() for column in each.columns}
        known = [{name: each for name, each in case.actions.items() if name not in apart} for case in cases]
        found = [[each.get(name, none) for name in names] for each in known]
        parts = [[(each.up, each.down, each.fixed) for each in row] for row in found]
        origins = [
            [case.origin[name] if name in each else math.nan for name in names]
            for case, each in zip(cases, known, strict=True)
        ]
        shape = (len(cases), len(names))
        up, down, fixed = torch.tensor(parts, dtype=torch.float64).reshape(*shape, 3).unbind(-1)
        origin = torch.tensor(origins, dtype=torch.float64).reshape(shape)
        choices = tuple(_choice(name, each, cases, names) for name, each in priced.items())
        return cls(up, down, fixed, origin, choices)

    def __call__(self, actions: Tensor) -> Tensor:
        """The cost of actions, (..., B, k) -> (..., B)."""
        up, down, fixed, origin = (each.to(actions) for each in (self.up, self.down, self.fixed, self.origin))
        away = (actions - origin).nan_to_num(0.0)
        away = torch.where(away.abs() <= ROUNDED * (actions.abs() + origin.abs()), 0.0, away)
        whole = (up * away.clamp_min(0) + down * (-away).clamp_min(0) + fixed * (away != 0)).sum(-1)
        for choice in self.choices:
            whole = whole + choice(actions)
        return whole


def _choice(name: str, levels: LevelPrices, cases: Sequence[CaseCosts], names: Sequence[str]) -> Choice:
    """The costs of the levels of one action; none in a case in which it costs nothing."""
    costs = [
        levels.changes(case.origin[name], case.actions[name].fixed)
        if name in case.actions
        else [0.0] * len(levels.rows)
        for case in cases
    ]
    places = tuple(list(names).index(column) for column in levels.columns)
    rows, table = (torch.tensor(each, dtype=torch.float64) for each in (levels.rows, costs))
    return Choice(places, rows, table.reshape(len(cases), len(levels.rows)))


def cost_of_setting(costs: CaseCosts, names: Sequence[str], values: Sequence[float]) -> float:
    """The cost of one alteration."""
    row = torch.tensor([list(values)], dtype=torch.float64).reshape(1, len(names))
    return float(CostTable.of([costs], names)(row)[0])
