"""Budgets: what an alteration may cost at most.

Setting the variables of a set to z costs sum_i w_i |z_i - r_i|, w_i the price of a unit and r_i the value at which nothing is spent. An
alteration is affordable where that is at most the budget: a polytope, for one variable an interval.

Source: Du et al. (2024), Sec. 3 (costs of alterations, there a sum of squares); the limit beside tau is ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

ROOM = 1e-9


@dataclass(frozen=True)
class AlterationBudget:
    """What alterations may cost.

    Attributes:
        limit: The most that may be spent.
        costs: The price of a unit, variable to a non-negative number; 1 where none is given.
        reference: Where nothing is spent, variable to value; 0 where none is given.

    Raises:
        ValueError: if the limit or a price is negative.
    """

    limit: float
    costs: Mapping[str, float] = field(default_factory=dict)
    reference: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        negative = [name for name, cost in self.costs.items() if cost < 0]
        if self.limit < 0 or negative:
            raise ValueError(f"expected a limit and costs of at least 0; got limit={self.limit} and negative costs for {negative}")

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "AlterationBudget":
        """A budget of plain data, {limit, costs, reference}, the last two optional.

        Raises:
            ValueError: if the limit is missing, or something else is named.
        """
        strange = sorted(set(plain) - {"limit", "costs", "reference"})
        if strange or "limit" not in plain:
            raise ValueError(f"a budget has a limit, and optionally costs and a reference; got {sorted(plain)}")
        return cls(float(plain["limit"]), dict(plain.get("costs") or {}), dict(plain.get("reference") or {}))

    def cost(self, names: Sequence[str], actions: Tensor) -> Tensor:
        """What actions cost, (..., k) -> (...)."""
        prices = actions.new_tensor([float(self.costs.get(name, 1.0)) for name in names])
        origin = actions.new_tensor([float(self.reference.get(name, 0.0)) for name in names])
        return (prices * (actions - origin).abs()).sum(-1)

    def affordable(self, names: Sequence[str], actions: Tensor) -> Tensor:
        """Whether actions are within the limit, (..., k) -> (...) bool."""
        prices = actions.new_tensor([float(self.costs.get(name, 1.0)) for name in names])
        origin = actions.new_tensor([float(self.reference.get(name, 0.0)) for name in names])
        # A cost is a difference of actions, and as exact as these are.
        exact = 4 * torch.finfo(actions.dtype).eps * (prices * (actions.abs() + origin.abs())).sum(-1)
        return self.cost(names, actions) <= self.limit * (1 + ROOM) + exact

    def reach(self, name: str) -> tuple[float, float]:
        """The interval of one variable, altered alone."""
        price, origin = float(self.costs.get(name, 1.0)), float(self.reference.get(name, 0.0))
        width = self.limit / price if price > 0 else torch.inf
        return origin - width, origin + width
